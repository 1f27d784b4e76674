"""What a job may do and PID 1 must not mind: every test ends with the same agent answering an exec."""
import os
import re
import signal
import time

import pytest

from berthproto import BLOCK, JOB_STDIN, RING, STDIN, STDOUT, Link, Sandbox, field, wait_for
from conftest import AGENT, has_v1

PYTHON = "/usr/bin/python3"

# errno of a system call by number, of this architecture; 0 when it worked
CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    r = libc.syscall(*args)
    return ctypes.get_errno() if r == -1 else 0
"""


@pytest.fixture
def agent(sandbox):
    """A link to an agent of the test's own, which must work when the test is over."""
    link = Link(sandbox)
    yield link
    if link.process.poll() is not None:
        link = Link(sandbox)
    assert link.run(argv=["echo", "ok"]).stdout == b"ok\n"
    link.close()


@pytest.fixture
def tight(small):
    link = Link(small)
    yield link
    wait_for(lambda: link.run(argv=["echo", "ok"]).stdout == b"ok\n", 20)
    link.close()


@pytest.fixture
def crowd():
    """256 pids and memory for all of them."""
    if not has_v1("pids"):
        pytest.skip("needs the cgroup v1 controller to set limits without an engine")
    sandbox = Sandbox(AGENT, pids=256)
    link = Link(sandbox)
    yield link
    wait_for(lambda: link.run(argv=["echo", "ok"]).stdout == b"ok\n", 20)
    link.close()
    assert sandbox.alive(), "the agent died"
    sandbox.close()


def ended(link, job, timeout=20):
    r = link.finish(job, timeout)
    link.send("FORGET", job=job)
    return r


def is_empty(sandbox):
    return sandbox.processes_of_jobs() == 0


# ---- signals ----

@pytest.mark.parametrize("sig", sorted(set(range(1, 65)) - {32, 33}))
def test_no_signal_of_a_job_ends_pid_1(shared, sig):
    link = Link(shared)
    link.run(argv=[PYTHON, "-c", f"import os; os.kill(1, {sig})"])
    assert link.ping() < 5 and shared.alive()
    link.close()


def test_real_time_signals_are_not_queued_on_pid_1(agent):
    r = agent.run(argv=[PYTHON, "-c", "import os\nfor _ in range(1000): os.kill(1, 40)"])
    assert r.code == 0
    assert agent.sandbox.status("SigQ").split("/")[0] == "0" or int(agent.sandbox.status("SigQ").split("/")[0]) < 100


def test_term_from_outside_ends_the_sandbox():
    sandbox = Sandbox(AGENT)
    os.kill(sandbox.pid, signal.SIGTERM)
    wait_for(lambda: not sandbox.alive())
    sandbox.close()


def test_a_term_whose_sender_found_no_room_does_not_end_pid_1(agent):
    """The kernel forgets who sent a signal when the uid has as many queued as it may (RLIMIT_SIGPENDING)."""
    r = agent.run(argv=[PYTHON, "-c", CALL + """
import signal, struct
def queue(pid, sig):
    info = ctypes.create_string_buffer(struct.pack('iii', sig, 0, -1), 128)
    return call(129 if os.uname().machine == 'x86_64' else 138, pid, sig, info)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
while queue(os.getpid(), 40) == 0:
    pass
print('full')
print(queue(1, 15))
"""])
    assert r.stdout == b"full\n0\n"
    assert agent.ping() < 5 and agent.sandbox.alive()


def test_kill_all_ends_the_jobs_and_not_the_sandbox(agent):
    other = agent.start(argv=["sleep", "100"])
    agent.wait("STARTED", other)
    job = agent.start(argv=[PYTHON, "-c", "import os, time\nos.kill(-1, 9)\nprint('alone', flush=True)\ntime.sleep(100)"])
    for j in (other, job):
        r = ended(agent, j)
        assert (r.reason, r.detail, r.code) == ("cancelled", "supervisor killed", None)
    wait_for(lambda: is_empty(agent.sandbox))


@pytest.mark.parametrize("sig", ["KILL", "STOP"])
def test_a_supervisor_that_is_killed_or_stopped_ends_its_job(agent, sig):
    job = agent.start(script=f"(setsid sleep 100 &) ; sleep 100 & kill -{sig} $PPID; sleep 100")
    r = ended(agent, job)
    assert (r.reason, r.detail, r.exit["SURVIVORS"]) == ("cancelled", "supervisor killed", 0)
    wait_for(lambda: is_empty(agent.sandbox))


