"""Hardening proved from inside: hostile commands that take all there is of something. The session that they run in
answers afterwards, and a neighbour never notices (the fixtures `victim` and `neighbour` look)."""
import os, signal, time

import pytest

from berthd import wait_for
from hostile import HOSTILE, PLACES

# ---- processes ----

FORK_BOMBS = {
    "forks": f"exec {HOSTILE} fork",
    "forks that leave their parents": f"{HOSTILE} daemons; exec sleep 1000",
    "a shell's fork bomb": "bomb() { bomb | bomb & }; bomb; exec sleep 1000",
    "forks that ignore signals": f"trap '' TERM HUP INT; {HOSTILE} fork",
    "stopped forks": f"{HOSTILE} fork & while :; do kill -STOP -1; done 2>/dev/null",
}


@pytest.mark.parametrize("bomb", FORK_BOMBS)
def test_a_timeout_ends_in_seconds(victim, bomb):
    began = time.monotonic()
    reply = victim.exec(FORK_BOMBS[bomb], timeout_s=2)
    assert time.monotonic() - began < 15
    # one that hits its own supervisor ends earlier
    assert reply["reason"] == "timeout" and reply["timed_out"] or reply.get("detail") == "supervisor killed"


LEFT_BEHIND = {
    "forks": f"{HOSTILE} fork >/dev/null 2>&1 & sleep 0.5",
    "forks that leave their parents": f"{HOSTILE} daemons",
    "a shell's fork bomb": "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 0.5",
}


@pytest.mark.parametrize("bomb", LEFT_BEHIND)
def test_a_bomb_that_a_command_leaves_behind_gives_way_to_the_next_one(victim, bomb):
    victim.exec(LEFT_BEHIND[bomb], timeout_s=10)

    def over():
        """a command runs again, and it is the only one"""
        try:
            return victim.exec("exec true")["exit_code"] == 0 and victim.processes() == []
        except AssertionError:  # the bomb has taken the place of the second command
            return False
    wait_for(over, 15)


def test_servers_that_a_command_leaves_behind_stay(victim):
    assert victim.exec("for i in 1 2 3; do tail -f /dev/null & done")["lingering"] == 3
    assert victim.exec(FORK_BOMBS["forks"], timeout_s=2)["reason"] == "timeout"
    assert victim.processes() == ["tail"] * 3
    victim.sh("pkill tail")


def test_a_full_process_table_is_said_and_is_over_with_its_job(victim):
    job = victim.start(f"exec {HOSTILE} zombies", timeout_s=8)

    def full():
        """an exec is refused for want of a process"""
        reply = victim.exec("true")
        return reply["reason"] == "start_failed" and reply["detail"]
    assert "process limit" in wait_for(full, 8)
    reply = job.result()
    assert (reply["reason"], reply["output"].split()[1:]) == ("timeout", ["zombies,", "then", "EAGAIN"])


def test_a_storm_of_zombies_is_reaped(victim):
    orphans = "for i in $(seq 2000); do (true &) ; done"
    assert victim.exec(orphans, timeout_s=60)["exit_code"] == 0
    assert victim.sh("grep -h '^State' /proc/[0-9]*/status 2>/dev/null | grep -c Z || :") == "0\n"


# ---- memory ----

def memory_is_back(victim):
    """A quarter of the session's memory can be used again."""
    reply = victim.exec([HOSTILE, "memory", "128"])
    return reply["exit_code"] == 0


def test_a_memory_bomb_ends_as_oom(victim):
    reply = victim.exec([HOSTILE, "memory", "4096"])
    assert (reply["reason"], reply["exit_code"]) == ("oom", None)
    assert memory_is_back(victim)


def test_many_small_memory_bombs_end_by_oom_or_timeout(victim):
    reply = victim.exec([HOSTILE, "memory", "64", "64"], timeout_s=8)
    assert reply["reason"] in ("oom", "timeout")
    assert memory_is_back(victim)


@pytest.mark.parametrize("how", ["", "hold"])
def test_sysv_shared_memory_goes_with_its_job(victim, how):
    reply = victim.exec(f"exec {HOSTILE} shm 1024 {how}")
    assert reply["reason"] == ("oom" if how else "exited"), reply
    assert victim.sh("ipcs -m | grep -c ^0x || :") == "0\n"
    assert memory_is_back(victim)


def test_sysv_queues_and_semaphores_are_bounded(victim):
    reply = victim.exec([HOSTILE, "ipc"])
    assert reply["exit_code"] == 0, reply
    assert memory_is_back(victim)


def test_a_job_that_makes_itself_dear_to_the_oom_killer_costs_its_own_sandbox_at_most(own_victim):
    reply = own_victim.exec([HOSTILE, "memory", "16", "100", "0"], timeout_s=8)
    assert reply["reason"] in ("oom", "timeout", "sandbox_lost", "cancelled")

    def outcome():
        """it answers, or it is said to be lost"""
        session = own_victim.berthd.call("GET", f"/v1/sessions/{own_victim.id}").json
        if session["state"] != "ready":
            return session
        alive = own_victim.berthd.call("POST", f"/v1/sessions/{own_victim.id}/exec", {"command": "echo alive"})
        return alive.status == 200 and alive.json["output"] == "alive\n" and session
    session = wait_for(outcome, 30)
    if session["state"] != "ready":
        assert session["reason"] == "sandbox_lost" and "memory" in session["detail"], session


