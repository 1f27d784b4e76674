# SPDX-License-Identifier: MIT
"""GET /metrics as Prometheus asks for it."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import prometheus  # noqa: E402


def metrics(server, token=None, headers=None):
    reply = server.ask("GET", "/metrics", token=token, headers=headers)
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == prometheus.TYPE
    return prometheus.read(reply.body.decode())


def test_the_text_is_without_fault(server):
    values = metrics(server)
    assert values["process_resident_memory_bytes"] > 0
    assert any(name.startswith("berth_build_info{version=") for name in values)


def test_requests_are_counted_by_their_status(server):
    before = metrics(server)
    assert server.ask("GET", "/nowhere").status == 404
    assert server.ask("GET", "/v1/sessions").status == 401
    assert server.ask("GET", "/v1/sessions", token="wrong").status == 401
    after = metrics(server)
    assert after["berth_http_requests_total{code=404}"] - before["berth_http_requests_total{code=404}"] == 1
    assert after["berth_http_requests_total{code=401}"] - before["berth_http_requests_total{code=401}"] == 2
    assert after["berth_http_requests_total{code=200}"] - before["berth_http_requests_total{code=200}"] == 1
    assert after["berth_unauthorized_requests_total"] - before["berth_unauthorized_requests_total"] == 2


def test_connections_are_those_that_are_open(own_server):
    with own_server.connect(), own_server.connect():
        assert metrics(own_server)["berth_connections"] == 3


@pytest.mark.parametrize("token", [None, "wrong", "session"])
def test_nobody_but_the_administrator_sees_a_tenant(server, session, token):
    values = metrics(server, session["token"] if token == "session" else token)
    assert not [name for name in values if "tenant" in name]
    assert not [name for name in values if session["id"] in name]


def test_the_administrator_sees_tenants(server):
    values = metrics(server, server.admin)
    assert values["berth_sessions{state=ready,tenant=default}"] >= 0
    assert "berth_connections" in values


def test_head_has_the_headers_alone(server):
    reply = server.ask("HEAD", "/metrics")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b"", prometheus.TYPE)


def test_a_body_or_a_parameter_is_refused(server):
    assert server.ask("GET", "/metrics?name[]=up").status == 400
    assert server.ask("POST", "/metrics", {}).status == 405
