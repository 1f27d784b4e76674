# SPDX-License-Identifier: MIT
"""What hostile or broken clients send, byte by byte, and what must become of it."""
import json
import threading
import time

import pytest

from conftest import parse, read_all

HOST = "Host: localhost"
JSON = "Content-Type: application/json"

# name, request line, header lines, body, status, code
REFUSED = [
    ("two Content-Length that agree", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Content-Length: 2", "Content-Length: 2"], b"{}", 400, "invalid_argument"),
    ("two Content-Length that differ", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Content-Length: 2", "Content-Length: 4"], b"{}", 400, "invalid_argument"),
    ("Content-Length with Transfer-Encoding", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Content-Length: 2", "Transfer-Encoding: chunked"], b"0\r\n\r\n", 400, "invalid_argument"),
    ("two Transfer-Encoding", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n", 400, "invalid_argument"),
    ("another Transfer-Encoding", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n", 501, "not_supported"),
    ("Transfer-Encoding in HTTP/1.0", "POST /v1/sessions HTTP/1.0", [HOST, JSON, "Transfer-Encoding: chunked"], b"0\r\n\r\n", 400, "invalid_argument"),
    ("a blank before the colon", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Content-Length : 2"], b"{}", 400, "invalid_argument"),
    ("two Hosts", "GET /health HTTP/1.1", [HOST, HOST], b"", 400, "invalid_argument"),
    ("no Host", "GET /health HTTP/1.1", [], b"", 400, "invalid_argument"),
    ("an empty Host", "GET /health HTTP/1.1", ["Host:"], b"", 403, "forbidden"),
    ("two Authorizations", "GET /v1/sessions HTTP/1.1", [HOST, "Authorization: Bearer x"], b"", 400, "invalid_argument"),
    ("a rebound Host", "GET /health HTTP/1.1", ["Host: evil.example"], b"", 403, "forbidden"),
    ("a Host that only starts like ours", "GET /health HTTP/1.1", ["Host: localhost.evil.example"], b"", 403, "forbidden"),
    ("a Host with a user", "GET /health HTTP/1.1", ["Host: localhost:80@evil.example"], b"", 403, "forbidden"),
    ("an Origin", "GET /health HTTP/1.1", [HOST, "Origin: http://localhost"], b"", 403, "forbidden"),
    ("the null Origin", "GET /health HTTP/1.1", [HOST, "Origin: null"], b"", 403, "forbidden"),
    ("absolute form", "GET http://localhost/health HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("asterisk form", "OPTIONS * HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("%00 in the path", "GET /health%00/x HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("%00 in the query", "GET /v1/sessions?name=a%00b HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("a cut escape", "GET /health%2 HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("an escape that is not hex", "GET /health%zz HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("a dot segment", "GET /v1/../health HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("an escaped dot segment", "GET /v1/%2e%2e/health HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("an escaped slash", "GET /v1%2fsessions HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("a backslash", "GET /v1\\sessions HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("a blank in the target", "GET /health x HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("bytes above ASCII", "GET /h\xe9alth HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("escaped bytes that are no UTF-8", "GET /health%ff HTTP/1.1", [HOST], b"", 400, "invalid_argument"),
    ("a target of 9 KiB", "GET /" + "a" * 9000 + " HTTP/1.1", [HOST], b"", 414, "uri_too_long"),
    ("70 headers", "GET /health HTTP/1.1", [HOST] + [f"X-{i}: 1" for i in range(70)], b"", 400, "invalid_argument"),
    ("a body where none is taken", "GET /health HTTP/1.1", [HOST, "Content-Length: 2"], b"{}", 400, "invalid_argument"),
    ("no body where one is needed", "POST /v1/sessions/s_x/exec HTTP/1.1", [HOST], b"", 404, "not_found"),
    ("another Content-Type", "POST /v1/sessions HTTP/1.1", [HOST, "Content-Type: text/plain", "Content-Length: 2"], b"{}", 415, "unsupported_media_type"),
    ("no Content-Type", "POST /v1/sessions HTTP/1.1", [HOST, "Content-Length: 2"], b"{}", 415, "unsupported_media_type"),
    ("a form", "POST /v1/sessions HTTP/1.1", [HOST, "Content-Type: application/x-www-form-urlencoded", "Content-Length: 3"], b"a=b", 415, "unsupported_media_type"),
    ("a type that only starts like JSON", "POST /v1/sessions HTTP/1.1", [HOST, "Content-Type: application/jsonp", "Content-Length: 2"], b"{}", 415, "unsupported_media_type"),
    ("another charset", "POST /v1/sessions HTTP/1.1", [HOST, JSON + "; charset=latin1", "Content-Length: 2"], b"{}", 415, "unsupported_media_type"),
    ("a compressed body", "POST /v1/sessions HTTP/1.1", [HOST, JSON, "Content-Encoding: gzip", "Content-Length: 2"], b"{}", 415, "unsupported_media_type"),
    ("an unknown path", "GET /v1/nothing HTTP/1.1", [HOST], b"", 404, "not_found"),
    ("a slash behind a path", "GET /v1/sessions/ HTTP/1.1", [HOST], b"", 404, "not_found"),
    ("two slashes", "GET //health HTTP/1.1", [HOST], b"", 404, "not_found"),
    ("a path of many segments", "GET /" + "/".join("abcdefghijkl") + " HTTP/1.1", [HOST], b"", 404, "not_found"),
    ("an unknown method", "BREW /health HTTP/1.1", [HOST], b"", 405, "method_not_allowed"),
    ("OPTIONS", "OPTIONS /v1/sessions HTTP/1.1", [HOST], b"", 405, "method_not_allowed"),
    ("a method in lower case", "get /health HTTP/1.1", [HOST], b"", 405, "method_not_allowed"),
]


@pytest.mark.parametrize("line, headers, body, status, code", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_is_refused_with_its_own_error(server, line, headers, body, status, code):
    reply, rest = server.raw(server.head(line, *headers, "Connection: close", body=body))
    assert reply.status == status, reply.body
    assert reply.code == code
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert rest == b""


SERVED = [
    ("the listen address", "GET /health HTTP/1.1", ["Host: 127.0.0.1"]),
    ("any port", "GET /health HTTP/1.1", ["Host: localhost:1"]),
    ("IPv6 loopback", "GET /health HTTP/1.1", ["Host: [::1]:8080"]),
    ("another case", "GET /health HTTP/1.1", ["hOsT: LOCALHOST"]),
    ("HTTP/1.0 without a Host", "GET /health HTTP/1.0", []),
    ("an empty query", "GET /health? HTTP/1.1", [HOST]),
    ("an escaped letter", "GET /he%61lth HTTP/1.1", [HOST]),
    ("a Content-Length of 0", "GET /health HTTP/1.1", [HOST, "Content-Length: 0"]),
]


@pytest.mark.parametrize("line, headers", [r[1:] for r in SERVED], ids=[r[0] for r in SERVED])
def test_is_served(server, line, headers):
    reply, _ = server.raw(server.head(line, *headers, "Connection: close"))
    assert reply.status == 200, reply.body
    assert reply.json["ok"] is True


def test_hosts_and_origins_that_were_allowed_are_served(own_server):
    for headers in (["Host: berth.example:8080"], ["Host: BOX:9000"], [HOST, "Origin: https://console.example"]):
        reply, _ = own_server.raw(own_server.head("GET /health HTTP/1.1", *headers, "Connection: close"))
        assert reply.status == 200, headers
    reply, _ = own_server.raw(own_server.head("GET /health HTTP/1.1", "Host: box:9001", "Connection: close"))
    assert reply.status == 403


SMUGGLED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("headers", [
    ["Content-Length: 0", f"Content-Length: {len(SMUGGLED)}"],
    ["Content-Length: 0", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: xchunked"],
], ids=["two lengths", "length and chunked", "unknown coding"])
def test_nothing_is_served_behind_a_request_whose_end_is_in_doubt(server, headers):
    reply, rest = server.raw(server.head("POST /v1/sessions HTTP/1.1", HOST, JSON, *headers, body=SMUGGLED))
    assert reply.status in (400, 501)
    assert reply.headers["connection"] == "close"
    assert rest == b""


def test_two_requests_on_one_connection_are_both_served(server):
    one = server.head("GET /health HTTP/1.1", HOST)
    two = server.head("GET /v1/sessions HTTP/1.1", HOST, "Connection: close")
    reply, rest = server.raw(one + two)
    assert reply.status == 200
    assert parse(rest)[0].status == 200


def test_a_refused_small_body_keeps_the_connection(server):
    refused = server.head("POST /nothing HTTP/1.1", HOST, JSON, "Content-Length: 2", body=b"{}")
    reply, rest = server.raw(refused + server.head("GET /health HTTP/1.1", HOST, "Connection: close"))
    assert reply.status == 404
    assert parse(rest)[0].status == 200


def test_405_says_what_is_allowed(server, session):
    reply = server.ask("PUT", "/v1/sessions/" + session["id"], token=server.admin)
    assert reply.status == 405
    assert set(reply.headers["allow"].split(", ")) == {"GET", "HEAD", "PATCH", "DELETE"}


def test_head_is_answered_like_get_without_a_body(server):
    reply = server.ask("HEAD", "/health")
    assert reply.status == 200
    assert int(reply.headers["content-length"]) > 0
    assert reply.body == b""


def test_a_body_over_the_limit_is_refused_before_it_is_sent(server):
    head = server.head("POST /v1/sessions HTTP/1.1", HOST, JSON, "Content-Length: 99999999", "Expect: 100-continue")
    reply, _ = server.raw(head)
    assert (reply.status, reply.code) == (413, "too_large")


def test_a_chunked_body_over_the_limit_is_refused(server):
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    head = server.head("POST /v1/sessions HTTP/1.1", HOST, JSON, "Transfer-Encoding: chunked", "Connection: close")
    reply, _ = server.raw(head + piece * 17 + b"0\r\n\r\n")
    assert (reply.status, reply.code) == (413, "too_large")


def test_a_chunked_body_within_the_limit_is_taken(server, session):
    body = json.dumps({"command": "cat", "stdin": "x" * 1000}).encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7))
    head = server.head(f"POST /v1/sessions/{session['id']}/exec HTTP/1.1", HOST, JSON, "Transfer-Encoding: chunked",
                       "Connection: close")
    reply, _ = server.raw(head + pieces + b"0\r\n\r\n")
    assert reply.status == 200, reply.body
    assert reply.json["output"] == "x" * 1000


def test_a_chunked_body_without_a_byte_is_an_empty_one(server, session):
    head = server.head(f"POST /v1/sessions/{session['id']}/exec HTTP/1.1", HOST, JSON, "Transfer-Encoding: chunked",
                       "Connection: close")
    reply, _ = server.raw(head + b"0\r\n\r\n")
    assert (reply.status, reply.code) == (400, "invalid_argument")


def test_a_client_that_expects_100_is_told_to_go_on(server, session):
    body = b'{"command": "echo hi"}'
    head = server.head(f"POST /v1/sessions/{session['id']}/exec HTTP/1.1", HOST, JSON, f"Content-Length: {len(body)}",
                       "Expect: 100-continue", "Connection: close")
    with server.connect() as s:
        s.sendall(head)
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(body)
        assert parse(read_all(s))[0].json["output"] == "hi\n"


# ---- tokens ----

BAD_TOKENS = ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "Bearer a b", "bst_xyz", "Bearer bst_" + "a" * 52]


@pytest.mark.parametrize("value", BAD_TOKENS)
def test_without_a_valid_token_it_is_401(server, session, value):
    for path in ("/v1/sessions", "/v1/sessions/" + session["id"], "/execs"):
        reply = server.ask("GET", path, headers={"Authorization": value} if value else {})
        assert (reply.status, reply.code) == (401, "unauthorized"), path
        assert reply.headers["www-authenticate"] == "Bearer"


def test_the_scheme_is_read_in_any_case(server):
    assert server.ask("GET", "/v1/sessions", headers={"Authorization": "bEARER " + server.admin}).status == 200


def test_a_session_token_opens_its_own_session_only(server, session, neighbour):
    own, other, token = session["id"], neighbour["id"], session["token"]
    assert server.ask("GET", f"/v1/sessions/{own}", token=token).status == 200
    assert server.ask("POST", f"/v1/sessions/{own}/exec", {"command": "true"}, token).status == 200
    assert server.ask("POST", "/exec", {"command": "true"}, token).status == 200
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/exec"), ("GET", "/execs")):
        body = {} if method == "PATCH" else {"command": "true"} if method == "POST" else None
        reply = server.ask(method, f"/v1/sessions/{other}{path}", body, token)
        assert reply.status == 404, (method, path)
        missing = server.ask(method, f"/v1/sessions/s_aaaaaaaaaaaaaaaaaaaa{path}", body, token)
        assert (missing.status, missing.body) == (reply.status, reply.body), (method, path)
    for method, path in (("POST", "/v1/sessions"), ("GET", "/v1/sessions"), ("DELETE", f"/v1/sessions/{own}")):
        assert server.ask(method, path, token=token).status == 403, (method, path)


def test_the_admin_token_at_the_root_is_told_where_to_go(server):
    reply = server.ask("POST", "/exec", {"command": "true"}, server.admin)
    assert reply.status == 400
    assert "/v1/sessions/" in reply.json["error"]["message"]


# ---- slow clients ----

def cut_after(server, first, drip, results, name):
    """Sends `first`, then one byte of `drip` each 0.4 s; notes after how many seconds the server has closed."""
    started = time.monotonic()
    with server.connect() as s:
        s.sendall(first)
        s.settimeout(0.4)
        for i in range(200):
            try:
                if drip:
                    s.sendall(drip[i % len(drip):][:1])
                if s.recv(65536) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    results[name] = time.monotonic() - started


@pytest.fixture(scope="module")
def slow(server):
    """All slow clients at once, since each is given its 15 s."""
    head = server.head("POST /v1/sessions HTTP/1.1", HOST, JSON, "Content-Length: 50000")
    chunked = server.head("POST /v1/sessions HTTP/1.1", HOST, JSON, "Transfer-Encoding: chunked")
    cases = {
        "says nothing": (b"", b""),
        "trickles its request line": (b"GET /", b"a"),
        "trickles its headers": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
        "sends headers without end": (b"GET /health HTTP/1.1\r\n", b"X: y\r\n"),
        "trickles its body": (head, b" "),
        "trickles a chunked body": (chunked, b"1\r\n \r\n"),
        "trickles a body that is refused": (server.head("POST /x HTTP/1.1", HOST, "Content-Length: 50000"), b" "),
    }
    results = {}
    threads = [threading.Thread(target=cut_after, args=(server, *c, results, name)) for name, c in cases.items()]
    for t in threads:
        t.start()
    busy = server.ask("GET", "/health")
    for t in threads:
        t.join()
    assert busy.status == 200
    return results


@pytest.mark.parametrize("who", ["says nothing", "trickles its request line", "trickles its headers",
                                 "sends headers without end", "trickles its body", "trickles a chunked body",
                                 "trickles a body that is refused"])
def test_a_client_is_cut_off_that(slow, who):
    assert 13 < slow[who] < 20


# ---- too many ----

def test_above_the_limit_only_the_health_check_is_served(own_server):
    held = [own_server.connect() for _ in range(4)]
    try:
        reply, _ = own_server.raw(own_server.head("GET /v1/sessions HTTP/1.1", HOST))
        assert reply.status == 503
        assert reply.headers["connection"] == "close"
        assert int(reply.headers["retry-after"]) >= 1
        assert own_server.ask("GET", "/health").status == 200
    finally:
        for s in held:
            s.close()
    for _ in range(50):
        if own_server.ask("GET", "/v1/sessions", token=own_server.admin).status == 200:
            return
        time.sleep(0.1)
    pytest.fail("the connections that were closed are still counted")


def test_crowded_connections_that_say_nothing_are_dropped_soon(own_server):
    held = [own_server.connect() for _ in range(4 + 20)]
    started = time.monotonic()
    assert held[-1].recv(1) == b""
    assert time.monotonic() - started < 5
    for s in held:
        s.close()


# ---- stop ----

def test_a_stop_ends_streams_with_a_line_that_says_so(own_server):
    made = own_server.ask("POST", "/v1/sessions", {}, own_server.admin).json
    idle = own_server.connect()
    with own_server.connect() as s:
        body = b'{"command": "echo on; sleep 30"}'
        s.sendall(b"POST /exec/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                  % (made["token"].encode(), len(body), body))
        seen = b""
        while b"on\\n" not in seen:
            seen += s.recv(4096)
        own_server.process.terminate()
        rest = read_all(s)
    assert b'"type":"error"' in rest and rest.endswith(b"0\r\n\r\n")
    assert idle.recv(1) == b""
    assert own_server.process.wait(timeout=10) == 0
    with pytest.raises(ConnectionRefusedError):
        own_server.connect()
