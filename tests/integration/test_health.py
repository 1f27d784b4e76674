"""GET /health, open at the root and for a session, as a client of a server with one sandbox reads it."""
import io, os, tarfile, threading

import pytest

from berthd import Berthd, IMAGE, TOKEN, UnixConnection, wait_for

MINE = "default-session-token-0123456789"
SIX = {"ok", "version", "workspace", "busy", "processes", "tools"}
WHOLE = SIX | {"runtime", "sessions", "engine", "store", "pool", "degraded"}
VERSIONS = b"bash 5.2.15\ngit 2.39.5\nbroken\n"


def health(b, path="/health", token=None):
    r = b.call("GET", path, token=token)
    assert r.status == (200 if r.json["ok"] else 503)
    return r.json


@pytest.fixture(scope="module")
def image(engine):
    """An image that says which tools it has."""
    name = f"localhost/berth/test-tools-{os.urandom(4).hex()}"
    made = engine.call("POST", "/containers/create", {"Image": IMAGE, "Cmd": ["true"], "User": "0:0"})["Id"]
    try:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            info = tarfile.TarInfo("versions")
            info.size, info.mode = len(VERSIONS), 0o644
            tar.addfile(info, io.BytesIO(VERSIONS))
        c = UnixConnection(engine.path, 60)
        c.request("PUT", f"/containers/{made}/archive?path=/usr/share/berth", out.getvalue(), {"Content-Type": "application/x-tar"})
        assert c.getresponse().status == 200
        c.close()
        engine.call("POST", f"/commit?container={made}&repo={name}&tag=latest", {})
    finally:
        engine.call("DELETE", f"/containers/{made}?force=true")
    yield f"{name}:latest"
    engine.call("DELETE", f"/images/{name}:latest?force=true", ok=(200, 404))


def test_it_is_open_and_makes_nothing(own_berthd):
    own_berthd.settings["SANDBOX_TOKEN"] = MINE
    own_berthd.start()
    for token in None, MINE, TOKEN, "not a token of ours":
        h = wait_for(lambda: (lambda h: h["ok"] and h)(health(own_berthd, token=token)))
        assert set(h) == WHOLE
        assert (h["workspace"], h["busy"], h["processes"], h["tools"], h["sessions"]) == ("/workspace", 0, 0, {}, 0)
        assert h["engine"]["ok"] and own_berthd.engine.kind in h["engine"]["detail"] and h["store"] == {"ok": True, "detail": "ok"}
        assert h["pool"] == {"ready": 0, "filling": 0, "hits": 0, "misses": 0} and isinstance(h["degraded"], list)
    r = own_berthd.call("HEAD", "/health", token=None)
    assert r.status == 200 and r.body == b""
    assert own_berthd.sessions() == []


def test_its_six_fields_are_the_default_sessions(own_berthd, image):
    b = own_berthd
    b.settings.update(SANDBOX_TOKEN=MINE, SANDBOX_IMAGE=image, ATLAS_SANDBOX_MEM="256m")
    b.start()
    other = b.create(limits={"memory_mb": 64})
    assert b.call("POST", "/exec", {"command": "true"}, token=MINE).status == 200
    assert wait_for(lambda: health(b)["tools"]) == {"bash": "5.2.15", "git": "2.39.5"}
    assert health(b)["busy"] == 0
    t = threading.Thread(target=b.call, args=("POST", "/exec", {"command": "sleep 300"}), kwargs={"token": MINE})
    t.start()
    wait_for(lambda: health(b)["busy"] == 1)
    assert health(b, token=other["token"]) == {**{k: health(b)[k] for k in SIX}, "busy": 0}
    assert health(b, f"/v1/sessions/{other['id']}/health", TOKEN)["busy"] == 0
    mine = next(s["id"] for s in b.sessions() if s["id"] != other["id"])
    assert set(health(b, f"/v1/sessions/{mine}/health", MINE)) == SIX
    assert health(b, f"/v1/sessions/{mine}/health", MINE)["busy"] == 1
    b.call("DELETE", f"/v1/sessions/{mine}")
    t.join(60)
    wait_for(lambda: health(b)["busy"] == 0)
    assert health(b)["tools"] == {"bash": "5.2.15", "git": "2.39.5"}  # of the image, session or not


def test_a_session_tells_its_own_with_its_token(berthd, image, session):
    s = berthd.create(limits={"memory_mb": 64}, image=image)
    path = f"/v1/sessions/{s['id']}/health"
    assert set(health(berthd, path, s["token"])) == SIX
    assert wait_for(lambda: health(berthd, path, TOKEN)["tools"]) == {"bash": "5.2.15", "git": "2.39.5"}
    assert health(berthd, token=s["token"]) == health(berthd, path, s["token"])
    assert berthd.call("GET", path, token=None).status == 401
    assert berthd.call("GET", f"/v1/sessions/{session}/health", token=s["token"]).status == 404
    berthd.call("DELETE", f"/v1/sessions/{s['id']}")
    assert berthd.call("GET", path).status == 410
    assert set(health(berthd, token=s["token"])) == WHOLE  # it always answers


def test_the_sandbox_image_tells_its_tools(berthd, session):
    tools = wait_for(lambda: health(berthd)["tools"])
    assert tools["bash"].startswith("5.") and tools["git"] and tools["python3"].startswith("3.")
    assert health(berthd, f"/v1/sessions/{session}/health", TOKEN)["tools"] == tools


def test_an_image_without_a_list_has_no_tools(berthd):
    s = berthd.create(limits={"memory_mb": 128}, image="localhost/berth/test-minimal:latest")
    assert health(berthd, f"/v1/sessions/{s['id']}/health", TOKEN)["tools"] == {}
    assert berthd.call("POST", f"/v1/sessions/{s['id']}/exec", {"argv": ["/bin/true"]}).json["exit_code"] == 0
    berthd.call("DELETE", f"/v1/sessions/{s['id']}")


def test_it_answers_while_the_engine_is_away(engine):
    b = Berthd(engine, SANDBOX_ENGINE="unix:///var/tmp/berth-no-engine.sock").start()
    try:
        h = health(b)
        assert not h["ok"] and not h["engine"]["ok"] and h["store"]["ok"] and set(h) == WHOLE
        assert h["degraded"][0] == "engine: " + h["engine"]["detail"]
    finally:
        b.stop()
        b.clean()
