"""The other commands against answers that are hard to get from a real server."""

import json
import socket

import pytest
from fake import SESSION, TOKEN, error, session

CODES = {
    "invalid_argument": (400, 2), "unauthorized": (401, 3), "forbidden": (403, 3), "not_found": (404, 4),
    "conflict": (409, 5), "session_gone": (410, 4), "too_large": (413, 2), "unprocessable": (422, 6),
    "limit_exceeded": (429, 7), "internal": (500, 8), "not_supported": (501, 6), "engine_failure": (502, 8),
    "engine_unavailable": (503, 8), "store_unavailable": (503, 8), "deadline_exceeded": (504, 8), "no_space": (507, 8),
    "a_code_of_tomorrow": (409, 5),
}


@pytest.mark.parametrize("code", CODES)
def test_exit_status_of_an_error(berth, fake, code):
    status, want = CODES[code]
    fake.on("GET", "/v1/sessions", lambda h: h.reply(status, error(code, "because")))
    done = berth("ls", "--json")
    assert done.returncode == want
    assert "because" in done.err and done.err.count("\n") == 1
    assert "because" in json.loads(done.stdout)["error"]["message"]


NOT_BERTH = {
    "a page": lambda h: h.raw(200, b"<html>hello</html>", "text/html"),
    "another JSON": lambda h: h.reply(200, {"hello": 1}),
    "a list": lambda h: h.reply(200, [1]),
    "an empty reply": lambda h: h.raw(200, b""),
    "not found of another server": lambda h: h.raw(404, b"404 page not found", "text/plain"),
    "a redirect": lambda h: h.raw(302, b""),
    "an endless reply": lambda h: h.raw(200, b" " * (17 << 20)),
    "deep JSON": lambda h: h.raw(200, b"[" * 100000),
}


@pytest.mark.parametrize("answer", NOT_BERTH.values(), ids=NOT_BERTH.keys())
@pytest.mark.parametrize("words, path", [(["ls"], "/v1/sessions"), (["health"], "/health")], ids=["ls", "health"])
def test_what_is_no_berth_is_told(berth, fake, answer, words, path):
    fake.on("GET", path, answer)
    done = berth(*words)
    assert done.returncode == 8 and done.out == ""
    assert done.err.startswith("berth: ") and done.err.count("\n") == 1


def test_no_server_is_one_line_with_the_address_and_what_to_do(lone):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        for words in (["ls"], ["health"], ["create"], ["show", SESSION], ["rm", SESSION]):
            done = lone(*words, env={"BERTH_ADDRESS": address, "BERTH_TOKEN": TOKEN})
            assert done.returncode == 8
            assert done.err.count("\n") == 1 and f"http://{address}" in done.err and "make up" in done.err
        done = lone("run", "--rm", "--", "x", env={"BERTH_ADDRESS": address, "BERTH_TOKEN": TOKEN})
        assert done.returncode == 125 and address in done.err


def test_proxies_are_not_for_this_machine(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [], "next": None}))
    assert berth("ls", env={"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}).returncode == 0


def test_list_follows_the_pages(berth, fake):
    ids = [f"s_{'abcdefghijklmnopqrst'[:19]}{c}" for c in "234567"]

    def page(h):
        at = ids.index(h.query["cursor"][0]) + 1 if "cursor" in h.query else 0
        part = ids[at:at + 2]
        h.reply(200, {"sessions": [session(id=i) for i in part], "next": part[-1] if at + 2 < len(ids) else None})

    fake.on("GET", "/v1/sessions", page)
    assert berth("ls", "-q").out.split() == ids
    assert [s["id"] for s in json.loads(berth("ls", "--json").stdout)] == ids
    assert "limit=3" in (berth("ls", "-q", "--limit", "3"), fake.seen()[-2])[1]


def test_pages_without_end_end(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [], "next": "more"}))
    assert berth("ls", "-q").returncode == 0


def test_filters_are_escaped(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [], "next": None}))
    berth("ls", "--name", "a&b=c d", "--label", "k=ü", "--state", "gone")
    assert fake.seen() == ["GET /v1/sessions?limit=200&state=gone&name=a%26b%3Dc%20d&label=k%3D%C3%BC"]


def test_table_is_aligned_and_escaped(berth, fake):
    rows = [session(name="kurz"), session(name="über-lang-ü"), session(name="\x1b[2Jbad\nline")]
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": rows, "next": None}))
    lines = berth("ls").out.splitlines()
    assert len(lines) == 4 and "\x1b" not in "".join(lines)
    assert len({line.index(word) for line, word in zip(lines, ["STATE", "ready", "ready", "ready"])}) == 1


def test_errors_of_the_server_are_escaped(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(400, error("invalid_argument", "bad \x1b]0;title\x07\nberth: fine")))
    done = berth("ls")
    assert "\x1b" not in done.err and done.err.count("\n") == 1


def test_create_prints_id_and_token(berth, fake):
    assert f"id              {SESSION}" in berth("create").out and "bst_secret" in berth("create").out
    assert json.loads(berth("create", "--json").stdout) == session(token="bst_secret")


def test_name_stands_for_the_one_session_that_has_it(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [session(name="build")], "next": None}))
    fake.on("GET", f"/v1/sessions/{SESSION}", lambda h: h.reply(200, session(name="build")))
    assert "build" in berth("show", "build").out
    assert fake.seen()[0] == "GET /v1/sessions?name=build&limit=2"


