"""What the agent promises about jobs, streams and links."""
import os
import random
import select
import signal
import subprocess
import time

import pytest

from berthproto import (BLOCK, ENDS, JOB_SPLIT, JOB_STDIN, JOB_WINDOW, LINK_WINDOW, MAGIC, MORE, RING, STDERR, STDIN,
                        STDOUT, VERSION, Closed, Link, field, fields, frame, spec, wait_for)

PYTHON = "/usr/bin/python3"


def another_passes(link):
    """A whole job begins and ends, and with it the time in which a wrong thing would have happened."""
    assert link.run(argv=["true"]).code == 0


def await_output(link, jobs):
    """Until each of them has said something."""
    wait_for(lambda: link.recv() and all(link.results[j].stdout for j in jobs), 20)


# ---- hello ----

def test_hello_tells_the_facts_of_a_locked_down_process(link):
    h = link.hello
    assert (h["UID"], h["GID"]) == (10001, 10001)
    assert not any(h[c] for c in ("CAP_EFF", "CAP_PRM", "CAP_BND", "CAP_AMB", "CAP_INH"))
    assert h["NO_NEW_PRIVS"] == 1 and h["SECCOMP"] == 2
    assert h["INTERFACE"] == [b"lo"]
    assert len(h["BUILD"]) == 20


def test_hello_tells_one_run_of_the_agent_from_another(sandbox, shared):
    first = Link(sandbox).hello["START_NS"]
    assert Link(sandbox).hello["START_NS"] == first != Link(shared).hello["START_NS"]


def test_hello_lists_writable_mounts_with_their_size_and_a_test_write(link):
    mounts = {m["PATH"]: m for m in map(fields, link.hello["MOUNT"])}
    tmp = mounts[b"/tmp"]
    assert tmp["FSTYPE"] == b"tmpfs" and tmp["SIZE"] == 256 << 20 and tmp["WRITE"] == 0
    assert b"/proc" not in mounts and b"/sys" not in mounts


def test_hello_tells_the_limits_of_the_cgroup(small):
    h = Link(small).hello
    assert h["CGROUP"] == 1 and h["PIDS_MAX"] == 256 and h["MEMORY_MAX"] == 64 << 20


# ---- commands and their ends ----

@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 1", 1), ("exit 255", 255), ("exit 300", 44)])
def test_exit_code(link, script, code):
    r = link.sh(script)
    assert (r.reason, r.code, r.started) == ("exited", code, True)


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "HUP"])
def test_a_command_that_dies_of_a_signal_has_no_exit_code(link, name):
    r = link.sh(f"kill -{name} $$")
    assert (r.reason, r.code, r.exit["SIGNAL"]) == ("signalled", None, signal.Signals["SIG" + name])


def test_output_then_eof_then_exit(link):
    job = link.start(argv=["printf", "hello"])
    seen = []
    while not seen or seen[-1] != "EXIT":
        seen.append(link.recv().type)
    assert seen == ["STARTED", "DATA", "EOF", "EXIT"]
    assert link.results[job].stdout == b"hello"


def test_stderr_is_a_stream_of_its_own_or_goes_with_stdout(link):
    r = link.sh("echo a; echo b >&2", flags=JOB_SPLIT)
    assert (r.stdout, r.stderr) == (b"a\n", b"b\n")
    r = link.sh("echo a; echo b >&2")
    assert (r.stdout, r.stderr) == (b"a\nb\n", b"")


def test_stdin_is_empty_without_the_flag(link):
    assert link.sh("cat; readlink /proc/self/fd/0").stdout == b"/dev/null\n"


def test_environment_and_directory_are_those_of_the_spec(link):
    r = link.run(argv=["/usr/bin/env"], env=["A=1", "B=two words"])
    assert sorted(r.stdout.splitlines()) == [b"A=1", b"B=two words"]
    assert link.run(argv=["pwd"], cwd="/usr/bin").stdout == b"/usr/bin\n"


def test_the_command_is_looked_for_in_the_jobs_path(link):
    assert link.run(argv=["echo"], env=["PATH=/nowhere"]).detail == "exec"
    assert link.run(argv=["echo", "x"], env=["PATH=/nowhere:/usr/bin"]).stdout == b"x\n"


@pytest.mark.parametrize("what, detail, errno", [
    (dict(argv=["/nonexistent"]), "exec", 2),
    (dict(argv=["nonexistent"]), "exec", 2),
    (dict(argv=["/etc/passwd"]), "exec", 13),
    (dict(argv=["/usr"]), "exec", 13),
    (dict(argv=["true"], cwd="/nonexistent"), "chdir", 2),
    (dict(argv=["true"], cwd="/etc/passwd"), "chdir", 20),
    (dict(script="true", shell="nonexistent"), "no_shell", 2),
    (dict(argv=["x" * 1], env=["PATH=/usr/bin"]), "exec", 2),
])
def test_what_cannot_start_says_which_step_failed(link, what, detail, errno):
    r = link.run(**what)
    assert (r.reason, r.detail, r.exit["ERRNO"], r.started, r.code) == ("start_failed", detail, errno, False, None)


