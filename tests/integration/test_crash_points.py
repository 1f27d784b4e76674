"""kill -9 of berthd at exact points. Afterwards: what lived is usable, what was half-made says so, nothing is left over."""
import http.client, subprocess

import pytest

from berthd import BUILD, wait_for
from crash import (GATED, Proxied, Stream, await_end, exec_row, in_container, is_gone, later, main_pid, nothing_left,
                   store_stands, workspace)
from proxy import CUT

SESSION_CREATE = r"POST [^ ]*/containers/create(?!.*-helper)"
HELPER_CREATE = r"POST [^ ]*/containers/create.*-helper"


@pytest.fixture(scope="module")
def proxied(engine):
    """A daemon that is killed and started again, with a session that has to live through all of it."""
    b = Proxied(engine).start()
    b.neighbour = b.create()["id"]
    yield b
    b.destroy()


@pytest.fixture
def killed(proxied):
    """The daemon; kill() in a hook, restart() afterwards. Then its neighbour is asked, and all must be as before."""
    before = proxied.engine.remains(proxied.instance)
    yield proxied
    proxied.proxy.calm()
    assert proxied.sh(proxied.neighbour, "echo here") == "here\n"
    for s in proxied.sessions():
        if s["id"] != proxied.neighbour:
            assert proxied.call("DELETE", f"/v1/sessions/{s['id']}").status == 200
    nothing_left(proxied, before)
    assert [r["id"] for r in proxied.rows("SELECT id FROM session WHERE state NOT IN ('gone', 'failed')")] == [proxied.neighbour]


def kill_at(berthd, pattern, when):
    return berthd.proxy.rule(pattern, **{when: berthd.kill})


def newest(berthd):
    return berthd.rows("SELECT id FROM session ORDER BY created_ms DESC, rowid DESC LIMIT 1")[0]["id"]


# ---- create ----

@pytest.mark.parametrize("when", ["before", "reply"])
@pytest.mark.parametrize("point", [r"POST [^ ]*/volumes/create", HELPER_CREATE, SESSION_CREATE, r"POST [^ ]*/start ",
                                   r"POST [^ ]*/containers/[^ ]*/exec ", r"POST [^ ]*/exec/[^ ]*/start"],
                         ids=["volume", "helper", "container", "start", "bridge", "hello"])
def test_a_create_cut_short_leaves_nothing(killed, point, when):
    before = killed.engine.remains(killed.instance)
    rule = kill_at(killed, point, when)
    asked = later(killed.call, "POST", "/v1/sessions", {})
    killed.process.wait(30)
    assert asked.result() is None and rule.hit.is_set()
    killed.start()
    row = is_gone(killed, newest(killed))
    assert row["reason"] == "manager_restarted", row
    nothing_left(killed, before)


# ---- delete ----

@pytest.mark.parametrize("when", ["before", "reply"])
@pytest.mark.parametrize("point", [r"DELETE [^ ]*/containers/", r"DELETE [^ ]*/volumes/"], ids=["container", "volume"])
def test_a_delete_cut_short_is_finished(killed, point, when):
    before = killed.engine.remains(killed.instance)
    session = killed.create()["id"]
    kill_at(killed, point, when)
    asked = later(killed.call, "DELETE", f"/v1/sessions/{session}")
    killed.process.wait(30)
    assert asked.result() is None
    killed.start()
    assert is_gone(killed, session)["reason"] == "deleted"
    nothing_left(killed, before)


# ---- exec ----

def kill_while_it_runs(berthd, session, kind):
    """Returns the request that was cut."""
    headers = {"Idempotency-Key": "once"} if kind == "key" else None
    cut = Stream(berthd, session, {"command": GATED}, headers, "exec/stream" if kind == "stream" else "exec")
    if kind == "stream":
        assert cut.line()["data"] == "before\n"
    workspace(berthd, session).await_file("started")
    berthd.kill()
    return cut


