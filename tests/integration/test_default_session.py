"""The session that SANDBOX_TOKEN stands for: made once, found again, made anew on the same files."""
import concurrent.futures, json, re

import pytest

from berthd import Berthd, TOKEN, wait_for

MINE = "default-session-token-0123456789"


@pytest.fixture
def own(own_berthd):
    own_berthd.settings["SANDBOX_TOKEN"] = MINE
    own_berthd.settings["ATLAS_SANDBOX_MEM"] = "256m"
    return own_berthd.start()


def run(b, command, ok=True, **more):
    """A command of the default session, by the paths at the root."""
    r = b.call("POST", "/exec", {"command": command, **more}, token=MINE)
    assert r.status == 200, r
    assert not ok or r.json["exit_code"] == 0, r
    return r.json["output"]


def default_of(b):
    found = [s for s in b.sessions() if s["workspace"]["name"] == "default"]
    assert len(found) == 1, found
    return found[0]


def workspace_volumes(b):
    return [v["Name"] for v in b.engine.volumes(b.instance) if (v.get("Labels") or {}).get("org.berth.role") == "workspace"]


def count_made(b):
    return len(re.findall(r'"event":\s*"the default session is being made"', b.log.read_text()))


def test_many_first_requests_make_one_session(own):
    assert own.sessions() == [] and count_made(own) == 0
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda i: own.call("POST", "/exec", {"command": f"echo {i}"}, token=MINE), range(12)))
    assert [(r.status, r.json["output"]) for r in replies] == [(200, f"{i}\n") for i in range(12)]
    s = default_of(own)
    assert (s["ttl_s"], s["idle_s"], s["expires_at"], s["idle_at"]) == (0, 0, None, None)
    assert (s["network"], s["workspace"]["kind"]) == ("none", "named")
    assert count_made(own) == 1
    assert "the default session is ready" in own.log.read_text()


def test_it_is_found_again_after_a_restart(own):
    run(own, "echo kept > /workspace/a; echo also > ~/b")
    before = default_of(own)["id"]
    own.kill()
    own.start()
    assert run(own, "cat /workspace/a ~/b") == "kept\nalso\n"
    assert default_of(own)["id"] == before and count_made(own) == 1
    # The token is the setting's, not the session's: another one opens the same session, the old one nothing.
    own.stop()
    own.settings["SANDBOX_TOKEN"] = "another-" + MINE
    own.start()
    assert own.call("POST", "/exec", {"command": "cat a"}, token="another-" + MINE).json["output"] == "kept\n"
    assert own.call("POST", "/exec", {"command": "true"}, token=MINE).status == 401
    assert default_of(own)["id"] == before


def test_a_lost_container_is_replaced_on_the_same_files(own):
    run(own, "mkdir d; echo kept > d/a; echo gone > ~/b; touch -d 2001-02-03 d/a; chmod 640 d/a")
    before = default_of(own)["id"]
    own.engine.call("DELETE", f"/containers/{own.container_of(before)}?force=true", ok=(200, 204))
    assert run(own, "cat d/a; stat -c '%Y %a %u' d/a; ls -A ~") == "kept\n981158400 640 10001\n"
    after = default_of(own)["id"]
    assert after != before
    assert own.call("GET", f"/v1/sessions/{before}").json["reason"] == "sandbox_lost"
    own.call("DELETE", f"/v1/sessions/{after}")
    assert run(own, "cat d/a") == "kept\n"


def test_many_requests_after_a_loss_make_one_session(own):
    run(own, "echo kept > a")
    own.engine.call("DELETE", f"/containers/{own.container_of(default_of(own)['id'])}?force=true", ok=(200, 204))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: own.call("POST", "/exec", {"command": "cat a"}, token=MINE), range(8)))
    assert [(r.status, r.json["output"]) for r in replies] == [(200, "kept\n")] * 8
    assert count_made(own) == 2


