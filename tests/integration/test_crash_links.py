"""Links and containers that break, sessions whose time is over, clients that go: what goes on, what ends, and how it says so."""
import contextlib, hashlib, json, os, signal, time

import pytest

from berthd import IMAGE, TOKEN, wait_for
from crash import (GATED, Stream, await_end, bridges, in_container, is_gone, later, main_pid, nothing_left, workspace)


@pytest.fixture(autouse=True)
def as_before(berthd, engine):
    """Each test leaves nothing."""
    before, fds = engine.remains(berthd.instance), berthd.descriptors()
    yield
    for s in berthd.sessions():
        assert berthd.call("DELETE", f"/v1/sessions/{s['id']}").status in (200, 404)
    nothing_left(berthd, before)
    wait_for(lambda: berthd.descriptors() <= max(fds, 60))  # some connections to the engine are kept


def post(berthd, session, body, **headers):
    return later(berthd.call, "POST", f"/v1/sessions/{session}/exec", body, headers=headers or None)


def kill_bridge(pid):
    """Kills the bridge and waits for the next one."""
    old = wait_for(lambda: bridges(pid), 20)
    for p in old:
        with contextlib.suppress(ProcessLookupError):
            os.kill(p, signal.SIGKILL)
    wait_for(lambda: any(p not in old for p in bridges(pid)), 20)


# ---- bridges ----

def test_output_has_no_gap_over_twenty_bridges(berthd, engine):
    session = berthd.create()["id"]
    pid = main_pid(engine, berthd.container_of(session))
    stream = Stream(berthd, session, {"command": "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.001; done; echo end"})
    rest = later(stream.rest)
    plain = post(berthd, session, {"command": "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.05; done; echo end"})
    files = workspace(berthd, session)
    wait_for(lambda: len(in_container(pid)) >= 7)
    fds = 0
    for i in range(20):
        kill_bridge(pid)
        fds = fds or berthd.descriptors()
    files.touch("stop")
    output, last = rest.result(60)
    for what, text in (("stream", output), ("plain", plain.result(60).json["output"])):
        lines = text.split()
        assert lines == [str(i) for i in range(1, len(lines))] + ["end"], what
        assert len(lines) > 20
    assert (last["exit_code"], last["dropped_bytes"], last["truncated"]) == (0, 0, False), last
    assert plain.result().json["exit_code"] == 0
    wait_for(lambda: len(in_container(pid)) == 2)  # PID 1 and one bridge
    # Up to 16 connections to the engine are kept, as many as were in use at once; a leak shows 20 times.
    wait_for(lambda: berthd.descriptors() < fds + 16)


def test_input_has_no_gap_over_bridges(berthd, engine):
    session = berthd.create()["id"]
    pid = main_pid(engine, berthd.container_of(session))
    text = "".join(f"{i:09}\n" for i in range(600_000))
    gate = "while [ ! -e go%d ]; do sleep 0.02; done"
    some = "dd bs=1000 count=1000 iflag=fullblock 2>/dev/null"
    command = f"({some}; touch at1; {gate % 1}; {some}; touch at2; {gate % 2}; cat) | sha256sum"
    reply = post(berthd, session, {"command": command, "stdin": text})
    files = workspace(berthd, session)
    for i in (1, 2):
        files.await_file(f"at{i}")
        kill_bridge(pid)
        kill_bridge(pid)
        files.touch(f"go{i}")
    kill_bridge(pid)
    assert reply.result(60).json["output"].split()[0] == hashlib.sha256(text.encode()).hexdigest()


# ---- containers ----

BLOWS = {
    "killed": lambda e, c: e.call("POST", f"/containers/{c}/kill"),
    "stopped": lambda e, c: e.call("POST", f"/containers/{c}/stop?t=0"),
    "removed": lambda e, c: e.call("DELETE", f"/containers/{c}?force=true"),
}


@pytest.mark.parametrize("blow", BLOWS)
def test_a_container_ended_from_outside_is_a_lost_session(berthd, engine, blow):
    session = berthd.create()["id"]
    plain = post(berthd, session, {"command": "echo on; touch started; sleep 100"})
    stream = Stream(berthd, session, {"command": "echo on; sleep 100"})
    keyed = post(berthd, session, {"command": "sleep 100"}, **{"Idempotency-Key": "k"})
    workspace(berthd, session).await_file("started")
    assert stream.line()["data"] == "on\n"
    BLOWS[blow](engine, berthd.container_of(session))
    row = is_gone(berthd, session, 10)
    assert row["reason"] == "sandbox_lost" and row["detail"], row
    reply = plain.result(10).json
    assert (reply["reason"], reply["exit_code"], reply["output"]) == ("sandbox_lost", None, "on\n"), reply
    assert stream.rest()[1]["reason"] == "sandbox_lost"
    assert keyed.result(10).json["reason"] == "sandbox_lost"
    nothing_left(berthd, timeout=10)
    r = berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "true"})
    assert (r.status, r.json["error"]["code"]) == (410, "session_gone")