def test_a_neighbours_supervisor_may_be_killed_without_harm_to_ones_own(agent):
    victim = agent.start(argv=["sleep", "100"])
    agent.wait("STARTED", victim)
    killer = agent.start(script=f"""kill -9 $(awk '{{print $4}}' /proc/{agent.results[victim].pid}/stat); echo done; exit 4""")
    assert ended(agent, victim).detail == "supervisor killed"
    assert ended(agent, killer).code == 4


def test_signals_that_can_be_ignored_do_not_end_supervisors(agent):
    job = agent.start(script="trap '' TERM INT HUP USR1 ALRM; for s in TERM INT HUP USR1 ALRM 40; do kill -$s $PPID; done; exit 6")
    assert ended(agent, job).code == 6


# ---- bombs ----

FORK_BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
DOUBLE_FORK_BOMB = """
import os
while True:
  try:
    if os.fork() == 0:
      os.setsid()
      if os.fork(): os._exit(0)
  except OSError: pass
"""
COMET = "import os, time\nif os.fork(): time.sleep(100)\nwhile True:\n  try:\n    if os.fork(): os._exit(0)\n  except OSError: pass"


@pytest.mark.parametrize("bomb", [FORK_BOMB, DOUBLE_FORK_BOMB, COMET], ids=["fork", "double fork", "comet"])
def test_a_bomb_is_killed_at_its_timeout(crowd, bomb):
    tight = crowd
    job = tight.start(argv=[PYTHON, "-c", bomb], timeout_ms=1500)
    tight.wait("STARTED", job)
    r = ended(tight, job, 30)
    assert (r.reason, r.exit["SURVIVORS"]) == ("timeout", 0)
    wait_for(lambda: is_empty(tight.sandbox))


def test_a_ping_is_answered_during_a_bomb_and_an_exec_says_process_limit(crowd):
    tight = crowd
    job = tight.start(script="for i in $(seq 400); do sleep 100 & done 2>/dev/null; wait", timeout_ms=0)
    tight.wait("STARTED", job)
    wait_for(lambda: tight.run(argv=["true"]).detail == "process limit", 20)
    assert tight.ping() < 5
    tight.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    assert ended(tight, job, 30).exit["SURVIVORS"] == 0


def test_a_stop_and_continue_duel_is_won(tight):
    duel = """
import os, signal
n = [os.fork() for _ in range(3)]
while True:
    for p in os.listdir('/proc'):
        if p.isdigit() and p != '1':
            try: os.kill(int(p), signal.SIGCONT)
            except OSError: pass
"""
    fighter = tight.start(argv=[PYTHON, "-c", duel], timeout_ms=0)
    victim = tight.start(argv=[PYTHON, "-c", duel], timeout_ms=700)
    r = ended(tight, victim, 30)
    assert (r.reason, r.exit["SURVIVORS"]) == ("timeout", 0)
    tight.send("CANCEL", job=fighter, payload=field("GRACE_MS", 0))
    assert ended(tight, fighter, 30).exit["SURVIVORS"] == 0


def test_a_storm_of_zombies_is_reaped(agent):
    r = agent.run(argv=[PYTHON, "-c", """
import os
for _ in range(3000):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
"""], timeout=60)
    assert r.code == 0
    wait_for(lambda: is_empty(agent.sandbox))


def test_a_memory_bomb_is_an_oom_and_its_neighbour_lives(tight):
    other = tight.start(argv=["sleep", "3"])
    r = tight.run(argv=[PYTHON, "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"])
    assert (r.reason, r.code) == ("oom", None)
    assert ended(tight, other).code == 0


def test_a_kill_that_no_oom_caused_is_none(tight):
    r = tight.sh("kill -9 $$")
    assert (r.reason, r.exit["SIGNAL"]) == ("signalled", 9)


def test_a_memory_bomb_behind_a_shell_is_an_oom_too(tight):
    r = tight.sh(f"{PYTHON} -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'; exit $?")
    assert r.reason == "oom"


# ---- streams ----

def test_a_flood_is_drained_and_does_not_grow_pid_1(agent):
    job = agent.start(argv=["cat", "/dev/zero"], keep=RING, tail=1 << 20, timeout_ms=1500)
    r = ended(agent, job)
    assert r.reason == "timeout" and r.exit["STDOUT_BYTES"] > 100 << 20
    assert int(agent.sandbox.status("VmRSS").split()[0]) <= 1024