@pytest.mark.parametrize("end", ["while it is dead", "afterwards"])
@pytest.mark.parametrize("kind", ["plain", "stream", "key"])
def test_a_command_outlives_the_manager(killed, kind, end):
    session = killed.create()["id"]
    cut = kill_while_it_runs(killed, session, kind)
    with pytest.raises((http.client.HTTPException, OSError)):  # no body that looks whole
        cut.reply.read()
    files = workspace(killed, session)
    row = exec_row(killed, session)
    assert row["id"] == cut.id  # it was told before the crash
    init = main_pid(killed.engine, killed.container_of(session))
    if end == "while it is dead":
        files.touch("go")
        wait_for(lambda: not any(GATED in line for line in in_container(init).values()))
    killed.start()
    if end == "afterwards":
        assert killed.call("GET", f"/v1/sessions/{session}/execs/{row['id']}").json["state"] == "running"
        files.touch("go")
    reply = await_end(killed, session, row["id"])
    assert (reply["reason"], reply["exit_code"], reply["timed_out"]) == ("exited", 7, False), reply
    if kind == "stream":  # what the first client has read is the client's
        assert reply["output"].endswith("after\n"), reply
    else:
        assert (reply["output"], reply["truncated"]) == ("before\nafter\n", False), reply
    if kind == "key":
        again = killed.call("POST", f"/v1/sessions/{session}/exec", {"command": GATED}, headers={"Idempotency-Key": "once"})
        assert (again.status, again.headers["X-Exec-Id"]) == (200, row["id"]), again
        assert again.json["output"] == reply["output"]
    assert files.read("count") == "x\n"


def cut_at(berthd, frame):
    """The link breaks when this frame of berthd's is on its way, and the agent does not get it; once."""
    def hook(what, aux, job, forwarded):
        if what == frame:
            berthd.proxy.on_frame(None)
            return CUT
    berthd.proxy.on_frame(hook)


@pytest.mark.parametrize("path", ["exec", "exec/stream"])
def test_a_command_whose_start_was_lost_with_the_link_says_that_it_never_ran(killed, path):
    session = killed.create()["id"]
    cut_at(killed, "START")
    asked = Stream(killed, session, {"command": "touch ran"}, path=path)
    reply = asked.line() if path == "exec" else asked.rest()[1]
    assert reply["reason"] == "start_failed" and "nothing of it ran" in reply["detail"], reply
    assert reply["exit_code"] is None
    assert killed.sh(session, "ls") == ""


def test_a_command_whose_go_was_lost_with_the_link_runs_once(killed):
    session = killed.create()["id"]
    cut_at(killed, "GO")
    assert killed.sh(session, "echo x >>count; cat count") == "x\n"


def test_a_request_repeated_by_its_key_waits_for_the_command_of_before(killed):
    session = killed.create()["id"]
    kill_while_it_runs(killed, session, "key")
    killed.start()
    again = later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": GATED}, headers={"Idempotency-Key": "once"})
    workspace(killed, session).touch("go")
    reply = again.result(60)
    assert (reply.status, reply.json["output"], reply.json["exit_code"]) == (200, "before\nafter\n", 7), reply
    assert killed.sh(session, "cat count") == "x\n"


def test_a_command_between_start_and_go_runs_once_its_row_is_there(killed):
    session = killed.create()["id"]

    def hook(kind, aux, job, forwarded):
        if kind == "GO":
            killed.kill()
            return CUT

    killed.proxy.on_frame(hook)
    asked = later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": "echo x >>count; echo ran"})
    killed.process.wait(30)
    assert asked.result() is None
    killed.proxy.calm()
    row = exec_row(killed, session)
    assert row and not row["ended_ms"]
    killed.start()
    reply = await_end(killed, session, row["id"])
    assert (reply["output"], reply["exit_code"]) == ("ran\n", 0), reply
    assert killed.sh(session, "cat count") == "x\n"


def test_a_command_without_a_row_never_runs(killed):
    session = killed.create()["id"]
    init = main_pid(killed.engine, killed.container_of(session))
    idle = len(in_container(init))

    def hook(kind, aux, job, forwarded):
        if kind == "START" and forwarded:
            wait_for(lambda: len(in_container(init)) > idle)  # its supervisor stands before execve
            killed.kill()
            return CUT

    with store_stands(killed):
        killed.proxy.on_frame(hook)
        asked = later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": "echo x >>count"})
        killed.process.wait(30)
        killed.proxy.calm()
    assert asked.result() is None and not exec_row(killed, session)
    killed.start()
    wait_for(lambda: len(in_container(init)) == idle)
    assert killed.sh(session, "cat count 2>&1; true").startswith("cat: ")