def test_a_container_started_again_from_outside_has_lost_its_commands(berthd, engine):
    session = berthd.create()["id"]
    reply = post(berthd, session, {"command": "touch started; sleep 100"})
    workspace(berthd, session).await_file("started")
    # berthd may see it between its two lives, and remove it: then the engine has nothing to start
    engine.call("POST", f"/containers/{berthd.container_of(session)}/restart?t=0", ok=(204, 404, 409, 500))
    assert reply.result(30).json["reason"] == "sandbox_lost", reply.result()


def test_a_paused_container_is_not_lost_and_its_clocks_stand(berthd, engine):
    session = berthd.create()["id"]
    container = berthd.container_of(session)
    reply = post(berthd, session, {"command": "touch started; sleep 4; echo done", "timeout_s": 8})
    workspace(berthd, session).await_file("started")
    at = len(berthd.log.read_text())
    engine.call("POST", f"/containers/{container}/pause")
    # after 30 s of silence the link is given up, and the next one is refused by the engine
    wait_for(lambda: "is paused" in berthd.log.read_text()[at:], 60)
    assert berthd.call("GET", f"/v1/sessions/{session}").json["state"] == "ready"
    r = berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "true"})
    assert r.status == 409 and "paused" in r.json["error"]["message"], r
    engine.call("POST", f"/containers/{container}/unpause")
    end = reply.result(60).json
    assert (end["reason"], end["output"], end["timed_out"]) == ("exited", "done\n", False), end
    assert berthd.sh(session, "echo on") == "on\n"


def test_a_paused_container_can_be_deleted(berthd, engine):
    session = berthd.create()["id"]
    engine.call("POST", f"/containers/{berthd.container_of(session)}/pause")
    assert berthd.call("DELETE", f"/v1/sessions/{session}").status == 200


# ---- strays ----

def test_strays_of_ours_are_removed_and_others_are_not_touched(berthd, engine):
    def make(name, labels):
        engine.call("POST", "/volumes/create", {"Name": f"{name}-vol", "Labels": labels})
        engine.call("POST", f"/containers/create?name={name}", {"Image": IMAGE, "Cmd": ["true"], "Labels": labels})

    tag = os.urandom(4).hex()
    ours = {"org.berth.instance": berthd.instance, "org.berth.sandbox": f"b_{tag}", "org.berth.role": "session"}
    theirs = {**ours, "org.berth.instance": f"other-{tag}"}
    make(f"ours-{tag}", ours)
    make(f"theirs-{tag}", theirs)
    make(f"plain-{tag}", {"app": "x"})
    try:
        wait_for(lambda: not engine.remains(berthd.instance), 20)
        for name in (f"theirs-{tag}", f"plain-{tag}"):
            assert engine.inspect(name) and engine.call("GET", f"/volumes/{name}-vol")
    finally:
        for name in (f"theirs-{tag}", f"plain-{tag}", f"ours-{tag}"):
            engine.call("DELETE", f"/containers/{name}?force=true", ok=(200, 204, 404))
            engine.call("DELETE", f"/volumes/{name}-vol?force=true", ok=(200, 204, 404))


# ---- deadlines ----

def test_a_ttl_ends_a_session_and_what_runs_in_it(berthd):
    session = berthd.create()["id"]
    reply = post(berthd, session, {"command": "echo on; touch started; sleep 100"})
    workspace(berthd, session).await_file("started")
    assert berthd.call("PATCH", f"/v1/sessions/{session}", {"ttl_s": 1}).status == 200
    assert is_gone(berthd, session, 15)["reason"] == "expired"
    assert (reply.result(5).json["reason"], reply.result().json["output"]) == ("sandbox_lost", "on\n"), reply.result()
    nothing_left(berthd, timeout=5)


def test_a_patch_moves_the_deadlines(berthd):
    kept = berthd.create(ttl_s=6)["id"]
    assert berthd.call("PATCH", f"/v1/sessions/{kept}", {"ttl_s": 100}).status == 200
    left, shorter = berthd.create(ttl_s=6)["id"], berthd.create()["id"]
    assert berthd.call("PATCH", f"/v1/sessions/{shorter}", {"idle_s": 2}).status == 200
    assert is_gone(berthd, left, 20)["reason"] == "expired"
    assert is_gone(berthd, shorter, 20)["reason"] == "idle"
    assert berthd.sh(kept, "echo here") == "here\n"


