# SPDX-License-Identifier: MIT
"""Bodies, queries, replies and streams of well-formed requests."""
import base64
import contextlib
import http.client
import json
import socket
import time

import pytest

from conftest import parse, read_all, unchunk

# name, body as text, the field that the error names (None: none)
BAD_EXEC = [
    ("not JSON", "{", None),
    ("an array", "[]", None),
    ("something behind the end", "{} x", None),
    ("a NUL byte", '{"command": "a\0"}', None),
    ("an escaped NUL", '{"command": "a\\u0000b"}', None),
    ("bad UTF-8", b'{"command": "\xff"}', None),
    ("a key given twice", '{"command": "a", "command": "b"}', None),
    ("33 levels", '{"env": ' + "[" * 33 + "]" * 33 + "}", None),
    ("an unknown field", '{"command": "true", "shell": "zsh"}', "shell"),
    ("neither command nor argv", "{}", "command"),
    ("both command and argv", '{"command": "a", "argv": ["a"]}', "command"),
    ("an empty command", '{"command": ""}', "command"),
    ("a command that is a number", '{"command": 1}', "command"),
    ("an empty argv", '{"argv": []}', "argv"),
    ("an argv of numbers", '{"argv": [1]}', "argv"),
    ("an empty program name", '{"argv": [""]}', "argv"),
    ("a timeout of 0", '{"command": "a", "timeout_s": 0}', "timeout_s"),
    ("a negative timeout", '{"command": "a", "timeout_s": -1}', "timeout_s"),
    ("a timeout above the limit", '{"command": "a", "timeout_s": 1801}', "timeout_s"),
    ("a timeout beyond all numbers", '{"command": "a", "timeout_s": 1e300}', "timeout_s"),
    ("a timeout that is text", '{"command": "a", "timeout_s": "5"}', "timeout_s"),
    ("an unknown encoding", '{"command": "a", "encoding": "utf16"}', "encoding"),
    ("split without a stream", '{"command": "a", "split": true}', "split"),
    ("stdin twice", '{"command": "a", "stdin": "", "stdin_b64": ""}', "stdin"),
    ("stdin that is not base64", '{"command": "a", "stdin_b64": "a b="}', "stdin_b64"),
    ("an env of numbers", '{"command": "a", "env": {"A": 1}}', "env"),
    ("an env name with =", '{"command": "a", "env": {"A=B": "1"}}', "env"),
    ("an empty env name", '{"command": "a", "env": {"": "1"}}', "env"),
    ("an empty cwd", '{"command": "a", "cwd": ""}', "cwd"),
]


@pytest.mark.parametrize("body, field", [r[1:] for r in BAD_EXEC], ids=[r[0] for r in BAD_EXEC])
def test_exec_is_refused(server, session, body, field):
    body = body if isinstance(body, bytes) else body.encode()
    reply = server.ask("POST", "/exec", body, session["token"])
    assert (reply.status, reply.code) == (400, "invalid_argument"), reply.body
    found = reply.json["error"].get("field")
    assert found == field or (field and found and found.startswith(field)), reply.body


BAD_CREATE = [
    ({"image": ""}, "image"), ({"name": "a b"}, "name"), ({"name": "-a"}, "name"), ({"labels": {"a": 1}}, "labels"),
    ({"labels": {"a b": "1"}}, "labels"), ({"limits": {"memory_mb": 1}}, "limits.memory_mb"),
    ({"limits": {"memory_mb": 4096.5}}, "limits.memory_mb"), ({"limits": {"cpus": 0}}, "limits.cpus"),
    ({"limits": {"disk": 1}}, "limits.disk"), ({"limits": []}, "limits"), ({"ttl_s": -1}, "ttl_s"),
    ({"ttl_s": 1.5}, "ttl_s"), ({"workspace": {"size": 1}}, "workspace.size"), ({"mounts": [1]}, "mounts"), ({"mount": []}, "mount"),
]


@pytest.mark.parametrize("body, field", BAD_CREATE, ids=[str(b) for b, _ in BAD_CREATE])
def test_create_is_refused(server, body, field):
    reply = server.ask("POST", "/v1/sessions", body, server.admin)
    assert (reply.status, reply.code) == (400, "invalid_argument"), reply.body
    assert reply.json["error"].get("field", "").startswith(field), reply.body