NAMES = {"unknown": ([], 4, "no session"), "twice": ([session(), session()], 5, "several")}


@pytest.mark.parametrize("found, status, text", NAMES.values(), ids=NAMES.keys())
def test_name_that_is_not_unique(berth, fake, found, status, text):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": found, "next": None}))
    for words in (["show", "build"], ["rm", "build"]):
        done = berth(*words)
        assert done.returncode == status and text in done.err
    assert not [r for r in fake.seen() if r.startswith("DELETE")]


def test_rm_waits_until_the_session_is_gone(berth, fake):
    answers = [(202, session(state="stopping")), (202, session(state="stopping")), (404, error("not_found"))]
    fake.on("DELETE", f"/v1/sessions/{SESSION}", lambda h: h.reply(*answers.pop(0)))
    done = berth("rm", SESSION)
    assert (done.returncode, done.out, answers) == (0, SESSION + "\n", [])


def test_rm_that_does_not_end_is_told(berth, fake):
    fake.on("DELETE", f"/v1/sessions/{SESSION}", lambda h: h.reply(202, session(state="stopping")))
    done = berth("rm", SESSION)
    assert done.returncode == 8 and "still stopping" in done.err and done.out == ""


def test_rm_goes_on_after_a_failure(berth, fake):
    other = "s_cccccccccccccccccccc"
    fake.on("DELETE", f"/v1/sessions/{other}", lambda h: h.reply(404, error("not_found", "no such session")))
    done = berth("rm", other, SESSION)
    assert done.returncode == 4 and done.out == SESSION + "\n" and other in done.err


def test_rm_all_asks_or_needs_yes(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [session()], "next": None}))
    assert berth("rm", "--all").returncode == 2
    assert not [r for r in fake.seen() if r.startswith("DELETE")]
    assert berth("rm", "--all", "--yes").out == SESSION + "\n"
    assert json.loads(berth("rm", "--all", "-y", "--json").stdout) == {"removed": [SESSION]}


@pytest.mark.parametrize("words", [["rm"], ["rm", "--all", SESSION]], ids=["nothing named", "both"])
def test_rm_wants_names_or_all(berth, fake, words):
    assert berth(*words).returncode == 2 and fake.seen() == []


def health(ok):
    return {"ok": ok, "version": "9.9", "workspace": "/workspace", "busy": 1, "sessions": 2,
            "engine": {"ok": ok, "detail": "docker 26"}, "store": {"ok": True, "detail": "ok"}, "degraded": ["old runc"]}


@pytest.mark.parametrize("ok, status, exit_status", [(True, 200, 0), (False, 503, 8)], ids=["well", "not well"])
def test_health(berth, fake, ok, status, exit_status):
    fake.on("GET", "/health", lambda h: h.reply(status, health(ok)))
    done = berth("health", env={"BERTH_TOKEN": ""})
    assert done.returncode == exit_status and "docker 26" in done.out and "warning: old runc" in done.out
    assert json.loads(berth("health", "--json").stdout) == health(ok)


def test_version_with_and_without_a_server(berth, fake, lone):
    fake.on("GET", "/health", lambda h: h.reply(200, health(True)))
    assert berth("version").out.splitlines()[1] == f"berthd 9.9 at {fake.address}"
    done = lone("--version", env={"BERTH_ADDRESS": "127.0.0.1:1"})
    assert done.returncode == 0 and done.out.startswith("berth ")
    assert json.loads(lone("version", "--json", env={"BERTH_ADDRESS": "127.0.0.1:1"}).stdout)["berthd"] is None


def test_token_is_never_printed(berth, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(401, error("unauthorized")))
    for words in (["ls"], ["show", "x"], ["run", "--rm", "--", "x"], ["run", "--token", TOKEN, "--nope"], ["health"],
                  ["run", "--json", "--", "x"], ["ls", "--token", TOKEN, "--json"], ["help"]):
        done = berth(*words)
        assert TOKEN not in done.out + done.err


def test_completion(berth, fake):
    fake.on("GET", "/v1/sessions",
            lambda h: h.reply(200, {"sessions": [session(name="build"), session(name="$(evil)")], "next": None}))
    assert berth("complete", "--", "").out.split() == [
        "run", "exec", "create", "ls", "show", "rm", "start", "ps", "logs", "stop", "cp", "cat", "ls-files", "archive",
        "health", "version", "help"]
    assert berth("complete", "--", "he").out.split() == ["health", "help"]
    assert berth("complete", "--", "run", "--work").out.split() == ["--workspace", "--workspace-size"]
    assert berth("complete", "--", "ls", "--memory").out == ""
    assert berth("complete", "--", "show", "").out.split() == [SESSION, "build", SESSION]
    assert berth("complete", "--", "help", "cr").out.split() == ["create"]
    fake.on("GET", f"/v1/sessions/{SESSION}/processes", lambda h: h.reply(200, {"processes": [
        {"id": "p_1", "name": "web"}, {"id": "p_2", "name": "$(evil)"}, {"id": "p_3", "name": None}]}))
    assert berth("complete", "--", "logs", SESSION, "").out.split() == ["p_1", "web", "p_2", "p_3"]
