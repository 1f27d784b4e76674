# SPDX-License-Identifier: MIT
"""GET /openapi.json: served to all, and only when it is new to the client."""
import json


def test_it_is_served_without_a_token(server):
    reply = server.ask("GET", "/openapi.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json["openapi"] == "3.1.0"
    assert "/exec" in reply.json["paths"] and "/v1/sessions/{session}/exec" in reply.json["paths"]


def test_a_client_that_has_it_gets_nothing_again(server):
    tag = server.ask("GET", "/openapi.json").headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        reply = server.ask("GET", "/openapi.json", headers={"If-None-Match": known})
        assert (reply.status, reply.body, reply.headers["etag"]) == (304, b"", tag), known
    for other in ('"other"', tag[1:-1], "", "W/"):
        assert server.ask("GET", "/openapi.json", headers={"If-None-Match": other}).status == 200, other


def test_head_tells_its_length(server):
    whole, head = server.ask("GET", "/openapi.json"), server.ask("HEAD", "/openapi.json")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) == len(whole.body)
    assert head.headers["etag"] == whole.headers["etag"]


def test_it_says_nothing_of_this_server(server, session):
    text = server.ask("GET", "/openapi.json").body.decode()
    assert session["id"] not in text and server.admin not in text
    assert json.loads(text)["servers"] == [{"url": "/"}]
