# SPDX-License-Identifier: MIT
"""GET /metrics of a berthd on a real engine: what is done is counted."""
import threading

import pytest

import prometheus
from berthd import wait_for


def metrics(b, token=None):
    r = b.call("GET", "/metrics", token=token)
    assert r.status == 200 and r.headers["Content-Type"] == prometheus.TYPE, r
    return prometheus.read(r.body.decode())


class Change:
    """What the metrics have risen by since it was made."""

    def __init__(self, b):
        self.b, self.before = b, metrics(b)

    def __getitem__(self, name):
        return metrics(self.b)[name] - self.before[name]


def test_commands_are_counted_by_their_end(berthd, session):
    change = Change(berthd)
    berthd.exec(session, "exit 3")
    berthd.exec(session, "kill -9 $$")
    berthd.exec(session, "sleep 60", timeout_s=0.2)
    berthd.exec(session, ["/no/such/program"])
    assert change["berth_commands_total{result=exited}"] == 1
    assert change["berth_commands_total{result=signalled}"] == 1
    assert change["berth_commands_total{result=timeout}"] == 1
    assert change["berth_commands_total{result=start_failed}"] == 1
    assert change["berth_exec_seconds_count"] == 4
    assert 0.2 <= change["berth_exec_seconds_sum"] < 60
    assert change["berth_queue_wait_seconds_count"] == 4
    assert change["berth_store_commit_seconds_count"] >= 4
    assert change["berth_store_writes_total{result=ok}"] >= 4
    assert change["berth_http_requests_total{code=200}"] >= 4


def test_processes_are_counted_for_themselves(berthd, session):
    change = Change(berthd)
    p = berthd.call("POST", f"/v1/sessions/{session}/processes", {"argv": ["sleep", "600"]})
    assert p.status == 201, p
    assert change["berth_processes_started_total"] == 1
    assert change["berth_processes_running"] == 1
    assert berthd.call("DELETE", f"/v1/sessions/{session}/processes/{p.json['id']}?grace_s=0").status == 200
    assert change["berth_processes_running"] == 0
    assert change["berth_commands_total{result=cancelled}"] == 0
    assert change["berth_exec_seconds_count"] == 0


def test_files_and_their_bytes_are_counted(berthd, session):
    change, root = Change(berthd), f"/v1/sessions/{session}/files"
    put = {"files": [{"path": "a.txt", "content_b64": "aGkK"}, {"path": "/proc/a", "content_b64": ""}]}
    assert berthd.call("POST", f"{root}/upload", put).status == 200
    assert berthd.call("POST", f"{root}/download", {"paths": ["a.txt", "nowhere"]}).status == 200
    assert berthd.call("GET", f"{root}/content?path=a.txt").body == b"hi\n"
    assert berthd.call("POST", f"{root}/delete", {"paths": ["a.txt"]}).status == 200
    assert change["berth_file_operations_total{operation=upload,result=ok}"] == 1
    assert change["berth_file_operations_total{operation=download,result=ok}"] == 1
    assert change["berth_file_operations_total{operation=download,result=not_found}"] == 1
    assert change["berth_file_operations_total{operation=read,result=ok}"] == 1
    assert change["berth_file_operations_total{operation=delete,result=ok}"] == 1
    assert change["berth_file_bytes_total{direction=in}"] == 3
    assert change["berth_file_bytes_total{direction=out}"] == 6


def test_a_session_is_seen_while_it_lives(own_berthd):
    own_berthd.start()
    assert metrics(own_berthd)["berth_sessions{state=ready}"] == 0
    change = Change(own_berthd)
    s = own_berthd.create(limits={"memory_mb": 256})["id"]
    assert metrics(own_berthd)["berth_sessions{state=ready}"] == 1
    assert change["berth_engine_calls_total{call=container_create,result=ok}"] >= 1
    assert change["berth_engine_calls_total{call=container_start,result=ok}"] >= 1
    assert change["berth_engine_calls_total{call=exec_start,result=ok}"] >= 1
    assert change["berth_engine_call_seconds_count"] >= 3
    # As Prometheus sees it after a restart.
    own_berthd.stop()
    own_berthd.start()
    assert metrics(own_berthd)["berth_sessions{state=ready}"] == 1
    assert own_berthd.call("DELETE", f"/v1/sessions/{s}").status == 200
    assert metrics(own_berthd)["berth_sessions{state=ready}"] == 0


def test_a_wait_in_the_queue_is_measured(own_berthd):
    own_berthd.settings["SANDBOX_MAX_CONCURRENCY"] = 1
    own_berthd.start()
    s = own_berthd.create(limits={"memory_mb": 256})["id"]
    first = threading.Thread(target=own_berthd.exec, args=(s, "sleep 600"))
    first.start()
    wait_for(lambda: metrics(own_berthd)["berth_commands_running"] == 1)
    r = own_berthd.call("POST", f"/v1/sessions/{s}/exec", {"command": "true", "timeout_s": 1})
    assert r.status == 429, r
    values = metrics(own_berthd)
    assert values["berth_queue_wait_seconds_count"] == 2
    assert values["berth_queue_wait_seconds_sum"] >= 1
    x = own_berthd.call("GET", f"/v1/sessions/{s}/execs").json["execs"][0]["id"]
    own_berthd.call("DELETE", f"/v1/sessions/{s}/execs/{x}?grace_s=0")
    first.join()
    assert metrics(own_berthd)["berth_commands_running"] == 0
    assert metrics(own_berthd)["berth_commands_total{result=cancelled}"] == 1


def test_an_engine_that_is_away_is_counted_and_holds_nobody_up(own_berthd):
    own_berthd.settings["SANDBOX_ENGINE"] = "unix:///nowhere/engine.sock"
    own_berthd.start()
    try:
        assert own_berthd.call("POST", "/v1/sessions", {}).status == 503
        values = metrics(own_berthd)
        assert values["berth_http_requests_total{code=503}"] == 1
    finally:
        own_berthd.settings.pop("SANDBOX_ENGINE")
        own_berthd.stop()


@pytest.mark.parametrize("token", [None, "session", "admin"])
def test_only_the_administrator_sees_tenants(berthd, token):
    from berthd import TOKEN
    s = berthd.create(limits={"memory_mb": 256})
    text = berthd.call("GET", "/metrics", token={"session": s["token"], "admin": TOKEN}.get(token)).body.decode()
    assert ("tenant" in text) == (token == "admin")
    for secret in (s["id"], s["token"], s["image"], TOKEN):
        assert secret not in text
    berthd.call("DELETE", f"/v1/sessions/{s['id']}")