def test_its_workspace_goes_only_when_asked_for(own):
    run(own, "echo kept > a")
    s = default_of(own)["id"]
    assert own.call("DELETE", f"/v1/sessions/{s}?workspace=keep").status == 400
    assert own.call("DELETE", f"/v1/sessions/{s}").status == 200
    assert own.engine.remains(own.instance) == []
    assert len(workspace_volumes(own)) == 1
    # Reconcile has looked when a stray volume is gone; the workspace is none.
    own.engine.call("POST", "/volumes/create", {"Name": f"berth-{own.instance}-stray", "Driver": "local", "Labels": {
        "org.berth.instance": own.instance, "org.berth.sandbox": "b_aaaaaaaaaaaaaaaaaaaa", "org.berth.role": "session"}})
    own.kill()
    own.start()
    wait_for(lambda: own.engine.remains(own.instance) == [], 60)
    assert len(workspace_volumes(own)) == 1
    assert run(own, "cat a") == "kept\n"
    # In use by another session now: not by the id of the one before.
    assert own.call("DELETE", f"/v1/sessions/{s}?workspace=delete").status == 409
    s = default_of(own)["id"]
    assert own.call("DELETE", f"/v1/sessions/{s}?workspace=delete").status == 200
    assert workspace_volumes(own) == [] and own.engine.remains(own.instance) == []
    assert own.rows("SELECT count(*) AS n FROM audit WHERE action = 'workspace.delete'") == [{"n": 1}]
    assert own.call("DELETE", f"/v1/sessions/{s}?workspace=delete").status == 200  # what is gone is gone
    assert run(own, "ls -A") == ""


def test_a_session_with_a_workspace_of_its_own_has_none_to_delete(own):
    s = own.create(limits={"memory_mb": 64})["id"]
    r = own.call("DELETE", f"/v1/sessions/{s}?workspace=delete")
    assert (r.status, r.json["error"]["field"]) == (400, "workspace")
    assert own.call("POST", "/v1/sessions", {"workspace": {"kind": "named", "name": "default"}}).status == 501


def test_its_token_opens_this_session_alone(own):
    other = own.create(limits={"memory_mb": 64})
    run(own, "true")
    mine = default_of(own)["id"]
    assert own.call("GET", f"/v1/sessions/{mine}", token=MINE).status == 200
    assert own.call("POST", f"/v1/sessions/{mine}/exec", {"command": "true"}, token=MINE).status == 200
    assert own.call("GET", f"/v1/sessions/{other['id']}", token=MINE).status == 404
    assert own.call("POST", f"/v1/sessions/{other['id']}/exec", {"command": "true"}, token=MINE).status == 404
    for method, path in ("GET", "/v1/sessions"), ("POST", "/v1/sessions"), ("DELETE", f"/v1/sessions/{mine}"):
        assert own.call(method, path, token=MINE).status == 403
    assert own.call("POST", "/exec", {"command": "true"}, token=MINE + "x").status == 401


def test_killed_while_it_is_being_made(own):
    """Whatever was made is removed, and the next berthd makes it on the next use."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        broken = pool.submit(lambda: own.call("POST", "/exec", {"command": "true"}, token=MINE))
        wait_for(lambda: count_made(own) == 1, 30)
        wait_for(lambda: own.engine.remains(own.instance), 60)
        own.kill()
        assert broken.exception(60)
    own.start()
    assert run(own, "echo again") == "again\n"
    default_of(own)


def test_an_image_that_is_missing_is_told_to_all_who_wait(own_berthd):
    own_berthd.settings.update(SANDBOX_TOKEN=MINE, SANDBOX_IMAGE="localhost/berth/none:latest")
    own_berthd.start()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: own_berthd.call("POST", "/exec", {"command": "true"}, token=MINE), range(4)))
    assert {(r.status, r.json["error"]["field"]) for r in replies} == {(404, "image")}
    assert own_berthd.engine.remains(own_berthd.instance) == [] and workspace_volumes(own_berthd) == []


def test_alone_it_lets_an_admin_token_be_made(engine):
    b = Berthd(engine, SANDBOX_TOKEN=MINE, SANDBOX_ADMIN_TOKEN="")
    try:
        b.start()
        admin = (b.data / "state/admin-token").read_text().strip()
        assert admin != MINE
        assert b.call("GET", "/v1/sessions", token=admin).status == 200
        assert b.call("GET", "/v1/sessions", token=MINE).status == 403
    finally:
        b.stop()
        b.clean()


def test_the_admin_token_is_refused_for_it(engine):
    b = Berthd(engine, SANDBOX_TOKEN=TOKEN)
    try:
        b.start(wait=False)
        assert b.process.wait(30) != 0
        lines = b.log.read_text().splitlines()
        assert len(lines) == 1 and "SANDBOX_TOKEN" in lines[0] and TOKEN not in lines[0]
    finally:
        b.clean()


def test_its_token_is_in_no_log_row_or_container(own):
    run(own, "true")
    assert MINE not in own.log.read_text()
    assert MINE.encode() not in (own.data / "state/berth.db").read_bytes()
    assert MINE not in json.dumps(own.engine.inspect(own.container_of(default_of(own)["id"])))
    assert MINE not in run(own, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
