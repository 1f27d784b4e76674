"""Hardening proved from inside: what a hostile command tries, and gets refused. Neither its own session nor a neighbour
is the worse for it (the fixtures `victim` and `neighbour` look)."""
import os, signal, time

import pytest

from berthd import wait_for
from hostile import BRIDGE_UID, HOSTILE, PLACES, Background, build_image, engine_exec

# ---- places ----

DEVICES = {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx",
           "/dev/mqueue",  # holds message queues, which the kernel bounds, and no files
           "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"}  # take wishes to be told, no bytes


def test_nothing_outside_of_the_named_places_can_be_written(victim):
    found = victim.attack("writable", timeout_s=120)
    assert set(PLACES) | {"/workspace"} <= set(found)
    named = tuple(p + "/" for p in [*PLACES, "/workspace"])
    assert {p for p in found if not (p + "/").startswith(named)} - DEVICES == set()


# ---- system calls ----

EPERM, OFF = {"EPERM"}, {"EPERM", "ENOSYS"}  # OFF: not in every kernel
CALLS = {
    **{name: EPERM for name in """
        mount umount2 pivot_root chroot open_tree move_mount mount_setattr fsopen fspick fsconfig fsmount
        mknod_null mknod_memory mknod_disk
        raw_ipv4 raw_any raw_ipv6 packet_raw packet_dgram
        add_key request_key keyctl bpf userfaultfd io_uring_setup perf_event_open
        unshare_user unshare_mount unshare_pid unshare_net unshare_ipc unshare_uts unshare_cgroup unshare_time
        clone_user clone_mount clone_pid clone_net clone_ipc clone_uts clone_cgroup
        setns_user setns_mount setns_pid setns_net setns_ipc setns_uts setns_cgroup
        settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname
        setuid setgid setresuid setresgid setgroups capset chown setrlimit sched_setscheduler
        reboot init_module delete_module swapon swapoff syslog open_by_handle_at vhangup pidfd_getfd iopl ioperm
    """.split()},
    "clone3": {"ENOSYS"},
    "acct": OFF, "quotactl": OFF, "kexec_load": OFF, "fanotify_init": OFF, "lookup_dcookie": OFF,
    "setpriority": {"EACCES"},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_job_may_not(victim, name):
    [line] = victim.attack("call", name)
    assert line.split()[1] in CALLS[name]


@pytest.mark.parametrize("call", ["i386", "x32"])
def test_a_system_call_of_another_architecture_ends_the_process(victim, call):
    reply = victim.exec([HOSTILE, "foreign", call])
    assert (reply["reason"], reply["output"]) == ("signalled", "")
    assert reply["signal"] in ("SIGSYS", signal.SIGSYS) or call == "i386" and reply["signal"] in ("SIGSEGV", signal.SIGSEGV)


TOOLS = {
    "unshare -Urm": "unshare -Urm true",
    "mount of a tmpfs": "mount -t tmpfs none /tmp",
    "umount": "umount -l /tmp",
    "mknod": "mknod /tmp/disk b 254 0",
    "clock": "date -s @0",
    "hostname": "hostname evil || { echo evil >/proc/sys/kernel/hostname; }",
    "sysctl": "echo 1 >/proc/sys/net/ipv4/ip_forward",
    "core pattern": "echo '|/tmp/x' >/proc/sys/kernel/core_pattern",
    "sysrq": "echo b >/proc/sysrq-trigger",
    "cgroup": "mkdir /sys/fs/cgroup/memory/x || mkdir /sys/fs/cgroup/x",
    "its own program": "echo x >>/.berth/berth-agent || rm /.berth/berth-agent || mv /.berth /tmp",
    "reading its own program": "cat /.berth/berth-agent",
    "a copy of a device": "cp -a /dev/zero /tmp/zero",
    "hard link to another's file": "ln /etc/passwd /tmp/passwd",
    "ping": "ping -c 1 -W 1 10.0.0.1",
}


@pytest.mark.parametrize("what", TOOLS)
def test_a_tool_fails_at(victim, what):
    before = victim.sh("hostname; cat /proc/sys/kernel/hostname")
    reply = victim.exec(TOOLS[what])
    assert reply["reason"] == "exited" and reply["exit_code"] != 0, reply
    assert victim.sh("hostname; cat /proc/sys/kernel/hostname") == before
    assert abs(int(victim.sh("date +%s")) - time.time()) < 30


# ---- network ----

ADDRESSES = ["10.0.0.1", "172.17.0.1", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "1.1.1.1",
             "255.255.255.255", "224.0.0.1", "2606:4700:4700::1111", "fd00:ec2::254", "fe80::1"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_but_loopback_is_reached(victim, address):
    for line in victim.attack("reach", address):
        assert line.split()[2] in ("ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EINVAL", "EAFNOSUPPORT", "EACCES"), line


def test_loopback_works(victim):
    assert victim.attack("loopback") == ["ok"]


# ---- privileges ----

NOBODY = "Uid: 10001 10001 10001 10001 Gid: 10001 10001 10001 10001 CapPrm: 0000000000000000 CapEff: 0000000000000000"


def test_no_set_id_program_of_the_image_gives_anything(victim):
    programs = victim.sh("find / -xdev -type f -perm /6000 2>/dev/null || :").split()
    assert any(p.endswith("/su") for p in programs) and any(p.endswith("/passwd") for p in programs)
    for line in victim.attack("ids", *programs):
        assert line.split(" ", 1)[1] in (NOBODY, "does not start " + NOBODY)


@pytest.fixture(scope="module")
def hostile_image(engine):
    return build_image(engine, "localhost/berth/test-hostile")


@pytest.fixture
def hostile_session(arena, hostile_image):
    s = arena.berthd.create(image=hostile_image, limits={"memory_mb": 256, "pids": 64})
    yield s["id"]
    arena.berthd.call("DELETE", f"/v1/sessions/{s['id']}")


def test_a_set_uid_program_that_the_image_brings_along_gives_nothing(neighbour, hostile_session):
    mode = neighbour.berthd.sh(hostile_session, ["stat", "-c", "%u %a", "/suid"])
    assert mode == "0 6755\n"
    assert neighbour.berthd.sh(hostile_session, ["/x", "ids", "/suid"]) == f"/suid {NOBODY}\n"


# ---- the agent's socket ----

def test_a_job_that_connects_to_the_agent_is_hung_up_on(victim):
    for _ in range(5):
        assert victim.attack("connect") == ["closed"]


def test_a_job_cannot_take_the_name_of_the_agents_socket(victim):
    assert victim.attack("bind") == ["EADDRINUSE"]


HELLO = "answered 1\n"  # what the bridge would get
VISITORS = {
    "a health check": ("10001:10001", [HOSTILE, "connect"], "closed\n"),
    "root by the engine": ("0:0", [HOSTILE, "connect"], "closed\n"),
    "a child of one with the bridge's uid": (f"{BRIDGE_UID}:{BRIDGE_UID}", ["sh", "-c", f"{HOSTILE} connect; :"], "closed\n"),
}


@pytest.mark.parametrize("who", VISITORS)
def test_the_agent_hangs_up_on(victim, engine, who):
    user, argv, answer = VISITORS[who]
    victim.sh(f"chmod 0711 /workspace; cp {HOSTILE} /tmp/ && chmod 0711 /tmp")
    try:
        assert engine_exec(engine, victim.container, argv, user) == answer
    finally:
        victim.sh("chmod 0700 /workspace /tmp")


def test_the_same_visit_as_the_bridge_is_let_in_so_that_the_tests_above_prove_something(own_victim, engine):
    own_victim.sh("chmod 0711 /workspace")
    who = f"{BRIDGE_UID}:{BRIDGE_UID}"
    assert engine_exec(engine, own_victim.container, [HOSTILE, "connect"], who) == HELLO


def test_the_health_check_of_an_image_never_runs(neighbour, engine, hostile_session):
    container = neighbour.berthd.container_of(hostile_session)
    found = engine.inspect(container)
    assert (found["Config"].get("Healthcheck") or {}).get("Test") in (None, [], ["NONE"])
    assert "Health" not in found["State"] or found["State"]["Health"].get("Status") in (None, "", "none")
    # twice its interval; a check would have left its trace
    assert neighbour.berthd.sh(hostile_session, ["sh", "-c", "sleep 2.2; ls /tmp"]) == ""
    assert engine_exec(engine, container, ["/x", "connect"], "10001:10001") == "closed\n"


# ---- other processes ----

def test_pid_1_shows_and_yields_nothing(victim):
    assert victim.attack("spy", 1) == []


def test_a_supervisor_shows_and_yields_nothing(victim):
    assert victim.sh(f"{HOSTILE} spy $PPID") == ""


def test_the_bridge_shows_and_yields_nothing(victim):
    found = f"grep -l '^Uid:.*{BRIDGE_UID}' /proc/[0-9]*/status | cut -d/ -f3"
    assert victim.sh(f"b=$({found}); test -n \"$b\" && {HOSTILE} spy $b") == ""


def test_a_jobs_own_child_yields_all_so_that_the_tests_above_prove_something(victim):
    seen = victim.sh(f"sleep 60 & {HOSTILE} spy $!; kill $!").split()
    assert {"read:environ", "read:mem", "link:exe", "list:fd", "seize", "attach"} <= set(seen)


def race(victim, comm, argument, count, start_some):
    """How many processes the attacker seized of `count` that it saw begin."""
    job = victim.start(f"exec {HOSTILE} race {comm} {argument} {count}", timeout_s=180)
    wait_for(lambda: "hostile" in victim.processes())
    while job.is_alive():
        start_some()
    ready, _, seen, _, seized = job.result()["output"].split()
    assert ready == "ready" and int(seen) >= count
    return int(seized)


def test_100_starts_of_the_agents_program_cannot_be_seized(victim):
    assert race(victim, "berth-agent", "version", 100, lambda: victim.attack("starts", 50, "/.berth/berth-agent", "version")) == 0


def test_starts_of_a_readable_program_are_seized_so_that_the_races_prove_something(victim):
    victim.sh(f"cp {HOSTILE} /tmp/prey")
    assert race(victim, "prey", "x", 100, lambda: victim.attack("starts", 50, "/tmp/prey", "x")) > 0


def start_bridges(victim):
    """Some, each as the daemon starts it."""
    argv, user = ["/.berth/berth-agent", "bridge"], f"{BRIDGE_UID}:{BRIDGE_UID}"
    for b in [Background(lambda: engine_exec(victim.engine, victim.container, argv, user)) for _ in range(5)]:
        b.result()


def kill_bridge(victim):
    """Kills it from outside, and waits until the daemon has opened another; which comes ever later, if that goes on."""
    old = wait_for(victim.bridge)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: victim.bridge() not in (None, old))
    assert victim.sh("echo on") == "on\n"


def test_100_starts_of_the_bridge_cannot_be_seized(victim):
    assert race(victim, "berth-agent", "bridge", 100, lambda: start_bridges(victim)) == 0


def test_a_job_outlives_its_bridge_and_cannot_seize_the_next_ones(victim):
    assert race(victim, "berth-agent", "bridge", 5, lambda: kill_bridge(victim)) == 0


# ---- signals ----

def test_pid_1_survives_every_signal_also_with_a_forged_sender(victim):
    assert victim.attack("signals", 1) == ["sent"]


def test_the_bridge_survives_every_signal(victim):
    before = victim.bridge()
    found = f"grep -l '^Uid:.*{BRIDGE_UID}' /proc/[0-9]*/status | cut -d/ -f3"
    assert victim.sh(f"b=$({found}); test -n \"$b\" && {HOSTILE} signals $b") == "sent\n"
    assert victim.bridge() == before


def test_the_limits_and_the_priority_of_pid_1_are_not_a_jobs_to_lower(victim):
    assert {line.split()[1] for line in victim.attack("oppress", 1)} == {"EPERM"}


def test_kill_all_ends_the_jobs_and_nothing_else(victim):
    other = victim.start("exec tail -f /dev/null")
    wait_for(lambda: "tail" in victim.processes())
    for job in victim.start("kill -9 -1"), other:
        reply = job.result()
        assert (reply["reason"], reply["exit_code"], reply["detail"]) == ("cancelled", None, "supervisor killed")


@pytest.mark.parametrize("sig", ["KILL", "STOP"])
def test_a_supervisor_that_its_job_hits_ends_the_job_and_its_descendants(victim, sig):
    reply = victim.exec(f"sleep 1000 & setsid sleep 1001 & kill -{sig} $PPID; sleep 1002")
    assert (reply["reason"], reply["exit_code"], reply["detail"]) == ("cancelled", None, "supervisor killed")


@pytest.mark.parametrize("sig", [s for s in range(1, 65) if s not in (9, 19, 32, 33)])
def test_a_supervisor_ignores_signal(victim, sig):
    assert victim.sh(f"kill -{sig} $PPID; echo on") == "on\n"


# ---- streams and arguments ----

def test_a_closed_stdin_is_the_jobs_own_affair(victim):
    reply = victim.exec("exec 0<&-; cat; read x; echo $?")
    assert (reply["reason"], reply["exit_code"]) == ("exited", 0)
    assert reply["output"].endswith("1\n")


def test_a_command_without_input_reads_the_end_at_once(victim):
    assert victim.sh("cat; wc -c") == "0\n"


def test_a_command_of_200_kib_runs(victim):
    assert victim.sh(f"x={'a' * 200 * 1024}; echo ${{#x}}") == f"{200 * 1024}\n"


def test_arguments_of_200_kib_together_arrive(victim):
    assert victim.sh(["/bin/sh", "-c", "echo $#", "sh", *["a" * 2048] * 100]) == "100\n"


def test_one_argument_of_200_kib_is_refused_with_its_reason(victim):
    reply = victim.exec(["/bin/echo", "a" * 200 * 1024])
    assert (reply["reason"], reply["exit_code"]) == ("start_failed", None)
    assert "Argument list too long" in reply["detail"]
