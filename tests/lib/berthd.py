"""A real berthd on a real engine, for the tests: start it, kill it, talk to it, and look at what it leaves behind."""
import contextlib, json, os, re, signal, socket, subprocess, tempfile, time, http.client
import pathlib, shutil, sqlite3, urllib.parse

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", TOP / "build"))
IMAGE = "localhost/berth/sandbox:latest"
TOKEN = "test-admin-token-0123456789abcdef"
DEADLINE_S = 90


def wait_for(what, timeout=30, step=0.02):
    """Polls until what() is true; returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not so after {timeout} s: {getattr(what, '__doc__', None) or what}")
        time.sleep(step)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("engine", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """The engine's own API, to look from outside at what berthd did."""

    def __init__(self, kind, address, script):
        self.kind, self.address, self.script = kind, address, script
        self.path = address.removeprefix("unix://")

    def call(self, method, path, body=None, ok=(200, 201, 204, 304)):
        c = UnixConnection(self.path, 60)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            r = c.getresponse()
            data = r.read()
        finally:
            c.close()
        assert r.status in ok, f"{method} {path}: {r.status} {data[:300]}"
        return json.loads(data) if data.strip() else None

    def filter(self, instance):
        return urllib.parse.quote(json.dumps({"label": [f"org.berth.instance={instance}"]}))

    def containers(self, instance):
        return self.call("GET", f"/containers/json?all=true&filters={self.filter(instance)}") or []

    def volumes(self, instance):
        found = self.call("GET", f"/volumes?filters={self.filter(instance)}") or {}
        return found.get("Volumes") or []

    def remains(self, instance):
        """What belongs to sandboxes; the agent's volume does not."""
        return sorted([c["Names"][0] for c in self.containers(instance)] +
                      [v["Name"] for v in self.volumes(instance) if "org.berth.sandbox" in (v.get("Labels") or {})])

    def inspect(self, container):
        return self.call("GET", f"/containers/{container}/json")

    def processes(self, container):
        return self.call("GET", f"/containers/{container}/top?ps_args=-eo%20pid,ppid,args")

    def run(self, verb, **env):
        subprocess.run([str(TOP / "tests/engines" / f"{self.kind}.sh"), verb], check=True, timeout=120,
                       stdout=subprocess.DEVNULL, env={**os.environ, **env})


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Berthd:
    def __init__(self, engine, data=None, **settings):
        self.engine = engine
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="berthd-", dir="/var/tmp"))
        self.instance = "t" + os.urandom(6).hex()
        self.settings = settings
        self.process = None
        self.port = None

    # ---- life ----

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "ATLAS_", "DOCKER_"))}
        env.update(SANDBOX_LISTEN="127.0.0.1:0" if not self.port else f"127.0.0.1:{self.port}", SANDBOX_DATA=str(self.data / "state"),
                   SANDBOX_ENGINE=self.engine.address, SANDBOX_ADMIN_TOKEN=TOKEN, SANDBOX_INSTANCE=self.instance,
                   ATLAS_LOG_FORMAT="json", SANDBOX_RECONCILE="2")
        env.update({k: str(v) for k, v in self.settings.items()})
        return env

    @property
    def log(self):
        return self.data / "log"

    def start(self, wait=True):
        self.data.mkdir(exist_ok=True)
        (self.data / "state").mkdir(exist_ok=True)
        at = self.log.stat().st_size if self.log.exists() else 0
        out = open(self.log, "ab")
        self.process = subprocess.Popen([str(BUILD / "berthd")], env=self.environment(), stdout=out, stderr=out,
                                        stdin=subprocess.DEVNULL)

        def ready():
            """berthd says that it is ready"""
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            found = re.search(r'"event":\s*"berthd is ready".*?"port":\s*(\d+)', self.log.read_text()[at:])
            return found and int(found.group(1))

        if wait:
            self.port = wait_for(ready, 30)
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("berthd did not stop")
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        assert "Sanitizer" not in text, text[text.index("Sanitizer") - 200:][:6000]  # of a build by MODE=asan or tsan
        return self.process.returncode if self.process else None

    def destroy(self):
        """Ends it and removes all that is its; for the end of a test, whatever it did."""
        try:
            if not self.process or self.process.poll() is not None:
                self.start()
            for s in self.sessions():
                self.call("DELETE", f"/v1/sessions/{s['id']}")
        finally:
            try:
                self.stop()
            finally:
                self.clean()

    def clean(self):
        for c in self.engine.containers(self.instance):
            self.engine.call("DELETE", f"/containers/{c['Id']}?force=true&v=true", ok=(200, 204, 404))
        for v in self.engine.volumes(self.instance):
            self.engine.call("DELETE", f"/volumes/{v['Name']}?force=true", ok=(200, 204, 404))
        shutil.rmtree(self.data, ignore_errors=True)

    # ---- HTTP ----

    def connect(self, timeout=DEADLINE_S):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, token=TOKEN, headers=None, timeout=DEADLINE_S, raw=None):
        c = self.connect(timeout)
        try:
            data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
            h = {"Authorization": f"Bearer {token}"} if token else {}
            if data is not None:
                h["Content-Type"] = "application/json"
            c.request(method, path, data, {**h, **(headers or {})})
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            c.close()

    def create(self, **body):
        r = self.call("POST", "/v1/sessions", body)
        assert r.status == 201, r
        return r.json

    def sessions(self, query="limit=1000"):
        return self.call("GET", f"/v1/sessions?{query}").json["sessions"]

    def exec(self, session, command, **body):
        headers = body.pop("headers", None)
        ask = {"argv": command} if isinstance(command, list) else {"command": command}
        r = self.call("POST", f"/v1/sessions/{session}/exec", {**ask, **body}, headers=headers, timeout=body.get("timeout_s", 120) + 60)
        assert r.status == 200, r
        return r.json

    def sh(self, session, command, **body):
        """The output of a command that has to succeed."""
        reply = self.exec(session, command, **body)
        assert reply["exit_code"] == 0, reply
        return reply["output"]

    # ---- from outside ----

    def rows(self, sql, *args):
        with contextlib.closing(sqlite3.connect(f"file:{self.data}/state/berth.db?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(r) for r in db.execute(sql, args)]

    def write(self, sql, *args):
        """Changes the store behind berthd's back: for what would take a day."""
        with contextlib.closing(sqlite3.connect(self.data / "state/berth.db", timeout=30)) as db, db:
            db.execute(sql, args)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def rss_mb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024

    def container_of(self, session):
        return self.rows("SELECT container FROM session WHERE id = ?", session)[0]["container"]
