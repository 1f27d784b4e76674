"""The image with berthd in it: one `docker run` is a sandbox with its API, and its commands never see the token."""
import http.client, json, os, pathlib, socket, subprocess, tempfile, time, urllib.parse

import pytest

from berthd import BUILD, Reply, TOP, wait_for

IMAGE = "localhost/berth/standalone:latest"
TOKEN = "standalone-token-4f9a2c7e81d35b60"
SEED = {"ReadonlyRootfs": True, "Tmpfs": {"/tmp": "exec"}, "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"]}
VARIANTS = {"plain": {}, "seed": SEED}  # docker run -d -e SANDBOX_TOKEN=... IMAGE, and the line of the seed


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Standalone:
    """A container of the image on the host's network, which the engines of the tests have in any case."""

    def __init__(self, engine, host=None, env=None, user=None, entrypoint=None):
        self.engine, self.port = engine, free_port()
        env = {"SANDBOX_TOKEN": TOKEN, "SANDBOX_PORT": str(self.port), **(env or {})}
        body = {"Image": IMAGE, "Env": [f"{k}={v}" for k, v in env.items() if v is not None],
                "Labels": {"org.berth.test": "standalone"},
                "HostConfig": {"NetworkMode": "host", "LogConfig": {"Type": "json-file"},
                               "Ulimits": [{"Name": "nofile", "Soft": 4096, "Hard": 4096},
                                           {"Name": "nproc", "Soft": 4096, "Hard": 4096}], **(host or {})}}
        if user is not None:
            body["User"] = user
        if entrypoint:
            body["Entrypoint"] = entrypoint
        self.id = engine.call("POST", "/containers/create", body)["Id"]
        engine.call("POST", f"/containers/{self.id}/start")

    def up(self):
        def answers():
            """the container answers at its port"""
            assert self.state()["Running"], self.log()
            try:
                return self.call("GET", "/health", token=None).status == 200
            except OSError:
                return False
        wait_for(answers, 60)
        return self

    def state(self):
        return self.engine.inspect(self.id)["State"]

    def ended(self, timeout=60):
        wait_for(lambda: not self.state()["Running"], timeout)
        return self.state()["ExitCode"]

    def log(self):
        from berthd import UnixConnection
        c = UnixConnection(self.engine.path, 60)
        c.request("GET", f"/containers/{self.id}/logs?stdout=1&stderr=1")
        text = c.getresponse().read().decode(errors="replace")
        c.close()
        return text

    def remove(self):
        self.engine.call("DELETE", f"/containers/{self.id}?force=true&v=true", ok=(200, 204, 404))

    def call(self, method, path, body=None, token=TOKEN, timeout=120):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            if body is not None:
                headers["Content-Type"] = "application/json"
            c.request(method, path, json.dumps(body) if body is not None else None, headers)
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            c.close()

    def exec(self, command, **body):
        ask = {"argv": command} if isinstance(command, list) else {"command": command}
        r = self.call("POST", "/exec", {**ask, **body})
        assert r.status == 200, r
        return r.json

    def sh(self, command, **body):
        reply = self.exec(command, **body)
        assert reply["exit_code"] == 0, reply
        return reply["output"]