def test_rings_of_64_jobs_are_no_memory_of_pid_1(agent):
    jobs = [agent.start(script="head -c 2000000 /dev/zero; sleep 100", keep=RING, head=100_000, tail=500_000,
                        attach=[STDOUT])
            for _ in range(64)]
    def told(r):
        return len(r.stdout) + sum(gap for _, _, gap in r.gaps)
    end = time.monotonic() + 60
    while sum(told(agent.results[j]) for j in jobs) < 64 * 2_000_000:
        agent.recv()
        assert time.monotonic() < end
    assert int(agent.sandbox.status("VmRSS").split()[0]) <= 1024
    agent.forget_all()


def test_a_job_that_closes_everything_ends_as_any_other(agent):
    r = agent.run(argv=[PYTHON, "-c", "import os, time\nos.closerange(0, 100)\ntime.sleep(.2)\nos._exit(8)"])
    assert r.code == 8


def test_closed_stdin_and_flooded_stdout_together(agent):
    job = agent.start(script="exec <&-; head -c 3000000 /dev/zero; exit 2", flags=JOB_STDIN, keep=BLOCK)
    for _ in range(3):
        agent.send("DATA", STDIN, job, b"x" * 32768)
    r = ended(agent, job)
    assert r.code == 2 and len(r.stdout) == 3_000_000


# ---- the socket ----

FLOOD = """
import socket, time
print('on', flush=True)
end = time.time() + 1.5
while time.time() < end:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try: s.connect("\\0berth-agent")
    except OSError: pass
    s.close()
"""


def test_a_flood_of_connections_does_not_keep_a_bridge_out(agent):
    jobs = [agent.start(argv=[PYTHON, "-c", FLOOD]) for _ in range(3)]
    wait_for(lambda: agent.recv() and all(agent.results[j].stdout for j in jobs), 20)
    second = Link(agent.sandbox)
    assert second.ping() < 3
    for j in jobs:
        second.send("ATTACH", STDOUT, j, field("BYTES", 0))
    for j in jobs:
        assert ended(second, j).code == 0


# ---- what is closed to a job ----

def test_pid_1_cannot_be_traced_or_read(agent):
    r = agent.run(argv=[PYTHON, "-c", CALL + """
print(call(101, 0x4206, 1, 0, 0) if os.uname().machine == 'x86_64' else 1)
for f in ('environ', 'mem', 'maps', 'fd', 'exe', 'root', 'cwd'):
    try:
        os.readlink('/proc/1/' + f) if f in ('exe', 'root', 'cwd') else \\
            os.listdir('/proc/1/fd') if f == 'fd' else open('/proc/1/' + f, 'rb').read(1)
        print(f, 'open')
    except OSError as e:
        print(f, e.errno)
"""])
    lines = r.stdout.decode().splitlines()
    assert lines[0] == "1" and all(line.endswith(" 13") for line in lines[1:]), lines


def test_the_supervisor_cannot_be_traced(agent):
    r = agent.run(argv=[PYTHON, "-c", CALL + "print(call(101, 0x4206, os.getppid(), 0, 0))"])
    assert r.stdout == b"1\n"


def test_jobs_may_trace_each_other(agent):
    r = agent.run(argv=[PYTHON, "-c", CALL + """
pid = os.fork()
if pid == 0:
    os.pause() if hasattr(os, 'pause') else __import__('time').sleep(10)
print(call(101, 0x4206, pid, 0, 0))
os.kill(pid, 9)
"""])
    assert r.stdout == b"0\n"


def test_a_command_that_has_itself_traced_ends_when_it_ends(agent):
    r = agent.run(argv=[PYTHON, "-c", CALL + """
import signal, time
print(call(101, 0, 0, 0, 0), flush=True)
for sig in (signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT):
    os.kill(os.getpid(), sig)
time.sleep(0.3)
print('here', flush=True)
os._exit(7)
"""])
    assert (r.reason, r.code, r.stdout) == ("exited", 7, b"0\nhere\n")
    assert agent.run(argv=[PYTHON, "-c", CALL + "call(101, 0, 0, 0, 0); os.execv('/bin/echo', ['echo', 'x'])"]).stdout == b"x\n"


# A command looks through all of its PATH, which takes a while, before its execve closes what PID 1 has given to it.
SLOW_START = {"argv": ["no-such-program"], "env": ["PATH=" + "/x:" * 300_000]}
FIND_VICTIM = """
import os, struct
print('ready', flush=True)
def victim():
    while True:
        for p in filter(str.isdigit, os.listdir('/proc')):
            try:
                if open(f'/proc/{p}/comm').read() == 'berth-agent\\n':
                    return p, os.listdir(f'/proc/{p}/fd')
            except OSError:
                pass
"""