def test_an_end_that_was_told_but_not_stored_is_told_again(killed):
    session = killed.create()["id"]
    asked = later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": GATED})
    files = workspace(killed, session)
    files.await_file("started")
    wait_for(lambda: exec_row(killed, session))
    with store_stands(killed):
        files.touch("go")
        told = asked.result(30).json  # a reply does not wait for its row
        killed.kill()
    assert not exec_row(killed, session)["ended_ms"]
    killed.start()
    again = await_end(killed, session, told["id"])
    for field in ("output", "exit_code", "reason", "duration_ms", "peak_memory", "dropped_bytes"):
        assert again[field] == told[field], field
    assert files.read("count") == "x\n"


def test_input_that_died_with_the_manager_does_not_pass_for_the_whole(killed):
    session = killed.create()["id"]
    command = "touch started; while [ ! -e go ]; do sleep 0.05; done; wc -c; touch whole"
    later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": command, "stdin": "y" * 2_000_000})
    files = workspace(killed, session)
    files.await_file("started")
    killed.kill()
    killed.start()
    files.touch("go")
    reply = await_end(killed, session, exec_row(killed, session)["id"])
    assert reply["reason"] == "cancelled" and reply["exit_code"] is None, reply
    assert not files.has("whole")


def test_commands_of_before_count_against_the_concurrency(killed):
    session = killed.create()["id"]
    for _ in range(4):
        later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": "touch started.$$; sleep 60"})
    wait_for(lambda: len(list(workspace(killed, session).path.glob("started.*"))) == 4)
    killed.kill()
    killed.start()
    r = killed.call("POST", f"/v1/sessions/{session}/exec", {"command": "true", "timeout_s": 1})
    assert (r.status, r.json["error"]["code"]) == (429, "limit_exceeded"), r


# ---- delivery, stop, a second one ----

@pytest.mark.parametrize("when", ["before", "reply"])
@pytest.mark.parametrize("point", [r"POST [^ ]*/volumes/create", r"POST [^ ]*/containers/create", r"POST [^ ]*/start ",
                                   r"DELETE [^ ]*/containers/"], ids=["volume", "container", "start", "remove"])
def test_a_delivery_cut_short_leaves_one_volume(engine, point, when):
    b = Proxied(engine)
    try:
        kill_at(b, point, when)
        b.start(wait=False)
        b.process.wait(30)
        b.start()
        session = b.create()["id"]
        assert b.sh(session, "echo hi") == "hi\n"
        assert b.call("DELETE", f"/v1/sessions/{session}").status == 200
        wait_for(lambda: len(engine.volumes(b.instance)) == 1 and not engine.containers(b.instance))
    finally:
        b.destroy()


def test_a_stop_takes_seconds_and_leaves_all_that_runs(killed):
    session = killed.create()["id"]
    asked = [later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": GATED}) for _ in range(4)]
    files = workspace(killed, session)
    wait_for(lambda: files.read("count") == "x\n" * 4)
    queued = later(killed.call, "POST", f"/v1/sessions/{session}/exec", {"command": "touch queued"})
    stream = Stream(killed, killed.neighbour, {"command": "echo on; sleep 5; echo off"})
    assert stream.line()["data"] == "on\n"
    killed.process.terminate()
    killed.process.wait(8)
    assert killed.process.returncode == 0
    assert [a.result() for a in asked] == [None] * 4  # cut off; their ids were told before
    assert (queued.result() is None or queued.result().status == 503)
    assert stream.rest()[1]["type"] == "error"
    ids = [r["id"] for r in killed.rows("SELECT id FROM exec WHERE session = ? AND ended_ms = 0", session)]
    assert len(ids) == 4
    killed.start()
    files.touch("go")
    for i in ids:
        reply = await_end(killed, session, i)
        assert (reply["output"], reply["exit_code"]) == ("before\nafter\n", 7), reply
    assert not files.has("queued")


def test_a_second_daemon_on_the_same_folder_does_not_start(proxied):
    env = {**proxied.environment(), "SANDBOX_LISTEN": "127.0.0.1:0"}
    r = subprocess.run([str(BUILD / "berthd")], env=env, capture_output=True, text=True, timeout=20)
    assert r.returncode != 0
    said = [line for line in (r.stdout + r.stderr).splitlines() if line]
    assert len(said) == 1 and "another berthd uses" in said[0], said