@pytest.fixture(scope="module")
def image(engine):
    subprocess.run([str(TOP / "images/standalone.sh")], check=True, timeout=1200, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SANDBOX_ENGINE": engine.address, "BERTH_BUILD": str(BUILD)})
    yield engine
    filters = urllib.parse.quote(json.dumps({"label": ["org.berth.test=standalone"]}))
    for c in engine.call("GET", f"/containers/json?all=true&filters={filters}") or []:
        engine.call("DELETE", f"/containers/{c['Id']}?force=true&v=true", ok=(200, 204, 404))


@pytest.fixture(scope="module", params=list(VARIANTS))
def box(image, request):
    """One container for the tests that do not end it."""
    b = Standalone(image, VARIANTS[request.param]).up()
    yield b
    b.remove()


@pytest.fixture
def own(image):
    """Makes containers of the test's own."""
    made = []

    def make(**how):
        made.append(Standalone(image, **{"host": SEED, **how}))
        return made[-1]
    yield make
    for b in made:
        b.remove()


def test_health_says_what_it_is(box):
    h = box.call("GET", "/health", token=None).json
    assert h["ok"] and h["runtime"] == "local" and h["store"] == {"ok": True, "detail": "in memory"}


def test_a_command_runs_as_the_sandboxes_user_in_the_workspace(box):
    assert box.sh("id -u; id -g; pwd; echo $HOME") == "10001\n10001\n/workspace\n/home/sandbox\n"
    for place in ("/workspace", "/home/sandbox", "/conversation_history", "/tmp"):
        assert box.sh(f"echo 'echo ran' >{place}/x.sh && chmod +x {place}/x.sh && {place}/x.sh && rm {place}/x.sh") == "ran\n"


def test_a_commands_environment_is_scrubbed(box):
    names = {line.split("=")[0] for line in box.sh("env").splitlines()}
    assert names <= {"PATH", "HOME", "USER", "LANG", "PWD", "SHLVL", "_"}
    assert box.call("POST", "/exec", {"command": "true", "env": {"SANDBOX_TOKEN": "x"}}).status == 400


def test_the_token_is_asked_for(box):
    assert box.call("POST", "/exec", {"command": "true"}, token=None).status == 401
    assert box.call("POST", "/exec", {"command": "true"}, token="x" * 32).status == 401


@pytest.mark.parametrize("method, path", [
    ("GET", "/v1/sessions"), ("POST", "/v1/sessions"), ("GET", "/v1/sessions/s_x"), ("DELETE", "/v1/sessions/s_x"),
    ("POST", "/v1/sessions/s_x/exec"), ("GET", "/v1/approvals"), ("GET", "/v1/pool")])
def test_what_is_of_many_sessions_is_not_here(box, method, path):
    r = box.call(method, path)
    assert (r.status, r.json["error"]["code"]) == (501, "local_mode")


def test_a_background_process_runs(box):
    p = box.call("POST", "/processes", {"command": "echo up; read x; echo got $x"})
    assert p.status == 201, p
    path = f"/processes/{p.json['id']}"
    assert box.call("POST", f"{path}/stdin", {"data": "this\n", "close": True}).status == 200
    wait_for(lambda: not box.call("GET", f"{path}?wait_s=5").json["running"], 30)
    assert box.call("DELETE", path).json["output"] == "up\ngot this\n"


def test_files_go_in_and_out(box):
    up = box.call("POST", "/files/upload", {"files": [{"path": "in/a file", "content_b64": "aGVsbG8K"}]})
    assert up.status == 200 and up.json[0]["error"] is None, up
    assert box.sh("cat '/workspace/in/a file'; stat -c %u '/workspace/in/a file'") == "hello\n10001\n"
    assert box.call("POST", "/files/download", {"paths": ["in/a file"]}).json[0]["content_b64"] == "aGVsbG8K"
    assert box.call("GET", "/files/content?path=in/a%20file").body == b"hello\n"
    box.sh("rm -r /workspace/in")


SCAN = r'''
import ctypes, os, struct, sys
want = sys.argv[1].encode()[::-1]
libc = ctypes.CDLL(None, use_errno=True)
found, tried = [], 0
me = {os.getpid(), os.getppid()}

def look(name, data):
    global tried
    tried += 1
    if want in data:
        found.append(name)

def read(path, most=64 << 20):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        data = b""
        while len(data) < most:
            piece = os.read(fd, 1 << 20)
            if not piece:
                break
            data += piece
        look(path, data)
    except OSError:
        pass
    finally:
        os.close(fd)

def memory(pid):
    try:
        maps = [l.split() for l in open(f"/proc/{pid}/maps")]
    except OSError:
        return
    for m in maps:
        start, end = (int(x, 16) for x in m[0].split("-"))
        if "r" not in m[1] or end - start > 256 << 20:
            continue
        try:
            with open(f"/proc/{pid}/mem", "rb", 0) as f:
                f.seek(start)
                look(f"/proc/{pid}/mem", f.read(end - start))
        except (OSError, OverflowError, ValueError):
            pass
        buffer = ctypes.create_string_buffer(end - start)
        local = struct.pack("QQ", ctypes.addressof(buffer), end - start)
        remote = struct.pack("QQ", start, end - start)
        if libc.process_vm_readv(pid, local, 1, remote, 1, 0) > 0:
            look(f"process_vm_readv {pid}", buffer.raw)

seized = []
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
    if pid in me:
        continue
    for name in ("environ", "cmdline", "auxv", "stat", "status", "cwd", "root", "io"):
        read(f"/proc/{pid}/{name}")
    memory(pid)
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            read(f"/proc/{pid}/fd/{fd}", 1 << 20)
    except OSError:
        pass
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        seized.append(pid)
for top, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ("/proc", "/sys", "/usr/share", "/usr/lib/python3.11")]
    for name in files:
        path = os.path.join(top, name)
        if os.path.isfile(path) and os.stat(path).st_size < 8 << 20:
            read(path)
print("found", sorted(set(found)))
print("seized", seized)
print("names", {p: open(f"/proc/{p}/comm").read().strip() for p in seized})
print("tried", tried > 100)
'''


def scan(box):
    out = box.sh(["python3", "-c", SCAN, TOKEN[::-1]], timeout_s=300)
    return dict(line.split(" ", 1) for line in out.splitlines())


def test_no_command_finds_the_token(box):
    clean = scan(box)
    assert clean["found"] == "[]" and clean["tried"] == "True"
    assert "berthd" not in clean["names"] and "1" not in clean["seized"].strip("[]").split(", ")
    # the scan would have found it: in a file, and in the memory and the environment of a process
    hidden = "".join(f"\\x{ord(c):02x}" for c in TOKEN)
    box.sh(f"printf '{hidden}' >/workspace/planted")
    p = box.call("POST", "/processes", {"argv": ["sh", "-c", 'X=$(cat /workspace/planted) exec sleep 1000']}).json
    wait_for(lambda: "sleep" in box.sh(f"cat /proc/{p['pid']}/comm"))
    found = scan(box)["found"]
    box.call("DELETE", f"/processes/{p['id']}?grace_s=0")
    box.sh("rm /workspace/planted")
    assert "/workspace/planted" in found and f"/proc/{p['pid']}/environ" in found and f"/proc/{p['pid']}/mem" in found


def test_berthd_cannot_be_stopped_or_starved_by_a_command(box):
    box.sh("for s in TERM INT HUP KILL STOP QUIT USR1 CHLD PIPE; do kill -$s 1; done; "
           "python3 -c 'import ctypes\nl = ctypes.CDLL(None)\n"
           "class I(ctypes.Structure): _fields_ = [(\"v\", ctypes.c_long)]\nl.sigqueue(1, 15, I(0))'")
    for task in box.sh("ls /proc/1/task").split():
        assert box.exec(f"prlimit --pid {task} --nofile=1:1")["exit_code"] != 0
    assert box.sh("echo still") == "still\n"
    assert box.state()["Running"]


@pytest.mark.parametrize("attack", ["kill -KILL $AGENT", "kill -STOP $AGENT", "kill -KILL -1"])
def test_what_ends_the_agent_costs_what_runs_and_no_file(own, attack):
    b = own().up()
    b.sh("echo kept >/workspace/file; echo kept >/home/sandbox/file")
    p = b.call("POST", "/processes", {"command": "trap '' TERM; setsid sleep 4711 & sleep 4711"}).json
    agent = "AGENT=$(for p in /proc/[0-9]*; do [ $(cat $p/comm 2>/dev/null) = berth-agent ] && basename $p && break; done); "
    reply = b.exec(f"{agent}{attack}; sleep 100", timeout_s=60)
    assert (reply["reason"], reply["exit_code"]) in ((("sandbox_lost", None)), ("signalled", None)), reply
    assert b.sh("cat /workspace/file /home/sandbox/file") == "kept\nkept\n"
    assert b.exec("ps -eo args | grep -c '[s]leep 4711'")["output"] == "0\n"
    assert b.call("GET", f"/processes/{p['id']}").status == 404
    assert b.state()["Running"]


def test_a_fork_bomb_ends_with_its_command(own):
    b = own(host={**SEED, "PidsLimit": 256}).up()
    reply = b.exec("f() { f | f & }; f; sleep 100", timeout_s=3)
    assert reply["reason"] in ("timeout", "exited", "sandbox_lost"), reply
    wait_for(lambda: b.exec("echo alive")["output"] == "alive\n", 60)


def test_stop_from_outside_is_orderly(own):
    b = own().up()
    b.sh("true")
    begin = time.monotonic()
    b.engine.call("POST", f"/containers/{b.id}/stop?t=60")
    assert b.ended() == 0 and time.monotonic() - begin < 45
    log = b.log()
    assert '"action":"exec.start"' in log and TOKEN not in log


def test_a_restarted_container_has_its_files(own):
    b = own().up()
    b.sh("echo kept >/workspace/file")
    b.engine.call("POST", f"/containers/{b.id}/restart?t=30")
    b.up()
    assert b.sh("cat /workspace/file") == "kept\n"


@pytest.mark.parametrize("env, word", [
    ({"SANDBOX_TOKEN": None}, "SANDBOX_TOKEN"),
    ({"SANDBOX_TOKEN": "short"}, "SANDBOX_TOKEN"),
    ({"SANDBOX_ADMIN_TOKEN": "x" * 32}, "SANDBOX_ADMIN_TOKEN"),
])
def test_it_does_not_start_with_settings_that_make_no_sense(own, env, word):
    b = own(env=env)
    assert b.ended() == 2
    assert word in b.log()


@pytest.fixture
def secret():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-secret-", dir="/var/tmp"))
    path = folder / "token"
    path.write_text(TOKEN)
    folder.chmod(0o755)
    yield path
    path.unlink()
    folder.rmdir()


FROM_FILE = {"SANDBOX_TOKEN": None, "SANDBOX_TOKEN_FILE": "/run/secrets/token"}


def test_a_token_in_a_file_that_commands_could_read_is_refused(own, secret):
    secret.chmod(0o444)
    b = own(env=FROM_FILE, host={**SEED, "Binds": [f"{secret}:/run/secrets/token:ro"]})
    assert b.ended() == 2
    assert "every command could read it" in b.log()


def test_a_token_in_a_file_of_root_is_read_before_root_is_left(own, secret):
    secret.chmod(0o400)
    host = {**SEED, "CapAdd": ["SETUID", "SETGID"], "Binds": [f"{secret}:/run/secrets/token:ro"]}
    b = own(env=FROM_FILE, host=host, user="0:0").up()
    assert b.sh("id -u; cat /run/secrets/token 2>/dev/null || echo refused") == "10001\nrefused\n"
    assert scan(b)["found"] == "[]"


def test_root_without_the_right_to_leave_it_does_not_start(own):
    b = own(user="0:0")
    assert b.ended() == 2
    assert "does not run as root" in b.log()


def test_behind_another_init_it_does_not_start(own):
    b = own(entrypoint=["/bin/sh", "-c", "/usr/lib/berth/berthd --runtime local; exit $?"])
    assert b.ended() == 2
    assert "without --init" in b.log()


def test_outside_of_a_container_it_does_not_start():
    r = subprocess.run([str(BUILD / "berthd")], capture_output=True, text=True, timeout=60,
                       env={"SANDBOX_RUNTIME": "local", "SANDBOX_TOKEN": TOKEN, "SANDBOX_LISTEN": "127.0.0.1:0"})
    assert r.returncode == 2 and "PID 1 of a container" in r.stderr