def attack_before_execve(agent, code):
    """The results of the victim and of the attacker, whose code has the victim's pid and descriptors."""
    victim = agent.start(go=False, **SLOW_START)
    attacker = agent.start(argv=[PYTHON, "-c", FIND_VICTIM + "pid, fds = victim()\n" + code])
    agent.wait("DATA", attacker)
    agent.send("GO", job=victim)
    return ended(agent, victim), ended(agent, attacker)


def test_a_forged_failure_of_a_start_makes_no_senseless_end(agent):
    victim, attacker = attack_before_execve(agent, """
for fd in fds:
    if int(fd) > 2 and os.readlink(f'/proc/{pid}/fd/{fd}').startswith('pipe:'):
        os.write(os.open(f'/proc/{pid}/fd/{fd}', os.O_WRONLY | os.O_NONBLOCK), struct.pack('ii', 77, -5))
""")
    assert attacker.code == 0, attacker.stderr
    assert (victim.reason, victim.detail, victim.exit["ERRNO"]) == ("start_failed", "exec", 5)
    assert agent.ping() < 5


def test_a_command_that_is_about_to_start_has_nothing_of_other_jobs(agent):
    secret = b"environment-of-an-earlier-job"
    agent.run(argv=["cat"], env=["PATH=/bin:/usr/bin", "TOKEN=" + secret.decode()])
    agent.run(argv=["echo", secret.decode()])
    _, attacker = attack_before_execve(agent, f"""
secret, found, seen = {secret[::-1]!r}[::-1], False, 0
with open(f'/proc/{{pid}}/mem', 'rb') as mem:
    for line in open(f'/proc/{{pid}}/maps'):
        if line.split()[1].startswith('rw'):
            low, high = (int(x, 16) for x in line.split()[0].split('-'))
            mem.seek(low)
            text = mem.read(high - low)
            found, seen = found or secret in text, seen + len(text)
print(found, seen > 100000)
""")
    assert attacker.stdout == b"ready\nFalse True\n", attacker.stderr


@pytest.mark.parametrize("name, args", [
    ("unshare user", (272, 0x10000000)), ("unshare net", (272, 0x40000000)), ("setns", (308, 0, 0)),
    ("mount", (165, 0, 0, 0, 0, 0)), ("umount2", (166, 0, 0)), ("pivot_root", (155, 0, 0)),
    ("add_key", (248, 0, 0, 0, 0, 0)), ("request_key", (249, 0, 0, 0, 0)), ("keyctl", (250, 0, 0, 0, 0, 0)),
    ("bpf", (321, 0, 0, 0)), ("userfaultfd", (323, 0)), ("perf_event_open", (298, 0, 0, 0, 0, 0)),
    ("io_uring_setup", (425, 1, 0)), ("open_tree", (428, 0, 0, 0)), ("move_mount", (429, 0, 0, 0, 0, 0)),
    ("fsopen", (430, 0, 0)), ("fsconfig", (431, 0, 0, 0, 0, 0)), ("fsmount", (432, 0, 0, 0)), ("fspick", (433, 0, 0, 0)),
    ("mount_setattr", (442, 0, 0, 0, 0, 0)), ("clone of a user namespace", (56, 0x10000000 | 17, 0, 0, 0, 0)),
])
def test_a_call_is_forbidden(shared, name, args):
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    link = Link(shared)
    assert link.run(argv=[PYTHON, "-c", CALL + f"print(call{args})"]).stdout == b"1\n"
    link.close()


def test_clone3_is_unknown_and_foreign_calls_kill(agent):
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    assert agent.run(argv=[PYTHON, "-c", CALL + "print(call(435, 0, 0))"]).stdout == b"38\n"
    r = agent.run(argv=[PYTHON, "-c", CALL + "print(call(0x40000000 | 39))"])
    assert (r.reason, r.exit["SIGNAL"]) == ("signalled", signal.SIGSYS)


def test_no_bridge_can_be_taken_over_by_ptrace(agent):
    """A job races PTRACE_SEIZE against starts of the bridge."""
    racer = agent.start(argv=[PYTHON, "-c", CALL + """
import time
end, wins = time.time() + 8, 0
mine = os.getpid()
print('ready', flush=True)
while time.time() < end:
    for p in os.listdir('/proc'):
        if p.isdigit() and int(p) not in (1, mine, os.getppid()) and call(101, 0x4206, int(p), 0, 0) == 0:
            wins += 1
print('wins', wins)
"""], keep=RING, tail=1000, attach=[STDOUT])
    agent.wait("DATA", racer)
    sandbox, link = agent.sandbox, agent
    for _ in range(40):
        link = Link(sandbox)
    link.send("ATTACH", STDOUT, racer, field("BYTES", 0))
    assert re.search(rb"wins 0\n", ended(link, racer).stdout)