BAD_QUERIES = ["limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "state=dead", "nonsense=1", "Limit=1"]


@pytest.mark.parametrize("query", BAD_QUERIES)
def test_a_list_is_refused_with_its_parameter(server, query):
    reply = server.ask("GET", "/v1/sessions?" + query, token=server.admin)
    assert (reply.status, reply.code) == (400, "invalid_argument")
    assert reply.json["error"]["field"] == query.split("=")[0]


def test_a_session_is_shown_without_its_token(server, session):
    shown = server.ask("GET", "/v1/sessions/" + session["id"], token=server.admin).json
    assert "token" not in shown and "env" not in shown
    assert set(shown) == {"id", "name", "state", "reason", "detail", "image", "labels", "limits", "network",
                          "isolation", "workspace", "ttl_s", "idle_s", "created_at", "expires_at", "idle_at",
                          "ended_at"}
    assert shown["state"] == "ready" and shown["created_at"].endswith("Z") and shown["ended_at"] is None


def test_a_list_is_paged(server, session, neighbour):
    seen, cursor = [], ""
    while cursor is not None:
        page = server.ask("GET", "/v1/sessions?limit=1" + (f"&cursor={cursor}" if cursor else ""),
                          token=server.admin).json
        seen += [s["id"] for s in page["sessions"]]
        cursor = page["next"]
    assert len(seen) == len(set(seen)) and {session["id"], neighbour["id"]} <= set(seen)


def test_a_deleted_session_is_gone(server):
    made = server.ask("POST", "/v1/sessions", {}, server.admin).json
    path = "/v1/sessions/" + made["id"]
    assert server.ask("DELETE", path, token=server.admin).json == {"id": made["id"], "state": "gone"}
    assert server.ask("DELETE", path, token=server.admin).status == 404
    assert server.ask("GET", path, token=server.admin).json["state"] == "gone"
    for token, at in ((server.admin, path + "/exec"), (made["token"], "/exec")):
        reply = server.ask("POST", at, {"command": "true"}, token)
        assert (reply.status, reply.code) == (410, "session_gone")


def test_a_gone_session_shows_its_row_to_its_token_and_nothing_else(server, neighbour):
    made = server.ask("POST", "/v1/sessions", {}, server.admin).json
    path, token = "/v1/sessions/" + made["id"], made["token"]
    server.ask("DELETE", path, token=server.admin)
    shown = server.ask("GET", path, token=token)
    assert shown.status == 200 and shown.json["state"] == "gone" and shown.json["reason"] == "deleted"
    assert shown.body == server.ask("GET", path, token=server.admin).body
    for method, at, body in (("POST", "/exec", {"command": "true"}), ("POST", path + "/exec/stream", {"command": "true"}),
                             ("GET", "/execs", None), ("GET", path + "/execs/e_1", None), ("GET", "/v1/sessions", None),
                             ("PATCH", path, {"ttl_s": 60}), ("DELETE", path, None),
                             ("GET", "/v1/sessions/" + neighbour["id"], None)):
        reply = server.ask(method, at, body, token)
        assert (reply.status, reply.code) == (410, "session_gone"), (method, at)
        assert "deleted" in reply.json["error"]["message"], (method, at)


def test_exec_answers_with_the_reply_and_its_id(server, session):
    reply = server.ask("POST", "/exec", {"command": "echo out; echo err >&2; exit 3"}, session["token"])
    assert reply.status == 200
    assert reply.json["output"] == "out\nerr\n" and reply.json["exit_code"] == 3
    assert reply.json["reason"] == "exited" and reply.json["timed_out"] is False
    assert reply.headers["x-exec-id"] == reply.json["id"]


def test_argv_and_stdin_reach_the_command(server, session):
    assert server.ask("POST", "/exec", {"argv": ["cat"], "stdin": "né\n"}, session["token"]).json["output"] == "né\n"
    data = base64.b64encode(bytes(range(256))).decode()
    reply = server.ask("POST", "/exec", {"command": "sha1sum", "stdin_b64": data}, session["token"])
    assert reply.json["output"].startswith("4916d6bdb7f78e6803698cab32d1586ea457dfc8")


def test_a_timeout_may_have_decimals(server, session):
    reply = server.ask("POST", "/exec", {"command": "sleep 20", "timeout_s": 0.3}, session["token"])
    assert reply.json["timed_out"] is True and reply.json["reason"] == "timeout" and reply.json["exit_code"] is None


def test_a_stream_has_output_lines_and_an_exit_line(server, session):
    reply = server.ask("POST", "/exec/stream", {"command": "echo one; sleep 0.3; echo two; exit 4"}, session["token"])
    assert reply.headers["content-type"] == "application/x-ndjson"
    *output, end = reply.lines
    assert "".join(line["data"] for line in output) == "one\ntwo\n" and len(output) >= 2
    assert end["type"] == "exit" and end["exit_code"] == 4 and "output" not in end
    assert end["id"] == reply.headers["x-exec-id"]


def test_a_stream_keeps_every_byte_in_base64(server, session):
    reply = server.ask("POST", "/exec/stream", {"command": "head -c 3000000 /dev/zero | tr '\\0' '\\377'",
                                                "encoding": "base64"}, session["token"])
    got = b"".join(base64.b64decode(line["data"]) for line in reply.lines if line["type"] == "output")
    assert got == b"\xff" * 3000000


def open_exec(server, token, command, path=b"/exec", version=b"1.1", more=b""):
    body = b'{"command": "%s"}' % command
    s = server.connect()
    s.sendall(b"POST %s HTTP/%s\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
              b"%sContent-Length: %d\r\n\r\n%s" % (path, version, token.encode(), more, len(body), body))
    return s


def open_stream(server, token, command):
    return open_exec(server, token, command, b"/exec/stream")


def header_of(s, name):
    """Reads until the end of the headers; what came behind them is dropped."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += s.recv(4096)
    lines = data.split(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    return dict(line.split(": ", 1) for line in lines[1:])[name]


def test_the_headers_of_a_stream_and_each_line_come_at_once(server, session):
    started = time.monotonic()
    with open_stream(server, session["token"], b"sleep 1; echo first; sleep 3; echo last") as s:
        assert header_of(s, "x-exec-id")
        assert time.monotonic() - started < 0.8
        data = b""
        while b"first" not in data:
            data += s.recv(4096)
        assert time.monotonic() - started < 2.5


def test_the_id_of_an_exec_comes_while_it_runs_and_its_reply_in_one_piece_at_the_end(server, session):
    key = b"Idempotency-Key: early-%d\r\n" % time.time_ns()
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(open_exec(server, session["token"], b"sleep 62", more=key))
        exec_id = header_of(s, "x-exec-id")
        repeated = stack.enter_context(open_exec(server, session["token"], b"sleep 62", more=key))
        assert header_of(repeated, "x-exec-id") == exec_id
        path = f"/execs/{exec_id}"
        assert server.ask("GET", path, token=session["token"]).json["state"] == "running"
        assert server.ask("DELETE", path + "?grace_s=0", token=session["token"]).status == 202
        for client in (s, repeated):
            answer = b""
            while not answer.endswith(b"0\r\n\r\n"):
                piece = client.recv(65536)
                assert piece, answer
                answer += piece
            body, rest = unchunk(answer)
            reply = json.loads(body)
            assert (reply["id"], reply["reason"], rest) == (exec_id, "cancelled", b"")


def test_a_long_reply_comes_whole_and_the_connection_goes_on(server, session):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=40)
    headers = {"Authorization": "Bearer " + session["token"], "Content-Type": "application/json"}
    for length in (90000, 1, 90001):
        connection.request("POST", "/exec", json.dumps({"command": f"head -c {length} /dev/zero | tr '\\0' x"}), headers)
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "application/json"
        assert json.loads(answer.read())["output"] == "x" * length
    connection.close()


def test_a_reply_that_cannot_be_had_is_a_broken_connection(own_server):
    made = own_server.ask("POST", "/v1/sessions", {}, own_server.admin).json
    with open_exec(own_server, made["token"], b"sleep 30") as s, \
         open_exec(own_server, made["token"], b"sleep 30", version=b"1.0") as old:
        assert header_of(s, "x-exec-id") and header_of(old, "x-exec-id")
        own_server.process.terminate()
        assert read_all(s) == b"" and read_all(old) == b""
    assert own_server.process.wait(20) == 0


def test_a_quiet_stream_says_every_15_s_that_it_lives(server, session):
    reply = server.ask("POST", "/exec/stream", {"command": "sleep 17"}, session["token"])
    assert [line for line in reply.lines if line["type"] == "output"] == [{"type": "output", "data": ""}]


def wait_for_end(server, token, exec_id):
    return server.ask("GET", f"/execs/{exec_id}?wait_s=15", token=token).json


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_hangs_up_cancels_its_stream(server, session, how):
    s = open_stream(server, session["token"], b"sleep 60")
    exec_id = header_of(s, "x-exec-id")
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()
    assert wait_for_end(server, session["token"], exec_id)["reason"] == "cancelled"


def test_a_client_that_hangs_up_cancels_its_exec(server, session):
    with pytest.raises(TimeoutError):
        server.ask("POST", "/exec", {"command": "sleep 61"}, session["token"], timeout=1)
    newest = server.ask("GET", "/execs?limit=1", token=session["token"]).json["execs"][0]
    assert newest["command"] == "sleep 61"
    assert wait_for_end(server, session["token"], newest["id"])["reason"] == "cancelled"


def test_with_an_idempotency_key_a_hang_up_does_not_cancel_and_a_repeat_is_the_same_exec(server, session):
    key = {"Idempotency-Key": f"key-{time.time()}"}
    body = {"command": "sleep 2; echo done"}
    with pytest.raises(TimeoutError):
        server.ask("POST", "/exec", body, session["token"], headers=key, timeout=0.5)
    first = server.ask("POST", "/exec", body, session["token"], headers=key)
    again = server.ask("POST", "/exec", body, session["token"], headers=key)
    assert first.json["output"] == "done\n" and first.json == again.json
    other = server.ask("POST", "/exec", {"command": "true"}, session["token"], headers=key)
    assert (other.status, other.code) == (409, "conflict")


@pytest.mark.parametrize("key", ["a b", "x" * 201, "é"])
def test_an_idempotency_key_is_visible_ascii(server, session, key):
    reply = server.ask("POST", "/exec", {"command": "true"}, session["token"],
                       headers={"Idempotency-Key": key.encode()})
    assert reply.status == 400 and reply.json["error"]["field"] == "Idempotency-Key"


def test_an_exec_can_be_watched_and_cancelled(server, session):
    with open_stream(server, session["token"], b"sleep 62") as s:
        path = f"/v1/sessions/{session['id']}/execs/{header_of(s, 'x-exec-id')}"
        started = time.monotonic()
        assert server.ask("GET", path + "?wait_s=0.5", token=server.admin).json["state"] == "running"
        assert 0.4 < time.monotonic() - started < 5
        assert server.ask("DELETE", path + "?grace_s=1", token=server.admin).status == 202
        ended = server.ask("GET", path + "?wait_s=15", token=server.admin).json
        assert ended["state"] == "ended" and ended["reason"] == "cancelled" and "output" in ended
    for query in ("?wait_s=61", "?wait_s=-1", "?wait_s=x", "?wait=1"):
        assert server.ask("GET", path + query, token=server.admin).status == 400, query
    assert server.ask("GET", path + "x", token=server.admin).status == 404


def test_an_http_1_0_client_gets_a_plain_body(server, session):
    body = b'{"command": "echo old"}'
    reply, _ = server.raw(b"POST /exec/stream HTTP/1.0\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (session["token"].encode(), len(body), body))
    assert "transfer-encoding" not in reply.headers
    whole = open_exec(server, session["token"], b"echo old", version=b"1.0")
    assert parse(read_all(whole))[0].json["output"] == "old\n"
    assert reply.lines[0] == {"type": "output", "data": "old\n"}