@pytest.mark.parametrize("raw, part", [
    (b"", "empty"),
    (b"\0\1", "cut off"),
    (field("TAG", "x"), "either"),
    (field("ARG", "a") + field("SCRIPT", "b") + field("SHELL", "sh"), "either"),
    (field("SCRIPT", "b"), "shell"),
    (field("ARG", b"a\0b"), "NUL"),
    (field("ARG", ""), "empty"),
    (field("ARG", "a") + field("ENV", "novalue"), "NAME=VALUE"),
    (field("ARG", "a") + field("KEEP", 3), "keep"),
    (field("ARG", "a") + field("HEAD", 1 << 40), "head"),
    (field("ARG", "a") + field("TAG", "x" * 41), "tag"),
    (field("ARG", "a") + field("JOB_FLAGS", 4), "flags"),
])
def test_a_bad_spec_is_a_failed_start_with_a_reason(link, raw, part):
    r = link.run(raw=raw)
    assert r.reason == "start_failed" and part in r.detail


def test_a_spec_beyond_its_limit_is_refused(link):
    r = link.run(raw=field("SCRIPT", "x" * (1 << 20)) + field("SHELL", "sh"))
    assert r.reason == "start_failed" and "too long" in r.detail


def test_a_spec_may_come_in_pieces(link):
    assert link.run(argv=["echo", "a" * 1000], piece=7).stdout == b"a" * 1000 + b"\n"


def test_pieces_of_two_specs_may_alternate(link):
    specs = {link.sandbox.next_job(): spec(argv=["echo", name]) for name in ("one", "two")}
    for at in range(0, 200, 5):
        for job, data in specs.items():
            piece = data[at:at + 5]
            if piece:
                link.send("START", MORE if at + 5 < len(data) else 0, job, piece)
    for job in specs:
        link.send("GO", job=job)
    assert [link.finish(j).stdout for j in specs] == [b"one\n", b"two\n"]


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("size", [1000, 131071, 131072, 200_000, 900_000])
def test_a_script_of_any_length_runs(link, shell, size):
    script = "x=1\n" + "#" * (size - 20) + "\necho $x${x}7"
    r = link.sh(script, shell=shell)
    assert (r.stdout, r.code) == (b"117\n", 0)


def test_an_argument_beyond_the_kernels_limit_is_a_failed_start(link):
    r = link.run(argv=["echo", "x" * 200_000])
    assert (r.reason, r.detail, r.exit["ERRNO"]) == ("start_failed", "exec", 7)


def test_many_arguments(link):
    r = link.run(argv=[PYTHON, "-c", "import sys; print(len(sys.argv))"] + ["a"] * 20_000)
    assert r.stdout == b"20001\n"


def test_the_command_runs_only_after_go(link):
    job = link.start(argv=["echo", "x"], go=False)
    another_passes(link)
    assert link.list()[job]["STATE"] == 0 and not link.results[job].started
    link.send("GO", job=job)
    assert link.finish(job).stdout == b"x\n"


def test_a_job_cancelled_before_go_never_runs(link):
    job = link.start(argv=["touch", "/tmp/ran"], go=False)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 5000))
    r = link.finish(job)
    assert (r.reason, r.started) == ("cancelled", False)
    assert link.run(argv=["test", "-e", "/tmp/ran"]).code == 1


def test_a_job_that_was_cancelled_may_be_forgotten_before_it_has_ended(sandbox):
    link = Link(sandbox)
    for _ in range(70):
        job = link.start(argv=["true"], go=False)
        link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
        link.send("FORGET", job=job)
    wait_for(lambda: link.run(argv=["true"]).code == 0)
    assert link.list() == {}


def test_a_job_that_runs_is_not_forgotten(link):
    job = link.start(script="read x; exit 5", flags=JOB_STDIN)
    link.send("FORGET", job=job)
    link.send("DATA", STDIN, job, b"go\n")
    assert link.finish(job).code == 5


def test_the_command_has_a_clean_process(link):
    r = link.run(argv=[PYTHON, "-c", """
import os, signal, re
status = open('/proc/self/status').read()
for key in ('SigBlk', 'SigIgn'):
    print(key, int(re.search(key + r':\\s*(\\w+)', status).group(1), 16) & ~(1 << 12 | 1 << 24))
print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))
print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
print(open('/proc/self/oom_score_adj').read().strip())
import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 20000)
"""])
    assert r.stdout.decode().splitlines() == ["SigBlk 0", "SigIgn 0", "['0', '1', '2'] 4", "True True", "1000", "True"]


def test_the_tag_and_age_of_a_job_are_listed(link):
    job = link.start(argv=["sleep", "100"], tag="exec-42")
    link.wait("STARTED", job)
    listed = link.list()[job]
    assert listed["TAG"] == b"exec-42" and listed["STATE"] == 1 and listed["PID"] == link.results[job].pid
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    link.finish(job)
    assert link.list()[job]["STATE"] == 2
    link.send("FORGET", job=job)
    assert job not in link.list()


def test_usage_is_of_all_reaped_descendants(link):
    burn = "import time\nend = time.process_time() + .15\nwhile time.process_time() < end: pass"
    r = link.sh(f"(exec {PYTHON} -c 'x = bytearray(50 << 20)\n{burn}') & wait")
    assert r.exit["USER_US"] + r.exit["SYS_US"] >= 150_000
    assert r.exit["PEAK_BYTES"] >= 50 << 20
    assert r.exit["WALL_US"] >= 150_000


