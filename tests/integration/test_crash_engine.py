"""An engine that is away, hangs, loses its replies, is slow, restarts or is killed."""
import os, subprocess, time

import pytest

from berthd import Berthd, Engine, TOP, wait_for
from crash import GATED, Proxied, await_end, exec_row, is_gone, later, nothing_left, workspace
from proxy import CUT

OWN = {"BERTH_TEST_ENGINES": os.environ.get("BERTH_CRASH_ENGINES", "/var/tmp/berth-crash-engines")}


class OwnEngine(Engine):
    def run(self, verb, **env):
        super().run(verb, **OWN, **env)


@pytest.fixture(scope="module", params=["docker", "podman"])
def own_engine(request):
    """An engine of these tests alone, to be restarted and killed."""
    script = TOP / "tests/engines" / f"{request.param}.sh"
    out = subprocess.run([str(script), "start"], check=True, timeout=120, stdout=subprocess.PIPE, text=True, env={**os.environ, **OWN}).stdout
    address = next(w for w in out.split() if w.startswith("unix://"))
    engine = OwnEngine(request.param, address, script)
    try:
        subprocess.run(["make", "-s", "image"], cwd=TOP, check=True, timeout=1200, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SANDBOX_ENGINE": address})
        yield engine
    finally:
        engine.run("stop")


@pytest.fixture(scope="module")
def daemon(engine):
    b = Proxied(engine).start()
    b.call("DELETE", f"/v1/sessions/{b.create()['id']}")  # the agent is delivered
    yield b
    b.destroy()


@pytest.fixture
def proxied(daemon):
    yield daemon
    daemon.proxy.calm()
    for s in daemon.sessions():
        daemon.call("DELETE", f"/v1/sessions/{s['id']}")
    nothing_left(daemon, timeout=60)


def post(berthd, session, body, **headers):
    return later(berthd.call, "POST", f"/v1/sessions/{session}/exec", body, headers=headers or None)


# ---- replies ----

@pytest.mark.parametrize("point", [r"POST [^ ]*/volumes/create", r"POST [^ ]*/containers/create(?!.*-helper)", r"POST [^ ]*/start ",
                                   r"POST [^ ]*/containers/[^ ]*/exec ", r"POST [^ ]*/exec/[^ ]*/start", r"GET [^ ]*/containers/[^ ]*/json"],
                         ids=["volume", "container", "start", "bridge", "hello", "inspect"])
def test_a_lost_reply_leaves_nothing(proxied, point):
    rule = proxied.proxy.rule(point, reply=lambda: CUT)
    r = proxied.call("POST", "/v1/sessions", {})
    assert rule.hit.is_set()
    if r.status == 201:  # what may be asked twice was asked twice
        assert proxied.sh(r.json["id"], "echo hi") == "hi\n"
        assert proxied.call("DELETE", f"/v1/sessions/{r.json['id']}").status == 200
    else:
        assert r.status == 503 and r.json["error"]["code"], r
        assert proxied.rows("SELECT state FROM session ORDER BY created_ms DESC")[0]["state"] == "failed"
    nothing_left(proxied)
    assert proxied.call("DELETE", f"/v1/sessions/{proxied.create()['id']}").status == 200


def test_a_lost_reply_of_a_removal_is_asked_again(proxied):
    session = proxied.create()["id"]
    rule = proxied.proxy.rule(r"DELETE [^ ]*/containers/", reply=lambda: CUT)
    r = proxied.call("DELETE", f"/v1/sessions/{session}")
    assert rule.hit.is_set() and r.status in (200, 202), r
    assert is_gone(proxied, session)["reason"] == "deleted"
    nothing_left(proxied)


def test_a_slow_engine_is_only_slow(proxied):
    proxied.proxy.delay_s = 0.1
    session = proxied.create()["id"]
    assert proxied.sh(session, "echo hi") == "hi\n"
    assert proxied.call("DELETE", f"/v1/sessions/{session}").status == 200
    nothing_left(proxied)


# ---- away ----

def test_an_engine_that_is_away_comes_back(proxied):
    kept, deleted = proxied.create()["id"], proxied.create()["id"]
    running = post(proxied, kept, {"command": GATED})
    files = workspace(proxied, kept)
    files.await_file("started")
    proxied.proxy.close()
    for path, body in (("/v1/sessions", {}), (f"/v1/sessions/{kept}/exec", {"command": "touch ran"})):
        r = proxied.call("POST", path, body)
        assert (r.status, r.json["error"]["code"]) == (503, "engine_unavailable") and int(r.headers["Retry-After"]) > 0, r
    r = proxied.call("DELETE", f"/v1/sessions/{deleted}")
    assert (r.status, r.json["state"]) == (202, "stopping"), r
    assert proxied.call("GET", f"/v1/sessions/{deleted}").json["state"] == "stopping"
    assert proxied.call("GET", f"/v1/sessions/{kept}").json["state"] == "ready"
    assert proxied.call("GET", "/health", token=None).status == 503
    files.touch("go")
    proxied.proxy.open()
    assert (running.result(60).json["output"], running.result().json["exit_code"]) == ("before\nafter\n", 7)
    assert is_gone(proxied, deleted)["reason"] == "deleted"
    wait_for(lambda: proxied.call("GET", "/health", token=None).status == 200)
    assert proxied.sh(kept, "ls") == "count\ngo\nstarted\n"
    assert proxied.call("DELETE", f"/v1/sessions/{kept}").status == 200
    nothing_left(proxied)


def test_a_manager_starts_without_an_engine(engine):
    b = Proxied(engine)
    try:
        b.proxy.close()
        b.start()
        r = b.call("POST", "/v1/sessions", {})
        assert (r.status, r.json["error"]["code"]) == (503, "engine_unavailable") and r.headers["Retry-After"], r
        b.proxy.open()
        wait_for(lambda: b.call("POST", "/v1/sessions", {}).status == 201, 20)
    finally:
        b.destroy()


def test_an_engine_that_hangs_costs_no_more_than_its_deadlines(proxied):
    linked, deleted = proxied.create()["id"], proxied.create()["id"]
    proxied.sh(linked, "true")
    proxied.proxy.gate.clear()
    began = time.monotonic()
    delete, create = later(proxied.call, "DELETE", f"/v1/sessions/{deleted}"), later(proxied.call, "POST", "/v1/sessions", {})
    health = proxied.call("GET", "/health", token=None, timeout=10)
    assert health.status == 503
    while not (delete.done() and create.done()):  # a link that is open asks nothing of the engine
        assert proxied.sh(linked, "echo on") == "on\n"
        time.sleep(1)
    took = time.monotonic() - began
    assert (delete.result().status, delete.result().json["state"]) == (202, "stopping"), delete.result()
    assert create.result().status in (503, 504), create.result()
    assert took < 70, took
    proxied.proxy.calm()
    assert is_gone(proxied, deleted, 60)["reason"] == "deleted"
    assert proxied.call("DELETE", f"/v1/sessions/{linked}").status == 200
    nothing_left(proxied, timeout=60)


# ---- restarts ----

@pytest.fixture
def on_own(own_engine):
    b = Berthd(own_engine).start()
    yield b
    b.destroy()


def blow(engine, kind):
    if kind == "restart":
        engine.run("restart")
    else:
        engine.run("kill")
        engine.run("start")


@pytest.mark.parametrize("manager", ["alive", "dead"])
@pytest.mark.parametrize("kind", ["restart", "kill"])
def test_sessions_survive_an_engine_that_restarts(on_own, own_engine, kind, manager):
    session = on_own.create()["id"]
    asked = post(on_own, session, {"command": GATED})
    files = workspace(on_own, session)
    files.await_file("started")
    row = wait_for(lambda: exec_row(on_own, session))
    if manager == "dead":
        on_own.kill()
    blow(own_engine, kind)
    if manager == "dead":
        on_own.start()
    files.touch("go")
    reply = await_end(on_own, session, row["id"])
    assert (reply["output"], reply["exit_code"]) == ("before\nafter\n", 7), reply
    if manager == "alive":
        assert asked.result(20).json["output"] == reply["output"]
    assert on_own.sh(session, "cat count") == "x\n"
    assert on_own.call("DELETE", f"/v1/sessions/{session}").status == 200
    nothing_left(on_own)


def test_containers_that_end_with_their_engine_are_lost_sessions(on_own, own_engine):
    """Docker without live-restore; Podman as at a reboot of its machine."""
    sessions = [on_own.create()["id"] for _ in range(2)]
    asked = post(on_own, sessions[0], {"command": "touch started; sleep 100"})
    workspace(on_own, sessions[0]).await_file("started")
    if own_engine.kind == "docker":
        own_engine.run("restart", LIVE_RESTORE="0")
    else:
        own_engine.run("stop", KEEP="1")
        own_engine.run("start", KEEP="1")
    for s in sessions:
        assert is_gone(on_own, s, 60)["reason"] == "sandbox_lost"
    assert asked.result(20).json["reason"] == "sandbox_lost"
    nothing_left(on_own)
    assert on_own.sh(on_own.create()["id"], "echo hi") == "hi\n"
