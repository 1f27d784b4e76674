# SPDX-License-Identifier: MIT
"""Bodies of bytes: streamed in and out, cut, refused before they come and while they come."""
import base64
import json
import re
import socket
import time

import pytest

from conftest import parse, read_all, unchunk

MIB = 1 << 20
CONTENT = "/files/content?path="


@pytest.fixture
def files(server, session):
    """The requests of one session's token, about files of a name of their own."""
    class Files:
        token = session["token"]

        def put(self, path, body=b"", **headers):
            h = {k.replace("_", "-"): v for k, v in headers.items()}
            return server.ask("PUT", CONTENT + path, body, self.token, {"Content-Type": "application/octet-stream", **h})

        def get(self, path, method="GET", **headers):
            return server.ask(method, CONTENT + path, None, self.token, {k.replace("_", "-"): v for k, v in headers.items()})

        def head(self, line, *headers):
            return "\r\n".join([line, "Host: localhost", f"Authorization: Bearer {self.token}", *headers, "", ""]).encode()

    return Files()


def until(s, what):
    data = b""
    while what not in data:
        piece = s.recv(65536)
        assert piece, data
        data += piece
    return data


def test_a_file_is_written_and_read(files):
    first = files.put("/a", b"hello")
    assert (first.status, first.json["size"]) == (201, 5)
    again = files.put("/a", b"hello, too")
    assert (again.status, again.json["size"]) == (200, 10)
    got = files.get("/a")
    assert (got.status, got.body, got.headers["etag"]) == (200, b"hello, too", again.headers["etag"])
    assert got.headers["content-type"] == "application/octet-stream" and got.headers["accept-ranges"] == "bytes"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["last-modified"].endswith(" GMT")


def test_an_empty_file(files):
    assert files.put("/empty").json["size"] == 0
    got = files.get("/empty")
    assert (got.status, got.body, got.headers["content-length"]) == (200, b"", "0")


def test_a_body_without_a_length(server, files):
    with server.connect() as s:
        s.sendall(files.head(f"PUT {CONTENT}/chunked HTTP/1.1", "Transfer-Encoding: chunked", "Connection: close"))
        for piece in (b"one ", b"two ", b"three"):
            s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.05)
        s.sendall(b"0\r\n\r\n")
        assert parse(read_all(s))[0].status == 201
    assert files.get("/chunked").body == b"one two three"