def test_a_duplicate_job_is_refused_and_the_first_goes_on(link):
    job = link.start(argv=["sleep", "0.2"])
    link.wait("STARTED", job)
    link.send("START", 0, job, spec(argv=["true"]))
    assert link.wait("EXIT", job).fields["DETAIL"] == b"duplicate_job"
    assert link.wait("EXIT", job).fields["REASON"] == 0


def test_the_65th_job_is_refused(link):
    jobs = [link.start(argv=["sleep", "100"]) for _ in range(64)]
    r = link.run(argv=["true"], timeout=20)
    assert (r.reason, r.detail) == ("start_failed", "too_many_jobs")
    assert int(link.sandbox.status("VmRSS").split()[0]) <= 1024
    for job in jobs:
        link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    for job in jobs:
        assert link.finish(job).reason == "cancelled"
        link.send("FORGET", job=job)
    assert link.run(argv=["true"]).code == 0


def test_attach_to_an_unknown_job_is_answered(link):
    link.send("ATTACH", STDOUT, 999_999, field("BYTES", 0))
    assert link.wait("EXIT", 999_999).fields["DETAIL"] == b"unknown_job"


# ---- stdin ----

def test_stdin_echo(link):
    job = link.start(argv=["cat"], flags=JOB_STDIN)
    for text in (b"one\n", b"two\n"):
        link.send("DATA", STDIN, job, text)
        link.wait("DATA", job)
    link.send("EOF", STDIN, job)
    r = link.finish(job)
    assert (r.stdout, r.code) == (b"one\ntwo\n", 0)


def test_much_stdin_flows_by_credit(link):
    total, credit, link_credit, sent = 3_000_000, JOB_WINDOW, LINK_WINDOW, 0
    job = link.start(argv=["wc", "-c"], flags=JOB_STDIN)
    while sent < total:
        n = min(credit, link_credit, 32768, total - sent)
        if n:
            link.send("DATA", STDIN, job, b"x" * n)
            sent, credit, link_credit = sent + n, credit - n, link_credit - n
        else:
            f = link.recv()
            if f.type == "WINDOW" and f.job == job:
                credit += f.fields["BYTES"]
            elif f.type == "WINDOW":
                link_credit += f.fields["BYTES"]
    link.send("EOF", STDIN, job)
    assert link.finish(job).stdout == b"%d\n" % total


def test_a_command_that_does_not_read_its_stdin_is_no_trouble(link):
    job = link.start(argv=["true"], flags=JOB_STDIN)
    link.send("DATA", STDIN, job, b"x" * 32768)
    assert link.finish(job).code == 0
    link.send("DATA", STDIN, job, b"x" * 32768)
    link.ping()


def test_stdin_that_was_closed_by_the_job_goes_on_giving_credit(link):
    job = link.start(script="exec <&-; echo closed; until rm /tmp/go; do sleep 0.02; done 2>/dev/null", flags=JOB_STDIN)
    await_output(link, [job])
    for _ in range(4):
        link.send("DATA", STDIN, job, b"x" * 32768)
    link.wait("WINDOW", job)
    link.run(argv=["touch", "/tmp/go"])
    assert link.finish(job).code == 0


# ---- output ----

def test_every_byte_arrives_when_the_job_waits_for_its_reader(link):
    r = link.sh("seq 1 400000", keep=BLOCK)
    assert r.stdout == b"".join(b"%d\n" % i for i in range(1, 400001)) and not r.gaps


def test_head_and_tail_are_kept_and_the_middle_counted(link):
    r = link.sh("seq 1 100000", keep=ENDS, head=1000, tail=2000)
    whole = b"".join(b"%d\n" % i for i in range(1, 100001))
    assert r.stdout == whole[:1000] + whole[-2000:]
    assert r.gaps == [(STDOUT, 1000, len(whole) - 3000)]
    assert r.exit["DROPPED_BYTES"] == len(whole) - 3000 and r.exit["STDOUT_BYTES"] == len(whole)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 299, 300, 301, 302, 1000])
def test_caps_are_exact_at_their_edges(link, size):
    r = link.run(argv=["head", "-c", str(size), "/dev/zero"], keep=ENDS, head=100, tail=200)
    dropped = max(0, size - 300)
    assert len(r.stdout) == size - dropped and r.exit["DROPPED_BYTES"] == dropped
    assert r.gaps == ([(STDOUT, 100, dropped)] if dropped else [])


@pytest.mark.parametrize("head, tail", [(0, 0), (10, 0), (0, 10)])
def test_caps_may_be_nothing(link, head, tail):
    r = link.run(argv=["head", "-c", "1000", "/dev/zero"], keep=ENDS, head=head, tail=tail)
    assert len(r.stdout) == head + tail and r.exit["DROPPED_BYTES"] == 1000 - head - tail


def test_the_head_comes_at_once(link):
    job = link.start(script="echo early; sleep 100", keep=ENDS, head=100, tail=100)
    assert link.wait("DATA", job).payload == b"early\n"
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    link.finish(job)


