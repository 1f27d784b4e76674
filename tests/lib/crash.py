"""What the tests of crashes share: a daemon behind a proxy, a look at processes, a gate for commands, requests in threads."""
import concurrent.futures, contextlib, json, os, pathlib, sqlite3, time

from berthd import Berthd, TOKEN, wait_for
from proxy import Proxy

POOL = concurrent.futures.ThreadPoolExecutor(64)

# Says that it runs, waits for the file `go`, and counts how often it ran.
GATED = "echo before; echo x >>count; touch started; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 7"


class Proxied(Berthd):
    """A daemon whose engine stands behind a proxy."""

    def __init__(self, engine, **settings):
        self.proxy = Proxy(engine.path)
        super().__init__(engine, SANDBOX_ENGINE=self.proxy.address, **settings)

    def destroy(self):
        self.proxy.calm()
        try:
            super().destroy()
        finally:
            self.proxy.destroy()


def later(fn, *args, **kw):
    """Runs it in a thread; a broken connection is the answer None, since berthd may be killed meanwhile."""
    def run():
        try:
            return fn(*args, **kw)
        except (OSError, EOFError, Exception) as e:  # http.client has a class for each way to be cut off
            if type(e).__module__ == "http.client" or isinstance(e, OSError):
                return None
            raise
    return POOL.submit(run)


def main_pid(engine, container):
    return engine.inspect(container)["State"]["Pid"]


class Workspace:
    """The workspace of a session, from the host and without berthd."""

    def __init__(self, engine, container):
        self.path = pathlib.Path(f"/proc/{main_pid(engine, container)}/root/workspace")

    def has(self, name):
        return (self.path / name).exists()

    def touch(self, name):
        (self.path / name).touch(mode=0o666)

    def read(self, name):
        return (self.path / name).read_text() if self.has(name) else ""

    def await_file(self, name, timeout=30):
        wait_for(lambda: self.has(name), timeout)


def workspace(berthd, session):
    return Workspace(berthd.engine, berthd.container_of(session))


def in_container(pid):
    """Host pids of what runs in the pid name space of this one, with their command lines; zombies left out."""
    found = {}
    ns = os.readlink(f"/proc/{pid}/ns/pid")
    for p in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{p}/ns/pid") == ns and "State:\tZ" not in pathlib.Path(f"/proc/{p}/status").read_text():
                found[int(p)] = pathlib.Path(f"/proc/{p}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


def bridges(pid):
    return [p for p, line in in_container(pid).items() if line.endswith("berth-agent bridge")]


def exec_row(berthd, session):
    """The newest exec of a session, as the store has it."""
    rows = berthd.rows("SELECT * FROM exec WHERE session = ? ORDER BY started_ms DESC, rowid DESC LIMIT 1", session)
    return rows[0] if rows else None


def await_end(berthd, session, exec_id, timeout=60):
    end = time.monotonic() + timeout
    while True:
        r = berthd.call("GET", f"/v1/sessions/{session}/execs/{exec_id}?wait_s=20")
        assert r.status == 200, r
        if r.json["state"] == "ended":
            return r.json
        assert time.monotonic() < end, r


def is_gone(berthd, session, timeout=30):
    """Waits until it is; returns its row as the API has it."""
    def gone():
        row = berthd.call("GET", f"/v1/sessions/{session}").json
        return row if row["state"] in ("gone", "failed") else None
    return wait_for(gone, timeout)


def nothing_left(berthd, before=(), timeout=30):
    """Engine and store agree that only what was there before is there."""
    try:
        wait_for(lambda: berthd.engine.remains(berthd.instance) == sorted(before), timeout)
    except AssertionError:
        raise AssertionError(f"left over: {set(berthd.engine.remains(berthd.instance)) ^ set(before)}") from None


@contextlib.contextmanager
def store_stands(berthd):
    """No write of berthd's comes through meanwhile: SQLite's only write lock is ours."""
    db = sqlite3.connect(berthd.data / "state/berth.db", timeout=10, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")
        db.close()


class Stream:
    """POST /exec/stream, read line by line; or another request whose headers come before its end."""

    def __init__(self, berthd, session, body, headers=None, path="exec/stream"):
        self.connection = berthd.connect()
        self.connection.request("POST", f"/v1/sessions/{session}/{path}", json.dumps(body),
                                {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **(headers or {})})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, (self.reply.status, self.reply.read())
        self.id = self.reply.headers["X-Exec-Id"]

    def line(self):
        text = self.reply.readline()
        return json.loads(text) if text.strip() else None

    def rest(self):
        """All output and the exit line."""
        out = []
        while True:
            line = self.line()
            if line is None or line["type"] != "output":
                return "".join(out), line
            out.append(line["data"])

    def hang_up(self):
        self.connection.sock and self.connection.close()
        self.reply.close()
