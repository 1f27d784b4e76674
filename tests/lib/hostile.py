"""An arena: a session that is attacked from inside, a neighbour that must not notice, and the attacker's program."""
import base64, json, os, pathlib, struct, subprocess, threading, time

from berthd import BUILD, TOP, Berthd, UnixConnection, wait_for

SOURCES = TOP / "tests/integration/hostile"
PROGRAM = BUILD / "tests/hostile"
BRIDGE_UID = 10002
LIMITS = {"memory_mb": 512, "cpus": 1, "pids": 128}
NEIGHBOUR_S = 5  # an exec of the neighbour never takes longer
HOSTILE = "/workspace/hostile"  # where the program lies in the sandbox
PLACES = ["/tmp", "/home/sandbox", "/dev/shm", "/conversation_history"]


def build_program():
    """The attacker's static program."""
    sources = [*SOURCES.glob("*.c"), *(TOP / "runtime/protocol").glob("*.c")]
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < max(s.stat().st_mtime for s in [*sources, SOURCES / "hostile.h"]):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-static", "-O1", "-s", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                        f"-I{TOP}", "-o", PROGRAM, *sources], check=True, timeout=120)
    return PROGRAM


def build_image(engine, tag):
    """An image with a set-uid program of root and a health check that talks to the agent's socket."""
    script = r"""
        source images/lib.sh
        find_engine
        install -D -m 0755 "$PROGRAM" "$work/root/x"
        install -m 06755 "$PROGRAM" "$work/root/suid"
        tar -C "$work/root" --owner=0 --group=0 -cf "$work/files.tar" x suid
        printf '%s\n' 'FROM localhost/berth/test-minimal:latest' 'ADD files.tar /' \
          'HEALTHCHECK --interval=1s --timeout=5s CMD /x connect >>/tmp/health 2>&1' >"$work/Dockerfile"
        tar -C "$work" -cf "$work/context.tar" Dockerfile files.tar
        build_image "$work/context.tar" "$TAG"
        rm -rf "$work"
    """
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=TOP, check=True, timeout=120, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SANDBOX_ENGINE": engine.address, "PROGRAM": build_program(), "TAG": tag})
    return tag


def frames(data):
    """The texts of the engine's multiplexed stream."""
    at, out = 0, b""
    while at + 8 <= len(data):
        size = struct.unpack_from(">I", data, at + 4)[0]
        out += data[at + 8:at + 8 + size]
        at += 8 + size
    return out.decode()


def engine_exec(engine, container, argv, user):
    """A command that the engine starts beside the agent, as an administrator or a health check would."""
    made = engine.call("POST", f"/containers/{container}/exec",
                       {"Cmd": argv, "User": user, "AttachStdout": True, "AttachStderr": True})
    c = UnixConnection(engine.path, 30)
    try:
        c.request("POST", f"/exec/{made['Id']}/start", json.dumps({"Detach": False, "Tty": False}), {"Content-Type": "application/json"})
        return frames(c.getresponse().read())
    finally:
        c.close()


class Probe(threading.Thread):
    """Asks a session for one command after the other, and remembers each answer."""

    def __init__(self, berthd, session):
        super().__init__(daemon=True)
        self.berthd, self.session = berthd, session
        self.answers = []  # (when it was asked, how long it took, what is wrong or None)
        self.over = threading.Event()

    def ask(self, number):
        try:
            reply = self.berthd.exec(self.session, f"echo {number}", timeout_s=30)
            return None if reply["output"] == f"{number}\n" else reply
        except Exception as e:  # whatever it is, it is a finding
            return repr(e)

    def run(self):
        number = 0
        while not self.over.wait(0.05):
            number += 1
            began = time.monotonic()
            wrong = self.ask(number)
            self.answers.append((began, time.monotonic() - began, wrong))

    def check(self, since):
        """Every answer that was asked for since then was right and quick."""
        def one_more():
            """the neighbour answers once more"""
            return self.answers and self.answers[-1][0] >= since
        wait_for(one_more, 60)
        for began, took, wrong in list(self.answers):
            if began + took >= since:
                assert wrong is None, f"the neighbour noticed: {wrong}"
                assert took < NEIGHBOUR_S, f"the neighbour waited {took:.1f} s"


class Victim:
    """A session under attack."""

    def __init__(self, berthd, engine, workspace=None, **limits):
        self.berthd, self.engine = berthd, engine
        self.id = berthd.create(limits={**LIMITS, **limits}, **{"workspace": workspace} if workspace else {})["id"]
        self.container = berthd.container_of(self.id)
        self.init = engine.inspect(self.container)["State"]["Pid"]
        code = base64.b64encode(build_program().read_bytes()).decode()
        self.sh(f"cat >{HOSTILE} && chmod 0755 {HOSTILE}", stdin_b64=code)

    def exec(self, command, timeout_s=30, **body):
        return self.berthd.exec(self.id, command, timeout_s=timeout_s, **body)

    def sh(self, command, timeout_s=30, **body):
        return self.berthd.sh(self.id, command, timeout_s=timeout_s, **body)

    def attack(self, *args, **body):
        """An attack that comes to its end; the lines it printed."""
        return self.sh([HOSTILE, *map(str, args)], **body).splitlines()

    def start(self, command, **body):
        """The same beside what the test does; join() gives the reply."""
        return Background(lambda: self.exec(command, **body))

    def bridge(self):
        """The host's pid of the bridge, None while there is none."""
        space = os.readlink(f"/proc/{self.init}/ns/pid")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat(f"/proc/{pid}").st_uid in (0, BRIDGE_UID) and os.readlink(f"/proc/{pid}/ns/pid") == space and \
                        f"\nUid:\t{BRIDGE_UID}\t" in pathlib.Path(f"/proc/{pid}/status").read_text():
                    return int(pid)
            except OSError:
                continue
        return None

    def processes(self):
        """Commands that run in the sandbox, without those of the agent itself and of the asking, which makes none."""
        names = self.sh("for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || read -r c <$p/comm && echo $c; done 2>/dev/null || :")
        return [n for n in names.split() if n != "berth-agent"]

    def check(self):
        """It answers, it is still the same sandbox, and nothing of the attack runs on."""
        assert self.sh("echo alive", timeout_s=20) == "alive\n"
        assert self.engine.inspect(self.container)["State"]["Pid"] == self.init, "the sandbox is another one"
        wait_for(lambda: self.processes() == [], 5)

    def clean(self):
        self.sh(f"find {' '.join(PLACES)} /workspace -mindepth 1 ! -path {HOSTILE} -delete", timeout_s=120)

    def delete(self):
        self.berthd.call("DELETE", f"/v1/sessions/{self.id}")


class Background(threading.Thread):
    def __init__(self, what):
        super().__init__(daemon=True)
        self.what, self.value = what, None
        self.start()

    def run(self):
        try:
            self.value = self.what()
        except BaseException as e:
            self.value = e

    def result(self, timeout=120):
        self.join(timeout)
        assert not self.is_alive(), "it never ended"
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Arena:
    def __init__(self, engine):
        self.engine = engine
        self.berthd = Berthd(engine, SANDBOX_MAX_CONCURRENCY=16).start()
        self.probe = Probe(self.berthd, self.berthd.create(limits=LIMITS)["id"])
        self.probe.start()
        self.shared = None

    def make(self, **how):
        return Victim(self.berthd, self.engine, **how)

    def victim(self):
        """The session that tests attack one after the other."""
        self.shared = self.shared or self.make()
        return self.shared

    def close(self):
        self.probe.over.set()
        self.probe.join(60)
        self.berthd.destroy()