def test_a_ring_keeps_the_last_bytes_for_a_later_reader(link):
    job = link.start(script="seq 1 10000; sleep 100", keep=RING, head=0, tail=50, attach=[STDOUT])
    wait_for(lambda: link.ping() and b"10000\n" in link.results[job].out[STDOUT])
    link.send("ATTACH", STDOUT, job, field("BYTES", 0))
    link.results.pop(job)
    whole = b"".join(b"%d\n" % i for i in range(1, 10001))
    wait_for(lambda: link.wait("DATA", job) and len(link.results[job].stdout) == 50)
    assert link.results[job].stdout == whole[-50:]
    assert link.results[job].gaps == [(STDOUT, 0, len(whole) - 50)]
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    link.finish(job)


def test_a_reader_that_stalls_stalls_its_own_job_only(link):
    link.auto_credit = False
    job = link.start(argv=["cat", "/dev/zero"], keep=BLOCK, timeout_ms=0)
    link.wait("STARTED", job)
    got = 0
    while got < JOB_WINDOW:
        got += len(link.wait("DATA", job).payload)
    assert link.run(argv=["echo", "other"]).stdout == b"other\n"
    wait_for(lambda: written_by(link, "cat") == (another_passes(link), written_by(link, "cat"))[1])
    assert written_by(link, "cat") < 1 << 20
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    wait_for(lambda: link.list()[job]["STATE"] == 2)
    link.send("WINDOW", 0, 0, field("BYTES", JOB_WINDOW))
    link.send("WINDOW", STDOUT, job, field("BYTES", 1 << 20))
    assert link.finish(job).reason == "cancelled"


def test_what_waits_for_its_reader_costs_no_time(sandbox):
    link = Link(sandbox)
    link.auto_credit = False
    size = JOB_WINDOW + 2 * 65536 - 1000  # the window, the tail and most of a pipe
    job = link.start(script=f"head -c {size} /dev/zero; exit 3", keep=BLOCK, tail=65536, timeout_ms=0)
    wait_for(lambda: link.recv() and len(link.results[job].stdout) == JOB_WINDOW)
    wait_for(lambda: link.sandbox.processes_of_jobs() == 0)
    wait_for(lambda: sandbox.status("State").startswith("S"))
    before = sandbox.cpu_s()
    time.sleep(1)  # what is measured is what it takes of a second
    assert sandbox.cpu_s() - before < 0.1
    link.send("WINDOW", 0, 0, field("BYTES", JOB_WINDOW))
    link.send("WINDOW", STDOUT, job, field("BYTES", 1 << 20))
    r = link.finish(job)
    assert (r.code, len(r.stdout)) == (3, size)


def written_by(link, name):
    pid = next(pid for pid, comm in link.sandbox.processes().items() if comm == name)
    return int(open(f"/proc/{pid}/io").read().split("wchar: ")[1].split()[0])


def test_the_whole_link_has_one_window(link):
    link.auto_credit = False
    jobs = [link.start(argv=["cat", "/dev/zero"], keep=BLOCK) for _ in range(4)]
    wait_for(lambda: link.recv() and sum(len(link.results[j].stdout) for j in jobs) == LINK_WINDOW)
    another_passes(link)
    assert sum(len(link.results[j].stdout) for j in jobs) == LINK_WINDOW


def test_jobs_take_turns(link):
    jobs = [link.start(argv=["cat", "/dev/zero"], keep=BLOCK) for _ in range(4)]
    wait_for(lambda: link.recv() and all(link.results[j].started for j in jobs))
    before = {j: len(link.results[j].stdout) for j in jobs}
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        link.recv()
    got = [len(link.results[j].stdout) - before[j] for j in jobs]
    assert min(got) > max(got) / 3


def test_frames_stay_large_when_many_jobs_share_the_window(link):
    """Credit that comes back in small parts must not be spent in ever smaller ones."""
    for _ in range(20):
        link.start(argv=["cat", "/dev/zero"], keep=BLOCK)
    sizes = []
    while len(sizes) < 3000:
        f = link.recv()
        if f.type == "DATA":
            sizes.append(len(f.payload))
    assert sum(sizes[1000:]) / len(sizes[1000:]) >= 8192


def test_a_ping_behind_bulk_is_answered_soon(link):
    job = link.start(argv=["cat", "/dev/zero"], keep=BLOCK)
    link.wait("DATA", job)
    times = sorted(link.ping() for _ in range(20))
    assert times[10] < 0.25
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    link.finish(job)


def test_a_job_ends_although_a_descendant_holds_its_output(link):
    begin = time.monotonic()
    r = link.finish(link.start(script="sleep 100 & echo done; exit 5"))
    assert (r.stdout, r.code, r.exit["LINGERING"]) == (b"done\n", 5, 1)
    assert time.monotonic() - begin < 3


def test_a_descendant_that_goes_on_writing_gets_no_sigpipe(link):
    job = link.start(script="(while echo x; do echo >>/tmp/wrote; sleep 0.01; done; touch /tmp/sigpipe) & trap '' PIPE; exit 0")
    assert link.finish(job).exit["LINGERING"] >= 1

    def wrote():
        return len(link.run(argv=["cat", "/tmp/wrote"]).stdout)
    before = wrote()
    wait_for(lambda: wrote() > before + 20, 20)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    wait_for(lambda: link.sandbox.processes_of_jobs() == 0)
    link.send("FORGET", job=job)
    assert link.run(argv=["test", "-e", "/tmp/sigpipe"]).code == 1


