"""`berth-agent local`: the agent of a manager in the same sandbox, on a socketpair."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from berthproto import BLOCK, Link, wait_for
from conftest import AGENT

PYTHON = "/usr/bin/python3"
DAEMON = f"{PYTHON} -c 'import os, signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n" \
         "  except (OSError, ValueError): pass\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(300)'"


class End:
    """One end of the socketpair, as Link wants a bridge."""

    def __init__(self, sock):
        self.sock = sock
        self.stdin, self.stdout = sock.makefile("wb"), sock.makefile("rb")

    def wait(self, timeout):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class Local:
    """The agent as a process of uid 10001, with the things that Link asks of a Sandbox."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="berth-local-", dir="/run")
        os.chmod(self.dir, 0o755)
        self.binary = os.path.join(self.dir, "berth-agent")
        shutil.copy(AGENT, self.binary)
        os.chmod(self.binary, 0o111)
        self.ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec 3<&{theirs.fileno()} {theirs.fileno()}<&-; exec setpriv --reuid 10001 --regid 10001 --clear-groups "
                         f"--bounding-set -all --no-new-privs {self.binary} local"],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={})
        theirs.close()
        self.pid = self.process.pid
        self.jobs = 0

    def bridge(self):
        return End(self.ours)

    def next_generation(self):
        return 1

    def next_job(self):
        self.jobs += 1
        return self.jobs

    def close(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture
def local():
    local = Local()
    yield local
    local.close()


def marked(mark):
    """Processes whose command line has this mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline").read()
            state = re.search(r"^State:\s*(\S)", open(f"/proc/{pid}/status").read(), re.M).group(1)
        except OSError:
            continue
        if mark in line and state not in "ZX" and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def test_it_serves_the_socket_it_was_started_with(local):
    link = Link(local)
    assert (link.hello["UID"], link.hello["NO_NEW_PRIVS"], link.hello["SECCOMP"]) == (10001, 1, 2)
    assert link.sh("echo hello; exit 3").stdout == b"hello\n"
    assert link.run(argv=["/usr/bin/env"], env=["A=1"]).stdout == b"A=1\n"


def test_jobs_get_neither_the_socket_nor_any_other_descriptor(local):
    r = Link(local).run(argv=["ls", "/proc/self/fd"])
    assert r.stdout.split() == [b"0", b"1", b"2", b"3"]  # ls has the folder itself open


def test_signals_of_a_job_do_not_end_it(local):
    link = Link(local)
    r = link.sh(f"for s in $(seq 1 64); do case $s in 9|19|32|33) ;; *) kill -$s {local.pid} || echo no $s;; esac; done; echo done")
    assert r.stdout == b"done\n"
    assert link.sh("echo again").stdout == b"again\n"


def test_what_a_killed_supervisor_leaves_is_killed(local):
    link = Link(local)
    mark = f"77{local.pid}"
    r = link.sh(f"sleep {mark} & kill -KILL $PPID; sleep {mark}", timeout=20)
    assert (r.reason, r.detail) == ("cancelled", "supervisor killed")
    wait_for(lambda: marked(mark) == [])
    assert link.sh("echo again").stdout == b"again\n"


@pytest.mark.parametrize("how", ["shutdown", "garbage"])
def test_without_its_manager_it_ends_with_all_its_jobs(local, how):
    link = Link(local)
    mark = f"88{local.pid}"
    stubborn = link.start(script=f"trap '' TERM HUP INT; {DAEMON} {mark}; echo up; while :; do sleep 0.1; done; : {mark}",
                          keep=BLOCK, timeout_ms=0)
    link.wait("DATA", stubborn)
    lingering = link.run(script=f"{DAEMON} {mark}; exit 0")
    assert lingering.exit["LINGERING"] >= 1
    assert len(marked(mark)) >= 3
    if how == "shutdown":
        local.ours.shutdown(socket.SHUT_RDWR)
    else:
        link.send_raw(b"\xff" * 64)
    assert local.process.wait(20) == 0
    wait_for(lambda: marked(mark) == [])


def test_a_peer_that_says_nothing_is_not_waited_for(local):
    local.ours.sendall(b"\xff" * 8)
    assert local.process.wait(10) == 0


def test_limits_are_set_for_oneself_only(local):
    link = Link(local)
    code = ("import os, resource as r\n"
            "print(r.prlimit(os.getppid(), r.RLIMIT_NOFILE) != None)\n"
            "r.setrlimit(r.RLIMIT_NOFILE, (100, 100))\n"
            "try: r.prlimit(os.getppid(), r.RLIMIT_NOFILE, (5, 5))\n"
            "except PermissionError: print('refused')\n")
    assert link.run(argv=[PYTHON, "-c", code]).stdout == b"True\nrefused\n"
    victim = subprocess.Popen(["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups", "sleep", "100"])
    try:
        wait_for(lambda: b"sleep" in open(f"/proc/{victim.pid}/cmdline", "rb").read().split(b"\0")[0])
        r = link.run(argv=["prlimit", "--pid", str(victim.pid), "--nofile=1:1"])
        assert r.code != 0 and b"not permitted" in r.stdout + r.stderr
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait(10)


def test_a_job_cannot_look_into_it(local):
    r = Link(local).sh(f"cat /proc/{local.pid}/environ /proc/{local.pid}/mem; ls -l /proc/{local.pid}/fd/; echo end")
    assert r.stdout.count(b"ermission denied") >= 3 and r.stdout.endswith(b"end\n")


def test_it_needs_a_socket():
    r = subprocess.run([AGENT, "local"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    assert r.returncode == 2 and b"socket" in r.stderr