# ---- files ----

@pytest.mark.parametrize("place", PLACES)
def test_a_place_full_of_bytes_ends_at_its_size(victim, place):
    assert victim.attack("bytes", place) == [f"{place} ENOSPC"]
    assert victim.sh("echo on") == "on\n"
    victim.clean()


@pytest.mark.parametrize("place", PLACES)
def test_a_place_full_of_empty_files_ends_at_its_inodes(victim, place):
    [line] = victim.attack("files", 1000000, 255, place, timeout_s=60)
    assert line.split()[1] == "ENOSPC"
    assert victim.sh("echo on") == "on\n"
    victim.clean()


def test_all_places_full_of_files_and_of_bytes_leave_room_for_commands(victim):
    victim.attack("files", 1000000, 255, *PLACES, timeout_s=60)
    victim.sh(f"for p in {' '.join(PLACES)}; do rm $p/{'0' * 255}; done", timeout_s=60)
    assert victim.attack("bytes", *PLACES) == [f"{p} ENOSPC" for p in PLACES]
    for _ in range(5):
        assert victim.sh("seq 1000 | sort -rn | head -1") == "1000\n"
    victim.clean()
    assert memory_is_back(victim)


def test_a_million_files_in_a_workspace_in_memory_end_at_its_inodes(neighbour):
    v = neighbour.make(workspace={"kind": "tmpfs", "size_mb": 64})
    [line] = v.attack("files", 1000000, 255, "/workspace", timeout_s=60)
    assert line.split()[1] == "ENOSPC"
    v.check()
    v.delete()


def test_more_files_on_disk_than_the_memory_has_room_for_cost_no_command(own_victim):
    """An inode takes some 1 KiB as long as the kernel remembers it."""
    assert own_victim.attack("files", 300000, 1, "/workspace", timeout_s=120) == ["/workspace ok 300000"]
    own_victim.check()


# ---- output ----

FLOODS = {
    "lines": "exec yes",
    "one line without end": "exec cat /dev/zero",
    "both streams": "yes & exec yes >&2",
    "bytes that are no text": "exec cat /dev/urandom",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_output_is_cut_and_buffered_by_nobody(victim, flood):
    before = victim.berthd.rss_mb()
    reply = victim.exec(FLOODS[flood], timeout_s=3)
    assert (reply["reason"], reply["truncated"]) == ("timeout", True)
    assert reply["dropped_bytes"] > 1 << 20 and len(reply["output"]) < 101000
    assert victim.berthd.rss_mb() - before < 16


def test_a_flood_that_ends_is_counted_to_the_byte(victim):
    reply = victim.exec("yes | head -c 200000000", timeout_s=60)
    assert (reply["reason"], reply["exit_code"], reply["truncated"]) == ("exited", 0, True)
    cut = [line for line in reply["output"].split("\n") if line not in ("y", "")]
    assert len(cut) == 1 and str(reply["dropped_bytes"]) in cut[0], cut
    kept = len(reply["output"]) - len(cut[0])
    assert abs(kept + reply["dropped_bytes"] - 200000000) <= 2  # the line that tells of it stands on its own


# ---- the agent's socket, descriptors ----

def test_a_flood_of_connections_does_not_keep_the_bridge_out(victim):
    flood = victim.start(f"exec {HOSTILE} flood 16 60", timeout_s=90)
    wait_for(lambda: victim.processes().count("hostile") > 16)
    for _ in range(3):
        old = wait_for(victim.bridge)
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: victim.bridge() not in (None, old))
        began = time.monotonic()
        assert victim.sh("echo on") == "on\n"
        assert time.monotonic() - began < 10
    assert flood.is_alive()
    victim.sh("pkill -KILL hostile")
    assert flood.result()["reason"] == "signalled"


def test_jobs_that_take_all_descriptors_take_none_of_the_agents(victim):
    job = victim.start(f"exec {HOSTILE} fds 20", timeout_s=5)
    wait_for(lambda: victim.processes().count("hostile") == 20)
    for _ in range(20):
        assert victim.sh("echo on") == "on\n"
    reply = job.result()
    assert reply["reason"] == "timeout"
    assert set(reply["output"].split()) <= {"EMFILE", "ENFILE"}


def test_64_commands_at_once_and_no_more(victim):
    jobs = [victim.start("exec tail -f /dev/null", timeout_s=4) for _ in range(80)]
    for job in jobs:
        try:
            reply = job.result()
            assert reply["reason"] == "timeout"
        except AssertionError as refused:  # a busy session says so
            assert "429" in str(refused), refused


# ---- time ----

def test_a_job_whose_leader_is_traced_by_another_still_ends_in_time(own_victim):
    leader = own_victim.start("echo $$ >/tmp/leader; exec sleep 1000", timeout_s=3)
    wait_for(lambda: own_victim.exec("test -s /tmp/leader")["exit_code"] == 0)
    tracer = own_victim.start("exec strace -qq -o /dev/null -p $(cat /tmp/leader)", timeout_s=6)
    wait_for(lambda: "strace" in own_victim.processes())
    own_victim.sh("pkill -STOP strace")
    began = time.monotonic()
    assert leader.result()["reason"] in ("timeout", "sandbox_lost")
    assert time.monotonic() - began < 15
    tracer.result()