def test_what_lingers_counts_against_the_table_until_it_ends(sandbox):
    link = Link(sandbox)
    for _ in range(64):
        r = link.sh("sleep 100 >/dev/null 2>&1 &")
        assert r.exit["LINGERING"] == 1
    assert link.list() == {}
    assert link.run(argv=["true"]).detail == "too_many_jobs"
    for pid, name in sandbox.processes().items():
        if name == "sleep":
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: link.run(argv=["true"]).code == 0, 15)


# ---- signals, timeouts, kills ----

def test_signal_goes_to_the_process_group(link):
    job = link.start(script="trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done")
    link.wait("DATA", job)
    link.send("SIGNAL", job=job, payload=field("SIGNAL", signal.SIGUSR1))
    r = link.finish(job)
    assert r.code == 7 and b"got\n" in r.stdout


def test_cancel_lets_a_command_end_by_itself_within_the_grace(link):
    job = link.start(script="trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    link.wait("DATA", job)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 5000))
    begin = time.monotonic()
    r = link.finish(job)
    assert r.reason == "cancelled" and b"bye" in r.stdout and r.code is None
    assert time.monotonic() - begin < 3


def test_cancel_reaches_a_stopped_command(link):
    job = link.start(script="trap 'echo bye; exit 0' TERM; echo ready; kill -STOP $$; sleep 100")
    link.wait("DATA", job)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 5000))
    r = link.finish(job)
    assert r.reason == "cancelled" and b"bye" in r.stdout


def test_after_the_grace_the_tree_is_killed(link):
    job = link.start(script="trap '' TERM; (trap '' TERM; sleep 100) & echo ready; sleep 100; sleep 100")
    link.wait("DATA", job)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 200))
    r = link.finish(job)
    assert (r.reason, r.exit["SIGNAL"], r.exit["SURVIVORS"]) == ("cancelled", 9, 0)
    assert link.sandbox.processes_of_jobs() == 0


DAEMON = f"""{PYTHON} -c '
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 10)
time.sleep(1000)
'"""


def test_a_timeout_kills_daemons_that_forked_twice(link):
    r = link.sh(f"{DAEMON}; {DAEMON}; sleep 100", timeout_ms=600)
    assert (r.reason, r.code, r.exit["SURVIVORS"]) == ("timeout", None, 0)
    assert link.sandbox.processes_of_jobs() == 0


def test_a_timeout_has_no_grace(link):
    r = link.sh("trap '' TERM; while :; do :; done", timeout_ms=200)
    assert r.reason == "timeout" and r.exit["SIGNAL"] == 9 and r.exit["WALL_US"] < 2_000_000


def test_a_command_in_vfork_is_killed(link):
    r = link.run(argv=[PYTHON, "-c", """
import ctypes, os
libc = ctypes.CDLL(None)
for _ in range(3):
    if os.fork() == 0:
        libc.syscall(58) or libc.pause()
libc.pause()
"""], timeout_ms=500)
    assert (r.reason, r.exit["SURVIVORS"]) == ("timeout", 0)
    assert link.sandbox.processes_of_jobs() == 0


def test_cancel_ends_what_an_ended_job_left_behind(link):
    job = link.start(script=f"{DAEMON}; exit 0")
    assert link.finish(job).exit["LINGERING"] >= 1
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    wait_for(lambda: link.sandbox.processes_of_jobs() == 0)


# ---- links ----

def test_a_job_outlives_its_link_and_is_read_from_an_offset(sandbox):
    first = Link(sandbox)
    job = first.start(script="echo one; sleep 0.5; echo two >&2; exit 9", flags=JOB_SPLIT, keep=RING, tail=1000, tag="z",
                      attach=[STDOUT])
    first.wait("DATA", job)
    first.close()
    second = Link(sandbox)
    assert second.list()[job]["TAG"] == b"z"
    second.send("ATTACH", STDOUT, job, field("BYTES", 2))
    second.send("ATTACH", STDERR, job, field("BYTES", 0))
    r = second.finish(job)
    assert (r.stdout, r.stderr, r.code) == (b"e\n", b"two\n", 9)


def test_an_end_is_kept_until_it_is_forgotten(sandbox):
    first = Link(sandbox)
    job = first.start(script="echo x; exit 3")
    first.finish(job)
    first.close()
    for generation in range(2):
        link = Link(sandbox)
        assert link.list()[job]["STATE"] == 2
        link.send("ATTACH", STDOUT, job, field("BYTES", 0))
        r = link.finish(job)
        assert (r.stdout, r.code, r.eof) == (b"x\n", 3, {STDOUT})
        link.close()


def test_a_job_that_waits_for_its_reader_does_not_wait_for_a_lost_link(sandbox):
    first = Link(sandbox)
    first.auto_credit = False
    job = first.start(script="seq 1 1000000; exit 4", keep=BLOCK, tail=100_000)
    first.wait("DATA", job)
    first.close()
    second = Link(sandbox)
    wait_for(lambda: second.list()[job]["STATE"] == 2, 10)
    second.send("ATTACH", STDOUT, job, field("BYTES", 0))
    r = second.finish(job)
    assert r.code == 4 and r.stdout.endswith(b"1000000\n") and len(r.stdout) == 100_000 and r.gaps


def test_a_half_sent_start_is_gone_with_its_link(sandbox):
    first = Link(sandbox)
    for job in range(1, 65):
        first.send("START", MORE, job, field("ARG", "x"))
    first.ping()
    first.close()
    second = Link(sandbox)
    assert second.list() == {} and second.run(argv=["true"]).code == 0