def test_a_body_larger_than_every_limit_on_json(files):
    body = b"0123456789abcdef" * (5 * MIB // 16)
    assert files.put("/large", body).json["size"] == len(body)
    assert files.get("/large").body == body


@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_is_cut_leaves_nothing(server, files, length):
    path = "/cut" + length[:1]
    with server.connect() as s:
        s.sendall(files.head(f"PUT {CONTENT}{path} HTTP/1.1", length))
        s.sendall(b"64\r\n" + b"x" * 100 if "chunked" in length else b"x" * 100)
        time.sleep(0.2)
    time.sleep(0.2)
    assert files.get(path).status == 404


def test_a_refusal_before_the_body_is_read_by_a_client_that_sends_all_of_it_first(files):
    reply = files.put("/refused", b"x" * (20 * MIB))
    assert (reply.status, reply.code) == (403, "forbidden")
    assert reply.headers["connection"] == "close"


def test_a_refusal_amid_the_body_is_read_by_a_client_that_sends_all_of_it_first(files):
    reply = files.put("/full", b"x" * (20 * MIB))
    assert (reply.status, reply.code) == (507, "no_space")
    assert reply.headers["connection"] == "close"
    assert files.get("/full").status == 404


def test_without_a_token_a_body_is_refused_and_the_answer_read(server):
    reply = server.ask("PUT", CONTENT + "/x", b"x" * (20 * MIB))
    assert (reply.status, reply.code) == (401, "unauthorized")


def test_who_waits_to_be_asked_for_a_body_is_asked_or_refused(server, files):
    with server.connect() as s:
        s.sendall(files.head(f"PUT {CONTENT}/asked HTTP/1.1", "Content-Length: 5", "Expect: 100-continue", "Connection: close"))
        assert until(s, b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        s.sendall(b"hello")
        assert parse(read_all(s))[0].status == 201
    with server.connect() as s:
        s.sendall(files.head(f"PUT {CONTENT}/refused HTTP/1.1", "Content-Length: 5", "Expect: 100-continue"))
        assert until(s, b"\r\n\r\n").startswith(b"HTTP/1.1 403")


def test_conditions(files):
    tag = files.put("/cond", b"1").headers["etag"]
    assert files.get("/cond", If_None_Match=tag).status == 304
    assert files.get("/cond", If_None_Match='W/' + tag).status == 304
    assert files.get("/cond", If_None_Match='"other"').status == 200
    assert files.get("/cond", If_Match='"other"').status == 412
    assert files.get("/cond", If_Match=tag).body == b"1"
    assert files.get("/cond", If_Match="tag").status == 400
    assert files.put("/cond", b"2", If_Match='"other"').code == "precondition_failed"
    assert files.put("/cond", b"2", If_None_Match="*").status == 412
    assert files.put("/nothing-yet", b"2", If_Match="*").status == 412
    assert files.put("/cond", b"2", If_Match=tag).status == 200
    assert files.put("/cond", b"3", If_Match=tag).status == 412
    assert files.get("/cond").body == b"2"
    assert files.put("/cond", b"3", Content_Range="bytes 0-0/1").status == 400
    assert files.put("/cond", b"3", Content_Encoding="gzip").status == 415


RANGES = [("bytes=0-0", 206, b"0"), ("bytes=2-4", 206, b"234"), ("bytes=7-", 206, b"789"), ("bytes=-3", 206, b"789"),
          ("bytes=5-100", 206, b"56789"), ("bytes=-100", 206, b"0123456789"), ("bytes=10-", 416, None), ("bytes=-0", 416, None),
          ("bytes=3-2", 200, b"0123456789"), ("bytes=0-1,4-5", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"),
          ("bytes=99999999999999999999-", 416, None)]


@pytest.mark.parametrize("header, status, body", RANGES)
def test_ranges(files, header, status, body):
    files.put("/range", b"0123456789")
    got = files.get("/range", Range=header)
    assert got.status == status
    if body is None:
        assert got.headers["content-range"] == "bytes */10" and got.code == "range_not_satisfiable"
    else:
        assert got.body == body
    if status == 206:
        first = b"0123456789".index(body)
        assert got.headers["content-range"] == f"bytes {first}-{first + len(body) - 1}/10"


def test_a_range_of_another_version_is_the_whole(files):
    tag = files.put("/ifrange", b"0123456789").headers["etag"]
    assert files.get("/ifrange", Range="bytes=0-1", If_Range=tag).body == b"01"
    for other in ('"other"', "W/" + tag, "Mon, 30 Nov 2026 23:57:38 GMT"):
        assert files.get("/ifrange", Range="bytes=0-1", If_Range=other).body == b"0123456789"


def test_head_has_the_headers_only(files):
    files.put("/head", b"0123456789")
    got = files.get("/head", "HEAD")
    assert (got.status, got.body, got.headers["content-length"]) == (200, b"", "10")
    assert files.get("/absent", "HEAD").status == 404


def test_a_file_without_a_size_has_its_bytes(files):
    files.put("/proc", b"x" * 100000)
    got = files.get("/proc")
    assert (got.status, got.body) == (200, b"x" * 100000)
    assert "content-length" not in got.headers
    assert files.get("/proc", Range="bytes=0-1").status == 200


@pytest.mark.parametrize("path, query", [("/short", "content"), ("/later", "content"), ("/later", "archive")])
def test_what_breaks_off_does_not_look_whole(server, files, path, query):
    files.put(path, b"x" * (MIB // 2))
    with server.connect() as s:
        s.sendall(files.head(f"GET /files/{query}?path={path} HTTP/1.1"))
        data = read_all(s)  # the server closes
    head, _, body = data.partition(b"\r\n\r\n")
    assert b" 200 " in head.splitlines()[0]
    found = re.search(rb"Content-Length: (\d+)", head)
    if found:
        assert len(body) < int(found.group(1))
    else:
        assert not body.endswith(b"0\r\n\r\n")


def test_a_reader_that_goes_away_ends_an_endless_archive(server, files):
    files.put("/waste", b"x" * MIB)
    with server.connect() as s:
        s.sendall(files.head("GET /files/archive?path=/waste HTTP/1.1"))
        until(s, b"\r\n\r\n")
    assert files.get("/waste").status == 200


def test_archives(server, files):
    files.put("/ar", b"bytes")
    kinds = [({}, "", "application/gzip"), ({"Accept": "application/zstd"}, "", "application/zstd"),
             ({"Accept": "text/html, application/x-tar;q=0.9"}, "", "application/x-tar"), ({"Accept": "*/*"}, "", "application/gzip"),
             ({"Accept": "application/zstd"}, "&format=tar", "application/x-tar")]
    for headers, query, kind in kinds:
        got = server.ask("GET", "/files/archive?path=/ar" + query, None, files.token, headers)
        assert (got.status, got.headers["content-type"], got.body) == (200, kind, b"bytes")
    assert server.ask("GET", "/files/archive?path=/ar&format=zip", None, files.token).status == 400
    put = server.ask("PUT", "/files/archive?path=/ar", b"12345", files.token, {"Content-Type": "application/gzip"})
    assert put.status == 200
    assert put.json == {"entries": 1, "bytes": 5, "refused": 1, "truncated": False,
                        "errors": [{"path": "/x/../y", "error": "unprocessable: it leaves the folder"}]}


BAD_BODIES = [("stat", {}, "paths"), ("stat", {"paths": "a"}, "paths"), ("stat", {"paths": [1]}, "paths[0]"), ("stat", {"paths": [""]}, "paths[0]"),
              ("stat", {"paths": ["a"] * 4097}, "paths"), ("stat", {"paths": [{"b64": "AA=="}]}, "paths[0]"),
              ("stat", {"paths": [{"b64": "YQ==", "x": 1}]}, "paths[0].x"), ("stat", {"paths": ["x" * 4096]}, "paths[0]"),
              ("list", {}, "path"), ("list", {"path": "a", "max": 0}, "max"), ("list", {"path": "a", "max": 100001}, "max"),
              ("list", {"path": "a", "path_b64": "YQ=="}, "path"), ("list", {"path": "a", "depth": 1}, "depth"),
              ("mkdir", {"path": ""}, "path"), ("move", {"from": "a"}, "to"), ("move", {"to": "a"}, "from"),
              ("move", {"from": 1, "to": "a"}, "from"), ("move", {"from": "a", "to": {"b64": ""}}, "to"),
              ("delete", {"paths": ["a"], "recursive": 1}, "recursive"), ("download", {"paths": ["a"] * 1001}, "paths"),
              ("upload", {"files": [{"path": "a"}]}, "files[0].content_b64"), ("upload", {"files": [{"content_b64": ""}]}, "files[0].path"),
              ("upload", {"files": [{"path": "a", "content_b64": "", "mode": 1}]}, "files[0].mode"), ("upload", {"files": {}}, "files")]


@pytest.mark.parametrize("what, body, field", BAD_BODIES)
def test_a_bad_body_is_refused_by_its_field(server, files, what, body, field):
    reply = server.ask("POST", "/files/" + what, body, files.token)
    assert (reply.status, reply.json["error"].get("field")) == (400, field), reply.body


def test_upload_and_download_by_json(server, files):
    odd = base64.b64encode(b"/odd\xff\n").decode()
    reply = server.ask("POST", "/files/upload", {"files": [
        {"path": "/j1", "content_b64": "aGVsbG8="}, {"path": "/refused", "content_b64": ""}, {"path": "/j2", "content_b64": "!"},
        {"path_b64": odd, "content_b64": "AAEC"}, {"path": "/full", "content_b64": base64.b64encode(b"x" * 600000).decode()}]}, files.token)
    assert reply.status == 200, reply.body[:300]
    errors = [e["error"] and e["error"].split(":")[0] for e in reply.json]
    assert errors == [None, "forbidden", "invalid_argument", None, "no_space"]
    assert reply.json[3]["path"] == "/odd\ufffd\n" and reply.json[3]["path_b64"] == odd
    reply = server.ask("POST", "/files/download", {"paths": ["/j1", "/j2", {"b64": odd}]}, files.token)
    assert [base64.b64decode(e["content_b64"] or "") for e in reply.json] == [b"hello", b"", bytes([0, 1, 2])]
    assert [bool(e["error"]) for e in reply.json] == [False, True, False]
    stat = server.ask("POST", "/files/stat", {"paths": ["/j1", "/none"]}, files.token).json
    assert stat[0]["size"] == 5 and stat[0]["error"] is None and stat[0]["mode"] == "0644"
    assert stat[1]["size"] is None and stat[1]["error"].startswith("not_found: ")


def test_a_trickling_upload_is_cut_off_and_a_fast_one_may_not_stand_still(server, files):
    """A client's own slowness is bounded; here only that a byte a second does not hold the connection."""
    with server.connect(40) as s:
        s.sendall(files.head(f"PUT {CONTENT}/trickle HTTP/1.1", "Content-Length: 1000"))
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 35:
                s.sendall(b"x")
                time.sleep(1)
        except OSError:
            pass
        assert time.monotonic() - begun < 34
    assert files.get("/trickle").status == 404
