"""The main job: a session, a command in it, its end."""
import base64, json

import pytest


def test_a_session_is_made_with_what_was_asked_and_is_gone_after_delete(berthd, engine):
    before = engine.remains(berthd.instance)
    r = berthd.call("POST", "/v1/sessions", {"name": "one", "labels": {"a": "b"}, "limits": {"memory_mb": 512, "cpus": 1.5, "pids": 100}})
    assert r.status == 201, r
    s = r.json
    assert s["state"] == "ready" and s["token"]
    assert s["limits"] == {"memory_mb": 512, "cpus": 1.5, "pids": 100}
    assert berthd.sh(s["id"], "echo hi") == "hi\n"
    r = berthd.call("DELETE", f"/v1/sessions/{s['id']}")
    assert r.status == 200, r
    assert engine.remains(berthd.instance) == before
    assert berthd.call("DELETE", f"/v1/sessions/{s['id']}").status == 404
    gone = berthd.call("GET", f"/v1/sessions/{s['id']}").json
    assert (gone["state"], gone["reason"]) == ("gone", "deleted")
    r = berthd.call("POST", f"/v1/sessions/{s['id']}/exec", {"command": "true"})
    assert (r.status, r.json["error"]["code"]) == (410, "session_gone")