def test_a_higher_generation_takes_over(sandbox):
    first = Link(sandbox, generation=5)
    second = Link(sandbox, generation=6)
    first.wait_closed()
    assert second.run(argv=["true"]).code == 0


@pytest.mark.parametrize("generation", [4, 5])
def test_a_generation_that_is_not_higher_is_refused(sandbox, generation):
    first = Link(sandbox, generation=5)
    other = Link(sandbox, hello=False)
    other.send("HELLO", payload=field("MAGIC", MAGIC) + field("VERSION", VERSION) + field("GENERATION", generation))
    assert other.wait_closed()[-1].type == "ERROR"
    assert first.run(argv=["true"]).code == 0


def test_a_silent_link_is_pinged_and_then_given_up(sandbox):
    link = Link(sandbox, hello=False)
    link._take = lambda f: None  # answers nothing
    link.send("HELLO", payload=field("MAGIC", MAGIC) + field("VERSION", VERSION) + field("GENERATION", 1))
    begin = time.monotonic()
    seen = [f.type for f in link.wait_closed(timeout=40)]
    assert seen.count("PING") >= 2 and 28 < time.monotonic() - begin < 40
    assert Link(sandbox, generation=2).run(argv=["true"]).code == 0


def test_the_bridge_ends_with_either_side(sandbox):
    link = Link(sandbox)
    link.process.stdin.close()
    assert link.process.wait(5) == 0
    link = Link(sandbox)
    Link(sandbox)
    assert link.process.wait(5) == 0


def is_full(pipe):
    fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [fd], [], 0)[1]
    finally:
        os.close(fd)


def test_a_bridge_whose_reader_stalls_ends_with_its_link(sandbox):
    stalled = sandbox.bridge()
    spec_of_job = spec(argv=["cat", "/dev/zero"], keep=BLOCK, timeout_ms=0)
    hello = field("MAGIC", MAGIC) + field("VERSION", VERSION) + field("GENERATION", sandbox.next_generation())
    job = sandbox.next_job()
    stalled.stdin.write(frame("HELLO", payload=hello) + frame("START", job=job, payload=spec_of_job) + frame("GO", job=job))
    stalled.stdin.flush()
    wait_for(lambda: is_full(f"/proc/{stalled.pid}/fd/1"))
    link = Link(sandbox)
    assert stalled.wait(10) == 0
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    wait_for(lambda: sandbox.processes_of_jobs() == 0)


def test_a_bridge_that_is_killed_costs_nothing(sandbox):
    link = Link(sandbox)
    job = link.start(script="sleep 0.3; echo still", keep=RING, tail=100)
    link.wait("STARTED", job)
    link.process.kill()
    link = Link(sandbox)
    link.send("ATTACH", STDOUT, job, field("BYTES", 0))
    assert link.finish(job).stdout == b"still\n"


# ---- readers of a ring ----

NUMBERS = b"".join(b"%d\n" % i for i in range(1, 10001))


def read_all(link, job, offset=0):
    """Everything from an offset on until the end; where bytes were lost, what is there after them."""
    got = b""
    while True:
        c = link.read(job, offset, wait=True)
        got += c.get("CHUNK", b"")
        offset = c["OFFSET"] + len(c.get("CHUNK", b""))
        if c["STATE"] == 2 and offset >= c["TOTAL"]:
            return got


def test_a_ring_is_not_sent_but_its_end_is(link):
    job = link.start(script="seq 1 10000; exit 3", keep=RING, tail=1 << 20)
    r = link.finish(job)
    assert (r.stdout, r.code, r.eof, r.exit["STDOUT_BYTES"]) == (b"", 3, set(), len(NUMBERS))
    assert read_all(link, job) == NUMBERS  # it is kept until FORGET
    assert link.read(job, 5)["CHUNK"].startswith(NUMBERS[5:10])


def test_a_manager_that_comes_later_is_told_the_end_without_the_output(sandbox):
    first = Link(sandbox)
    job = first.start(script="echo x; cat; exit 3", keep=RING, tail=1000, flags=JOB_STDIN)
    first.wait("STARTED", job)
    first.close()
    second = Link(sandbox)
    second.send("ATTACH", STDIN, job, field("BYTES", 0))
    second.send("DATA", STDIN, job, b"y\n")
    second.send("EOF", STDIN, job)
    r = second.finish(job)
    assert (r.stdout, r.code) == (b"", 3)
    assert read_all(second, job) == b"x\ny\n"


def test_two_readers_have_places_of_their_own(link):
    job = link.start(script="seq 1 10000; read x", keep=RING, tail=1 << 20, flags=JOB_STDIN)
    wait_for(lambda: link.read(job)["TOTAL"] == len(NUMBERS))
    a, b = link.ask(job, 0), link.ask(job, 40_000)
    a, b = link.chunk(a), link.chunk(b)
    assert a["OFFSET"] == 0 and a["CHUNK"] == NUMBERS[:len(a["CHUNK"])]
    assert b["OFFSET"] == 40_000 and b["CHUNK"] == NUMBERS[40_000:40_000 + len(b["CHUNK"])]
    assert a["STATE"] == b["STATE"] == 1
    link.send("EOF", STDIN, job)
    assert read_all(link, job, 48_000) == NUMBERS[48_000:]