def test_idle_is_without_a_command(berthd):
    busy = berthd.create()["id"]
    reply = post(berthd, busy, {"command": GATED})
    files = workspace(berthd, busy)
    files.await_file("started")
    assert berthd.call("PATCH", f"/v1/sessions/{busy}", {"idle_s": 1}).status == 200
    idle = berthd.create(idle_s=2)["id"]
    assert is_gone(berthd, idle, 15)["reason"] == "idle"
    assert berthd.call("GET", f"/v1/sessions/{busy}").json["state"] == "ready"
    files.touch("go")
    assert reply.result(10).json["exit_code"] == 7
    assert is_gone(berthd, busy, 15)["reason"] == "idle"


def test_deadlines_pass_while_the_manager_is_dead(own_berthd):
    own_berthd.start()
    expires, idles, lives = own_berthd.create(ttl_s=2)["id"], own_berthd.create(idle_s=2)["id"], own_berthd.create()["id"]
    own_berthd.kill()
    rows = own_berthd.rows("SELECT max(expires_ms * (ttl_s = 2)) AS e, max(idle_ms * (idle_s = 2)) AS i FROM session")[0]
    wait_for(lambda: time.time() * 1000 > max(rows["e"], rows["i"]))
    own_berthd.start()
    assert is_gone(own_berthd, expires, 15)["reason"] == "expired"
    assert is_gone(own_berthd, idles, 15)["reason"] == "idle"
    assert own_berthd.sh(lives, "echo here") == "here\n"


# ---- clients ----

def ask(berthd, session, body, **headers):
    """A request whose client can go: returns its connection."""
    c = berthd.connect()
    c.request("POST", f"/v1/sessions/{session}/exec", json.dumps(body),
              {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers})
    return c


def newest_exec(berthd, session):
    return berthd.call("GET", f"/v1/sessions/{session}/execs").json["execs"][0]["id"]


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_a_client_that_hangs_up_cancels_its_command(berthd, engine, kind):
    session = berthd.create()["id"]
    pid = main_pid(engine, berthd.container_of(session))
    command = "trap 'touch asked' TERM; setsid sleep 1000 & touch started; while :; do sleep 0.1; done"
    if kind == "plain":
        client = ask(berthd, session, {"command": command})
        workspace(berthd, session).await_file("started")
        client.close()
    else:
        client = Stream(berthd, session, {"command": command})
        workspace(berthd, session).await_file("started")
        client.hang_up()
    reply = await_end(berthd, session, newest_exec(berthd, session))
    assert reply["reason"] == "cancelled" and reply["exit_code"] is None, reply
    wait_for(lambda: len(in_container(pid)) == 2)
    assert workspace(berthd, session).has("asked")


def test_with_a_key_a_client_may_go_and_come_back(berthd):
    session = berthd.create()["id"]
    client = ask(berthd, session, {"command": GATED}, **{"Idempotency-Key": "a"})
    files = workspace(berthd, session)
    files.await_file("started")
    client.close()
    again = ask(berthd, session, {"command": GATED}, **{"Idempotency-Key": "a"})
    files.touch("go")
    r = again.getresponse()
    reply = json.loads(r.read())
    assert (r.status, reply["output"], reply["exit_code"]) == (200, "before\nafter\n", 7), reply
    assert files.read("count") == "x\n"
    other = berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "true"}, headers={"Idempotency-Key": "a"})
    assert other.status == 409, other


def eventfds(berthd):
    found = 0
    for fd in os.listdir(f"/proc/{berthd.process.pid}/fd"):
        with contextlib.suppress(OSError):
            found += "eventfd" in os.readlink(f"/proc/{berthd.process.pid}/fd/{fd}")
    return found


def test_the_queue_of_a_session(berthd):
    """Four run, the fifth waits, in order; who waits too long gets 429, who hangs up is out."""
    session = berthd.create()["id"]
    command = "echo %s >>order; while [ ! -e go%s ]; do sleep 0.02; done"
    running = [post(berthd, session, {"command": command % (i, i)}) for i in "abcd"]
    files = workspace(berthd, session)
    wait_for(lambda: len(files.read("order").split()) == 4)
    queued = {}
    for i in "efgh":  # each waits on an eventfd of its own
        n = eventfds(berthd)
        queued[i] = ask(berthd, session, {"command": command % (i, i)})
        wait_for(lambda: eventfds(berthd) == n + 1)
    late = berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "touch late", "timeout_s": 1})
    assert (late.status, late.json["error"]["code"]) == (429, "limit_exceeded") and late.headers["Retry-After"], late
    n = eventfds(berthd)
    queued.pop("f").close()
    wait_for(lambda: eventfds(berthd) == n - 1)
    for done, started in (("a", "e"), ("b", "g"), ("c", "h")):
        files.touch(f"go{done}")
        wait_for(lambda: started in files.read("order"))
    for i in "degh":
        files.touch(f"go{i}")
    assert all(r.result(20).json["exit_code"] == 0 for r in running)
    assert all(json.loads(c.getresponse().read())["exit_code"] == 0 for c in queued.values())
    assert files.read("order").split()[4:] == ["e", "g", "h"] and not files.has("late")