def test_what_has_left_the_ring_is_told_by_the_offset(link):
    job = link.start(script="seq 1 10000", keep=RING, tail=100)
    assert link.finish(job).exit["DROPPED_BYTES"] == len(NUMBERS) - 100
    c = link.read(job, 7)
    assert c["OFFSET"] == len(NUMBERS) - 100 and NUMBERS.endswith(read_all(link, job, 7))


def test_a_reader_waits_for_a_byte_or_the_end(link):
    job = link.start(script="echo a; read x; echo b; read y", keep=RING, tail=1000, flags=JOB_STDIN)
    assert link.read(job, 0, wait=True)["CHUNK"] == b"a\n"
    assert "CHUNK" not in link.read(job, 2) and link.read(job, 500)["OFFSET"] == 500
    waiting = link.ask(job, 2, wait=True)
    link.ping()
    assert waiting not in link.chunks
    link.send("DATA", STDIN, job, b"\n")
    assert link.chunk(waiting)["CHUNK"] == b"b\n"
    waiting = [link.ask(job, 4, wait=True), link.ask(job, 1000, wait=True)]
    link.send("EOF", STDIN, job)
    for c in map(link.chunk, waiting):
        assert (c["STATE"], c["TOTAL"], c.get("CHUNK")) == (2, 4, None)


def test_there_is_nothing_to_read_of_another_job(link):
    blocking = link.start(script="echo x")
    link.finish(blocking)
    for job in (blocking, 1 << 30):
        c = link.read(job, 0, wait=True)
        assert set(c) == {"COOKIE"}
    failed = link.start(argv=["/nonexistent"], keep=RING, tail=100)
    link.finish(failed)
    assert link.read(failed, 0, wait=True)["STATE"] == 2


def test_waiting_readers_are_answered_when_they_get_many_and_never_block_the_link(link):
    job = link.start(script="read x; echo done", keep=RING, tail=1000, flags=JOB_STDIN)
    cookies = [link.ask(job, 0, wait=True) for _ in range(64)]
    for _ in range(2):  # the first PONG overtakes
        assert link.ping() < 5
    early = [c for c in cookies if c in link.chunks]
    assert early == cookies[:8] and all("CHUNK" not in link.chunks[c] for c in early)
    waiting = cookies[8:]
    for _ in range(100):
        waiting.append(link.ask(job, 0, wait=True))
        assert "CHUNK" not in link.chunk(waiting.pop(0))
    assert link.run(argv=["echo", "other"]).stdout == b"other\n"
    link.send("EOF", STDIN, job)
    assert [link.chunk(c)["CHUNK"] for c in waiting] == [b"done\n"] * 56


def test_more_readers_than_may_be_end_the_link(sandbox):
    link = Link(sandbox)
    link.auto_credit = False
    job = link.start(argv=["head", "-c", "1000000", "/dev/zero"], keep=RING, tail=1 << 20)
    link.finish(job)
    for _ in range(80):  # eight are answered, then there is no credit
        link.ask(job, 0)
    seen = link.wait_closed()
    assert sum(f.type == "CHUNK" for f in seen) <= 9 and seen[-1].type == "ERROR"
    link = Link(sandbox)  # which knows nothing of the READs before it
    assert len(read_all(link, job)) == 1_000_000


def test_readers_without_credit_wait_and_block_nobody(link):
    link.auto_credit = False
    job = link.start(argv=["head", "-c", "1000000", "/dev/zero"], keep=RING, tail=1 << 20)
    link.finish(job)
    cookies = [link.ask(job, 0) for _ in range(12)]
    for _ in range(2):
        assert link.ping() < 5
    answered = [c for c in cookies if c in link.chunks]
    assert 7 <= len(answered) < 12 and sum(len(link.chunks[c]["CHUNK"]) for c in answered) <= LINK_WINDOW
    assert "CHUNK" not in link.read(job, 1_000_000)  # what has no bytes needs no credit
    link.send("WINDOW", 0, 0, field("BYTES", LINK_WINDOW - 20_000))
    link.auto_credit = True
    assert all(len(link.chunk(c)["CHUNK"]) > 0 for c in cookies)


def test_readers_take_turns_with_streams(link):
    flood = link.start(argv=["cat", "/dev/zero"], keep=BLOCK, timeout_ms=0)
    job = link.start(script="seq 1 10000; read x", keep=RING, tail=1 << 20, flags=JOB_STDIN)
    wait_for(lambda: link.read(job)["TOTAL"] == len(NUMBERS))
    for _ in range(20):
        assert link.read(job, 100)["CHUNK"] == NUMBERS[100:100 + 32512]
    for j in (flood, job):
        link.send("CANCEL", job=j, payload=field("GRACE_MS", 0))
        link.finish(j)


# ---- broken peers ----

HELLO = frame("HELLO", payload=b"")
BROKEN = {
    "garbage": b"\xff" * 64,
    "unknown type": b"\x40\0\0\0\0\0\0\0",
    "length over the limit": b"\x05\0\x80\x01\0\0\0\1",
    "a frame of the agent": frame("STARTED", job=1, payload=field("PID", 1)),
    "a second hello": HELLO,
    "a read without a cookie": frame("READ", job=1, payload=field("OFFSET", 1)),
    "a read beyond reason": frame("READ", job=1, payload=field("COOKIE", 1) + field("OFFSET", 1 << 63)),
    "data for stdout": frame("DATA", STDOUT, 1, b"x"),
    "empty data": frame("DATA", STDIN, 1, b""),
    "window without bytes": frame("WINDOW", STDOUT, 1),
    "window beyond the link": frame("WINDOW", 0, 0, field("BYTES", 1 << 62)),
    "window beyond reason": frame("WINDOW", STDOUT, 1, field("BYTES", 1 << 62)),
    "signal 0": frame("SIGNAL", 0, 1, field("SIGNAL", 0)),
    "signal 65": frame("SIGNAL", 0, 1, field("SIGNAL", 65)),
    "cancel without grace": frame("CANCEL", 0, 1),
    "ping without cookie": frame("PING"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_frame_ends_the_link_and_nothing_else(shared, name):
    link = Link(shared)
    job = link.start(argv=["sleep", "100"], flags=JOB_STDIN)
    link.wait("STARTED", job)
    link.send_raw(BROKEN[name].replace(b"\0\0\0\1", job.to_bytes(4, "big")))
    seen = link.wait_closed()
    assert seen and seen[-1].type == "ERROR" and seen[-1].fields["DETAIL"]
    link = Link(shared)
    assert link.list()[job]["STATE"] == 1
    link.forget_all()
    link.close()


def test_data_beyond_a_jobs_window_ends_the_link(shared):
    link = Link(shared)
    job = link.start(argv=["sleep", "100"], flags=JOB_STDIN)
    link.wait("STARTED", job)
    link.send_raw(frame("DATA", STDIN, job, b"x" * 32768) * 8)
    assert link.wait_closed()[-1].fields["DETAIL"] == b"data without credit of the job"
    link = Link(shared)
    link.forget_all()
    link.close()


@pytest.mark.parametrize("seed", range(8))
def test_pid_1_survives_any_bytes(shared, seed):
    dice = random.Random(seed)
    types = ["START", "GO", "DATA", "WINDOW", "EOF", "SIGNAL", "CANCEL", "ATTACH", "LIST", "FORGET", "PING", "PONG"]
    link = Link(shared)
    try:
        for _ in range(400):
            payload = dice.choice([b"", dice.randbytes(dice.randrange(60)), field("BYTES", dice.getrandbits(20)),
                                   field("SIGNAL", dice.randrange(1, 65)), field("GRACE_MS", dice.randrange(50)),
                                   field("COOKIE", 1), field("ARG", "true"), field("SCRIPT", "sleep 1") + field("SHELL", "sh")])
            link.send(dice.choice(types), dice.randrange(3), dice.randrange(1, 70), payload)
        link.send_raw(dice.randbytes(4000))
    except (BrokenPipeError, OSError):
        pass
    with pytest.raises(Closed):
        while True:
            link.recv(5)
    link = Link(shared)
    link.forget_all()
    assert link.run(argv=["echo", "ok"]).stdout == b"ok\n"
    link.close()


def test_many_pings_and_lists_are_all_answered(link):
    for i in range(200):
        link.send("PING", payload=field("COOKIE", i))
    assert sorted(link.wait("PONG").fields["COOKIE"] for _ in range(200)) == list(range(200))


def test_many_refused_starts_are_all_answered(link):
    jobs = [link.start(argv=["sleep", "100"]) for _ in range(64)]
    more = [link.start(argv=["true"]) for _ in range(300)]
    assert {link.finish(j).detail for j in more} == {"too_many_jobs"}
    for j in jobs:
        link.send("CANCEL", job=j, payload=field("GRACE_MS", 0))
    for j in jobs:
        link.finish(j)


# ---- who may connect ----

CONNECT = """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\\0berth-agent")
s.settimeout(5)
try: print(s.recv(1) == b"")
except ConnectionResetError: print(True)
"""


def test_a_job_is_refused(link):
    assert link.run(argv=[PYTHON, "-c", CONNECT]).stdout == b"True\n"


@pytest.mark.parametrize("uid", [0, 10001, 10003])
def test_a_process_from_outside_with_another_uid_is_refused(shared, uid):
    p = shared.enter([PYTHON, "-c", CONNECT], uid, stdout=subprocess.PIPE)
    assert p.communicate(timeout=10)[0] == b"True\n"


def test_a_child_of_a_bridge_user_is_refused(shared):
    p = shared.enter(["sh", "-c", f"{PYTHON} -c '{CONNECT}'; :"], 10002, stdout=subprocess.PIPE)
    assert p.communicate(timeout=10)[0].endswith(b"True\n")


def test_bridges_that_say_nothing_do_not_keep_others_out(sandbox):
    silent = [Link(sandbox, hello=False) for _ in range(8)]
    wait_for(lambda: sum(link.process.poll() is not None for link in silent) == 4)
    assert Link(sandbox).run(argv=["true"]).code == 0
    for link in silent:
        link.close()


def test_the_agent_refuses_to_run_elsewhere(shared):
    from conftest import AGENT
    p = subprocess.run([AGENT], capture_output=True, timeout=10)
    assert p.returncode == 2 and b"PID 1" in p.stderr
    p = subprocess.run([AGENT, "nonsense"], capture_output=True, timeout=10)
    assert p.returncode == 2 and b"usage" in p.stderr
    assert os.access(AGENT, os.X_OK)
