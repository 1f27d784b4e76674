"""Background processes over HTTP, as a client sees them, on both engines."""
import base64, json, os, signal, socket, threading, time

import pytest

from berthd import Berthd, TOKEN, wait_for
from crash import bridges, in_container, later, main_pid

SMALL = {"limits": {"memory_mb": 256}}


class Procs:
    """The processes of one session."""

    def __init__(self, berthd, session):
        self.berthd, self.session, self.path = berthd, session, f"/v1/sessions/{session}/processes"

    def call(self, method, path="", body=None, **kw):
        return self.berthd.call(method, self.path + path, body, **kw)

    def start(self, command, headers=None, **body):
        ask = {"argv": command} if isinstance(command, list) else {"command": command}
        r = self.call("POST", "", {**ask, **body}, headers=headers)
        assert r.status == 201, r
        assert r.json["id"].startswith("p_") and r.json["pid"] > 0, r
        return r.json["id"]

    def list(self):
        r = self.call("GET")
        assert r.status == 200, r
        return r.json["processes"]

    def state(self, pid):
        return next(p for p in self.list() if p["id"] == pid)

    def get(self, pid, **query):
        r = self.call("GET", f"/{pid}?" + "&".join(f"{k}={v}" for k, v in query.items()))
        assert r.status == 200, r
        return r.json

    def delete(self, pid, **query):
        r = self.call("DELETE", f"/{pid}?" + "&".join(f"{k}={v}" for k, v in query.items()))
        assert r.status == 200, r
        return r.json

    def write(self, pid, **body):
        return self.call("POST", f"/{pid}/stdin", body)

    def read_until(self, pid, what, offset=0, timeout=60):
        """All output from the offset on, once it has this in it."""
        end, text = time.monotonic() + timeout, ""
        while what not in text:
            r = self.get(pid, offset=offset, wait_s=10)
            assert not r["lost_bytes"], r
            text += r["output"]
            offset = r["next_offset"]
            assert what in text or (r["running"] and time.monotonic() < end), (text[-500:], r)
        return text

    def finish(self, pid, offset=0, timeout=60, **query):
        """All output until the end, and the last reply."""
        end, text = time.monotonic() + timeout, ""
        while True:
            r = self.get(pid, offset=offset, wait_s=10, **query)
            text += r["output"] if not query.get("encoding") else base64.b64decode(r["output"]).decode("latin-1")
            offset = r["next_offset"]
            if not r["running"]:
                return text, r
            assert time.monotonic() < end, r

    def stream(self, pid, **query):
        return Stream(self.berthd, f"{self.path}/{pid}/stream?" + "&".join(f"{k}={v}" for k, v in query.items()))


class Stream:
    def __init__(self, berthd, path):
        self.connection = berthd.connect()
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, (self.reply.status, self.reply.read())
        self.offset = None

    def line(self):
        text = self.reply.readline()
        if not text.strip():
            return None
        line = json.loads(text)
        self.offset = line.get("next_offset", self.offset)
        return line

    def until(self, what):
        text = ""
        while what not in text:
            line = self.line()
            assert line and line["type"] == "output", (text, line)
            text += line["data"]
        return text

    def rest(self):
        text = ""
        while True:
            line = self.line()
            if not line or line["type"] != "output":
                return text, line
            assert "lost_bytes" not in line, line
            text += line["data"]

    def close(self):
        self.reply.close()
        self.connection.close()


@pytest.fixture(scope="module")
def procs(berthd):
    return Procs(berthd, berthd.create(**SMALL)["id"])


@pytest.fixture
def fresh(berthd):
    """A session of the test's own."""
    p = Procs(berthd, berthd.create(**SMALL)["id"])
    yield p
    berthd.call("DELETE", f"/v1/sessions/{p.session}")


@pytest.fixture
def own(own_berthd):
    own_berthd.start()
    return Procs(own_berthd, own_berthd.create(**SMALL)["id"])


# ---- start, list, get ----

def test_a_process_starts_is_listed_read_and_ends(procs):
    r = procs.call("POST", "", {"command": "echo one; sleep 0.3; echo two; exit 3", "name": "first"})
    assert r.status == 201, r
    pid, started = r.json["id"], r.json
    assert started["name"] == "first"
    text, end = procs.finish(pid)
    assert text == "one\ntwo\n"
    assert (end["running"], end["exit_code"], end["reason"], end["signal"], end["next_offset"]) == (False, 3, "exited", None, 8)
    state = procs.state(pid)
    assert state["pid"] == started["pid"] and state["name"] == "first" and state["running"] is False
    assert state["command"] == "echo one; sleep 0.3; echo two; exit 3"
    assert state["exit_code"] == 3 and state["reason"] == "exited" and state["ports"] == []
    assert state["started_at"] < state["ended_at"]
    procs.delete(pid)


def test_the_pid_is_the_commands_own(procs):
    r = procs.call("POST", "", {"command": "echo $$; exec sleep 600"})
    assert procs.read_until(r.json["id"], "\n") == f"{r.json['pid']}\n"
    assert procs.state(r.json["id"])["running"] is True
    procs.delete(r.json["id"], grace_s=1)


def test_it_takes_argv_env_and_cwd_as_a_command_does(procs):
    pid = procs.start(["sh", "-c", "echo $A $PWD; cat"], env={"A": "x y"}, cwd="/tmp", stdin=False)
    assert procs.finish(pid)[0] == "x y /tmp\n"
    procs.delete(pid)


@pytest.mark.parametrize("body,status,field", [
    ({}, 400, "command"), ({"command": "a", "argv": ["a"]}, 400, "command"), ({"command": ""}, 400, "command"),
    ({"command": "a", "timeout_s": 1}, 400, "timeout_s"), ({"command": "a", "stdin": "x"}, 400, "stdin"),
    ({"command": "a", "env": {"SANDBOX_TOKEN": "x"}}, 400, "env.SANDBOX_TOKEN"), ({"command": "a", "cwd": "tmp"}, 400, "cwd"),
    ({"argv": ["/no/such/program"]}, 422, None), ({"command": "true", "cwd": "/no/such/folder"}, 422, None)], ids=json.dumps)
def test_what_cannot_be_started_is_refused_and_not_kept(procs, body, status, field):
    before = procs.list()
    r = procs.call("POST", "", body)
    assert r.status == status and r.json["error"].get("field") == field, r
    assert procs.list() == before


def test_one_that_is_not_there_is_404(procs):
    for id in ("p_" + "a" * 20, "e_" + "a" * 20, "x"):
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/stream")):
            assert procs.call(method, f"/{id}{path}").status == 404
        assert procs.write(id, data="x").status == 404
    e = procs.berthd.exec(procs.session, "true")["id"]
    assert procs.call("GET", f"/{e}").status == 404
    pid = procs.start("sleep 600")
    assert procs.berthd.call("GET", f"/v1/sessions/{procs.session}/execs/{pid}").status == 404
    other = Procs(procs.berthd, procs.berthd.create(**SMALL)["id"])
    assert other.call("GET", f"/{pid}").status == 404 and other.list() == []
    procs.berthd.call("DELETE", f"/v1/sessions/{other.session}")
    procs.delete(pid, grace_s=0)


def test_a_session_token_reaches_them_at_the_root(berthd):
    s = berthd.create(**SMALL)
    r = berthd.call("POST", "/processes", {"command": "echo hi; sleep 600"}, token=s["token"])
    assert r.status == 201, r
    wait_for(lambda: berthd.call("GET", f"/processes/{r.json['id']}", token=s["token"]).json["output"] == "hi\n")
    assert len(berthd.call("GET", "/processes", token=s["token"]).json["processes"]) == 1
    assert berthd.call("DELETE", f"/processes/{r.json['id']}?grace_s=0", token=s["token"]).status == 200
    berthd.call("DELETE", f"/v1/sessions/{s['id']}")


def test_processes_are_no_execs_and_leave_their_slots_alone(fresh):
    pids = [fresh.start("sleep 600") for _ in range(5)]
    assert fresh.berthd.sh(fresh.session, "echo runs") == "runs\n"
    assert len(fresh.berthd.call("GET", f"/v1/sessions/{fresh.session}/execs").json["execs"]) == 1
    assert [p["id"] for p in fresh.list()] == pids


def test_the_ports_it_listens_on_are_listed(fresh):
    serve = ("import socket, time\nkeep = []\nfor p in (8080, 4711):\n s = socket.socket(); s.bind(('', p)); s.listen(); keep.append(s)"
             "\nprint('ready', flush=True); time.sleep(600)")
    pid = fresh.start(["sh", "-c", "python3 -c \"$0\" & wait", serve])
    quiet = fresh.start("sleep 600")
    ended = fresh.start("true")
    fresh.read_until(pid, "ready")
    fresh.finish(ended)
    assert {p["id"]: p["ports"] for p in fresh.list()} == {pid: [4711, 8080], quiet: [], ended: []}


# ---- output ----

def test_offsets_bring_only_what_is_new(procs):
    pid = procs.start("printf abc; read x; printf def; read x", stdin=True)
    assert procs.read_until(pid, "abc") == "abc"
    assert procs.get(pid, offset=1)["output"] == "bc"
    r = procs.get(pid, offset=3)
    assert (r["output"], r["next_offset"], r["lost_bytes"], r["running"]) == ("", 3, 0, True)
    procs.write(pid, data="\n")
    assert procs.read_until(pid, "def", offset=3) == "def"
    r = procs.call("GET", f"/{pid}?offset=7")
    assert r.status == 400 and r.json["error"]["field"] == "offset"
    assert procs.delete(pid, offset=4, grace_s=0)["output"] == "ef"


def test_the_last_mebibyte_is_kept_and_what_was_lost_is_counted(procs):
    total = 3 << 20
    pid = procs.start(f"head -c {total} /dev/zero | tr '\\0' x; printf end")
    wait_for(lambda: not procs.state(pid)["running"], 60)
    r = procs.get(pid)
    assert r["lost_bytes"] == total + 3 - (1 << 20) and r["next_offset"] == total + 3
    assert r["output"] == "x" * ((1 << 20) - 3) + "end"
    r = procs.get(pid, offset=total)
    assert (r["output"], r["lost_bytes"]) == ("end", 0)
    procs.delete(pid)


def test_all_bytes_come_in_base64_and_as_text_without_broken_characters(procs):
    pid = procs.start("""python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 500)'""")
    raw, end = procs.finish(pid, encoding="base64")
    assert raw.encode("latin-1") == bytes(range(256)) * 500 and end["encoding"] == "base64"
    assert procs.finish(pid)[0] == (bytes(range(256)) * 500).decode("utf-8", "replace")
    procs.delete(pid)


def test_a_character_is_never_cut_in_two(procs):
    pid = procs.start(r"printf 'a\303'; read x; printf '\244b\360\237'; read x", stdin=True)
    assert procs.read_until(pid, "a") == "a"
    r = procs.get(pid, offset=1)
    assert (r["output"], r["next_offset"]) == ("", 1)
    waiting = later(procs.get, pid, offset=1, wait_s=60)  # half a character is nothing new
    time.sleep(0.3)
    assert not waiting.done()
    procs.write(pid, data="\n")
    r = waiting.result(60)
    assert r["output"].startswith("ä") and r["running"]
    assert procs.read_until(pid, "b", offset=1) == "äb"
    procs.write(pid, data="\n")
    text, end = procs.finish(pid, offset=4)
    assert text == "\ufffd" and end["next_offset"] == 6  # after the end it is told
    procs.delete(pid)


def test_a_poll_waits_for_output_or_the_end(procs):
    pid = procs.start("read x; echo $x; read x; exit 4", stdin=True)
    waiting = later(procs.get, pid, wait_s=60)
    procs.write(pid, data="now\n")
    r = waiting.result(60)
    assert r["output"] == "now\n" and r["running"]
    waiting = later(procs.get, pid, offset=4, wait_s=60)
    procs.write(pid, close=True)
    r = waiting.result(60)
    assert (r["output"], r["running"], r["exit_code"]) == ("", False, 4)
    began = time.monotonic()
    assert procs.get(pid, offset=4, wait_s=60)["running"] is False
    assert time.monotonic() - began < 30
    procs.delete(pid)


def test_a_poll_that_waits_in_vain_says_so(procs):
    pid = procs.start("sleep 600")
    r = procs.get(pid, wait_s=0.5)
    assert (r["output"], r["next_offset"], r["running"], r["exit_code"]) == ("", 0, True, None)
    procs.delete(pid, grace_s=0)


def test_a_thousand_polls_are_fine(procs):
    pid = procs.start("i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done")
    text, offset, connection = "", 0, procs.berthd.connect()
    for _ in range(1000):
        connection.request("GET", f"{procs.path}/{pid}?offset={offset}", headers={"Authorization": f"Bearer {TOKEN}"})
        r = json.loads(connection.getresponse().read())
        assert r["lost_bytes"] == 0
        text += r["output"]
        offset = r["next_offset"]
    connection.close()
    lines = text.split("\n")[:-1]
    assert len(lines) > 5 and lines == [str(i) for i in range(len(lines))]
    procs.delete(pid, grace_s=0)


def test_a_sandbox_full_of_what_commands_left_running_says_so(fresh):
    """Each counts as a job of the agent; then a new one is refused with a limit that says why."""
    for _ in range(64):
        fresh.berthd.exec(fresh.session, "setsid sleep 600 >/dev/null 2>&1 &")
    files = fresh.berthd.call("POST", f"/v1/sessions/{fresh.session}/files/list", {"path": "."})
    for r in (files, fresh.call("POST", "", {"command": "true"})):
        assert r.status == 429 and "left running in the background" in r.json["error"]["message"], r
    assert fresh.list() == []


def test_readers_that_wait_are_bounded(fresh):
    pid = fresh.start("sleep 600")
    readers = [later(fresh.call, "GET", f"/{pid}?wait_s=60") for _ in range(40)]

    def refused():
        """eight of forty readers are refused"""
        return [r for r in readers if r.done()] if sum(r.done() for r in readers) == 8 else None
    for r in wait_for(refused):
        assert r.result().status == 429 and r.result().json["error"]["code"] == "limit_exceeded"
    assert fresh.berthd.sh(fresh.session, "echo runs") == "runs\n"
    ending = later(fresh.call, "DELETE", f"/{pid}?grace_s=0")
    statuses = sorted(r.result(60).status for r in readers)
    assert statuses.count(429) == 8 and set(statuses) <= {200, 404, 429}, statuses
    ending.result(60)


# ---- streams ----

def test_two_readers_stream_all_of_it_at_once_and_end_with_it(procs):
    pid = procs.start("read x; for i in 1 2 3 4 5; do echo line $i; sleep 0.05; done; exit 9", stdin=True)
    streams = [procs.stream(pid) for _ in range(2)]
    procs.write(pid, data="\n")
    for s in streams:
        text, end = s.rest()
        assert text == "".join(f"line {i}\n" for i in range(1, 6))
        assert (end["type"], end["exit_code"], end["reason"], end["id"]) == ("exit", 9, "exited", pid)
        assert s.line() is None
        s.close()
    procs.delete(pid)


def test_a_stream_goes_on_from_where_it_was_left(procs):
    pid = procs.start("echo one; read x; echo two; read x; echo three", stdin=True)
    s = procs.stream(pid)
    assert s.until("one\n") == "one\n"
    s.close()
    procs.write(pid, data="\n")
    procs.read_until(pid, "two")
    again = procs.stream(pid, offset=s.offset)
    assert again.until("two\n") == "two\n"
    procs.write(pid, data="\n")
    assert again.rest()[0] == "three\n"
    procs.delete(pid)


def test_a_stream_carries_any_bytes(procs):
    pid = procs.start("""python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 2000)'""")
    wait_for(lambda: not procs.state(pid)["running"], 60)
    s, got = procs.stream(pid, encoding="base64"), b""
    while (line := s.line())["type"] == "output":
        got += base64.b64decode(line["data"])
    assert got == bytes(range(256)) * 2000
    procs.delete(pid)


# ---- stdin ----

def test_stdin_is_written_in_order_and_closed(procs):
    pid = procs.start("cat; echo done")
    assert procs.write(pid, data="a\n").json == {"ok": True, "bytes": 2}
    assert procs.write(pid, data_b64=base64.b64encode(b"\0\xff\n").decode()).json["bytes"] == 3
    assert procs.write(pid, data="end\n", close=True).status == 200
    raw, end = procs.finish(pid, encoding="base64")
    assert raw.encode("latin-1") == b"a\n\0\xff\nend\ndone\n" and end["exit_code"] == 0
    r = procs.write(pid, data="x")
    assert r.status == 409 and "0 of 1 bytes" in r.json["error"]["message"], r
    procs.delete(pid)


def test_stdin_that_is_closed_or_missing_is_409(procs):
    pid = procs.start("cat >/dev/null; sleep 600")
    assert procs.write(pid, close=True).json == {"ok": True, "bytes": 0}
    assert procs.write(pid, data="x").status == 409
    procs.delete(pid, grace_s=0)
    pid = procs.start("sleep 600", stdin=False)
    assert procs.write(pid, data="x").status == 409
    procs.delete(pid, grace_s=0)


def test_stdin_that_the_process_has_closed_is_409_at_once(procs):
    """Not only from the second write on: the first would be told to be taken, and be lost."""
    pid = procs.start("exec <&-; echo closed; exec sleep 600")
    procs.read_until(pid, "closed")
    r = procs.write(pid, data="x")
    assert r.status == 409 and "0 of 1 bytes" in r.json["error"]["message"], r
    procs.delete(pid, grace_s=0)


@pytest.mark.parametrize("body", [{}, {"data": "x", "data_b64": "eA=="}, {"data_b64": "?"}, {"data": 1}, {"other": 1}], ids=json.dumps)
def test_a_broken_request_for_stdin_is_400(procs, body):
    pid = procs.start("cat")
    assert procs.write(pid, **body).status == 400
    procs.delete(pid, grace_s=0)


def test_many_writers_at_once_do_not_mix(procs):
    pid = procs.start("cat")
    block = 100_000
    writers = [later(procs.write, pid, data=str(i) * block) for i in range(8)]
    assert [w.result(90).json["bytes"] for w in writers] == [block] * 8
    procs.write(pid, close=True)
    text, _ = procs.finish(pid)
    assert len(text) == 8 * block
    assert sorted(text[i] for i in range(0, 8 * block, block)) == [str(i) for i in range(8)]
    assert all(len(set(text[i:i + block])) == 1 for i in range(0, 8 * block, block))
    procs.delete(pid)


def test_a_process_that_does_not_read_is_told_with_what_it_took(procs):
    pid = procs.start("sleep 600")
    r = procs.berthd.call("POST", f"{procs.path}/{pid}/stdin", {"data": "x" * 1_000_000}, timeout=120)
    assert r.status == 409 and "does not read" in r.json["error"]["message"], r
    taken = int(r.json["error"]["message"].split("; ")[1].split()[0])
    assert 65536 <= taken < 1_000_000
    procs.delete(pid, grace_s=0)


def test_a_large_stdin_arrives_whole(procs):
    pid = procs.start("sha256sum; wc -c </dev/null")
    data = os.urandom(5_000_000)
    r = procs.write(pid, data_b64=base64.b64encode(data).decode(), close=True)
    assert r.status == 200 and r.json["bytes"] == len(data), r
    import hashlib
    assert procs.finish(pid)[0].split()[0] == hashlib.sha256(data).hexdigest()
    procs.delete(pid)


# ---- the end ----

def test_delete_asks_first_and_tells_the_last_words(procs):
    pid = procs.start("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    procs.read_until(pid, "ready")
    r = procs.delete(pid, grace_s=30)
    assert r["output"].startswith("ready\n") and r["output"].endswith("bye\n") and r["running"] is False and r["reason"] == "cancelled"
    assert procs.call("GET", f"/{pid}").status == 404
    assert procs.call("DELETE", f"/{pid}").status == 404
    assert pid not in [p["id"] for p in procs.list()]


def test_delete_kills_the_whole_tree_after_the_grace(procs, berthd, engine):
    mark = f"6{os.getpid()}"
    pid = procs.start(f"trap '' TERM; setsid sh -c \"trap '' TERM; sleep {mark} & sleep {mark}\" & sh -c 'trap \"\" TERM; sleep {mark}; :'")
    inside = main_pid(engine, berthd.container_of(procs.session))

    def sleepers():
        return [p for p, line in in_container(inside).items() if line == f"sleep {mark}"]
    wait_for(lambda: len(sleepers()) == 3)
    began = time.monotonic()
    r = procs.delete(pid, grace_s=1)
    assert r["reason"] == "cancelled" and r["exit_code"] is None
    assert time.monotonic() - began >= 1
    wait_for(lambda: not sleepers())


def test_delete_of_one_that_has_ended_kills_what_it_left(procs, berthd, engine):
    mark = f"7{os.getpid()}"
    pid = procs.start(f"setsid sleep {mark} >/dev/null 2>&1 & echo gone")
    inside = main_pid(engine, berthd.container_of(procs.session))
    assert procs.finish(pid)[1]["exit_code"] == 0

    def sleepers():
        return [p for p, line in in_container(inside).items() if line == f"sleep {mark}"]
    wait_for(lambda: len(sleepers()) == 1)
    assert procs.delete(pid)["exit_code"] == 0
    wait_for(lambda: not sleepers())


def test_two_deletes_at_once_do_not_hang(procs):
    pid = procs.start("trap '' TERM; while :; do sleep 0.1; done")
    both = [later(procs.call, "DELETE", f"/{pid}?grace_s=1") for _ in range(2)]
    got = sorted(r.result(60).status for r in both)
    assert got[0] == 200 and got[1] in (200, 404)


def test_a_client_that_hangs_up_in_a_delete_changes_nothing_about_it(procs):
    pid = procs.start("trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done")
    procs.read_until(pid, "ready")
    s = socket.create_connection(("127.0.0.1", procs.berthd.port))
    s.sendall(f"DELETE {procs.path}/{pid}?grace_s=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    wait_for(lambda: "told" in procs.get(pid)["output"])
    s.close()
    wait_for(lambda: not any(p["id"] == pid and p["running"] for p in procs.list()))
    r = procs.call("DELETE", f"/{pid}")
    assert r.status in (200, 404)


def test_a_signal_of_its_own_is_told(procs):
    pid = procs.start("kill -SEGV $$")
    _, end = procs.finish(pid)
    assert (end["reason"], end["signal"], end["exit_code"]) == ("signalled", signal.SIGSEGV, None)
    procs.delete(pid)


def test_the_end_of_a_session_ends_them(berthd, engine):
    p = Procs(berthd, berthd.create(**SMALL)["id"])
    pid = p.start("echo hi; sleep 600")
    s = p.stream(pid)
    s.until("hi\n")
    assert berthd.call("DELETE", f"/v1/sessions/{p.session}").status == 200
    text, end = s.rest()
    assert end and end["type"] in ("exit", "error"), end
    assert p.call("GET").status == 410
    row = wait_for(lambda: [r for r in berthd.rows("SELECT reason, ended_ms FROM exec WHERE id = ?", pid) if r["ended_ms"]])[0]
    assert row["reason"] == "sandbox_lost"


# ---- limits ----

def test_the_ninth_is_refused_until_one_ends(fresh):
    pids = [fresh.start("sleep 600") for _ in range(8)]
    r = fresh.call("POST", "", {"command": "sleep 600"})
    assert r.status == 429 and "SANDBOX_MAX_PROCESSES" in r.json["error"]["message"], r
    fresh.delete(pids[3], grace_s=0)
    fresh.start("sleep 600")
    assert fresh.call("POST", "", {"command": "true"}).status == 429


def test_ended_ones_are_kept_until_sixteen_newer_ones_have_ended(fresh):
    stays = fresh.start("sleep 600")
    pids = []
    for i in range(17):
        pids.append(fresh.start(f"echo {i}"))
        fresh.finish(pids[-1])
    wait_for(lambda: [p["id"] for p in fresh.list()] == [stays] + pids[1:])
    assert fresh.call("GET", f"/{pids[0]}").status == 404
    assert [fresh.get(p)["output"] for p in pids[1:]] == [f"{i}\n" for i in range(1, 17)]
    assert fresh.berthd.sh(fresh.session, "echo runs") == "runs\n"
    assert fresh.get(stays)["running"] is True


def test_a_key_gives_the_same_process_again(fresh):
    key = {"Idempotency-Key": "k1"}
    first = fresh.start("echo x; sleep 600", headers=key)
    r = fresh.call("POST", "", {"command": "echo x; sleep 600"}, headers=key)
    assert r.status == 201 and r.json["id"] == first and r.json["pid"] == fresh.state(first)["pid"]
    assert fresh.call("POST", "", {"command": "other"}, headers=key).status == 409
    assert fresh.berthd.call("POST", f"/v1/sessions/{fresh.session}/exec", {"command": "echo x; sleep 600"}, headers=key).status == 409
    fresh.delete(first, grace_s=0)
    assert fresh.call("POST", "", {"command": "echo x; sleep 600"}, headers=key).json["id"] == first
    assert fresh.list() == []


def test_start_end_and_delete_are_audited(fresh):
    pid = fresh.start("exit 2")
    fresh.finish(pid)
    fresh.delete(pid)

    def rows():
        return [(r["action"], r["outcome"]) for r in
                fresh.berthd.rows("SELECT action, outcome FROM audit WHERE exec = ? ORDER BY id", pid)]
    wait_for(lambda: len(rows()) == 3)
    assert sorted(rows()) == [("process.delete", "ok"), ("process.end", "exited"), ("process.start", "accepted")]


def test_the_health_counts_them(own):
    pids = [own.start("sleep 600") for _ in range(2)]
    own.finish(own.start("true"))
    h = own.berthd.call("GET", "/health").json
    assert h["busy"] == 0
    assert h.get("processes", 2) == 2
    own.delete(pids[0], grace_s=0)


# ---- what happens to berthd and the link ----

def test_they_survive_a_kill_of_berthd(own):
    running = own.start("echo before; read x; echo $x; read x; exit 6", name="r")
    ended = own.start("echo ended; exit 3")
    gone = own.start("echo gone")
    own.read_until(running, "before")
    own.finish(ended)
    own.finish(gone)
    own.delete(gone)
    before = own.list()
    own.berthd.kill()
    own.berthd.start()
    assert own.list() == before
    assert own.get(ended)["output"] == "ended\n" and own.get(ended, offset=2)["output"] == "ded\n"
    r = own.get(running, offset=3)
    assert (r["output"], r["next_offset"], r["running"]) == ("ore\n", 7, True)
    assert own.write(running, data="hello\n").status == 200
    assert own.read_until(running, "hello", offset=7) == "hello\n"
    assert own.write(running, close=True).status == 200
    assert own.write(running, data="x").status == 409
    assert own.finish(running, offset=13)[1]["exit_code"] == 6
    assert own.list() and own.state(running)["exit_code"] == 6
    assert own.delete(running)["output"] == "before\nhello\n"
    own.berthd.kill()
    own.berthd.start()
    assert [p["id"] for p in own.list()] == [ended]


def test_one_that_ends_while_nobody_is_there_is_known_afterwards(own):
    pid = own.start("read x; echo late; exit 5")
    stdin_closed = own.start("cat; sleep 600")
    own.write(stdin_closed, close=True)
    inside = main_pid(own.berthd.engine, own.berthd.container_of(own.session))
    own.berthd.kill()
    shell = next(p for p, line in in_container(inside).items() if "echo late" in line)
    os.kill(shell, signal.SIGKILL)
    own.berthd.start()
    text, end = own.finish(pid)
    assert (text, end["reason"], end["signal"]) == ("", "signalled", 9)
    assert own.write(stdin_closed, data="x").status == 409
    assert own.state(stdin_closed)["running"] is True


def test_a_lost_bridge_is_not_noticed(own, engine):
    pid = own.start("echo one; read x; echo $x; read x; echo $x", stdin=True)
    streams = [own.stream(pid) for _ in range(2)]
    for s in streams:
        s.until("one\n")
    waiting = later(own.get, pid, offset=4, wait_s=60)
    inside = main_pid(engine, own.berthd.container_of(own.session))
    for p in bridges(inside):
        os.kill(p, signal.SIGKILL)
    assert own.write(pid, data="two\n").status == 200
    for s in streams:
        assert s.until("two\n") == "two\n"
    assert waiting.result(60)["output"] == "two\n"
    for p in bridges(inside):
        os.kill(p, signal.SIGKILL)
    assert own.write(pid, data="three\n").status == 200
    for s in streams:
        text, end = s.rest()
        assert text == "three\n" and end["type"] == "exit" and end["exit_code"] == 0


def test_stdin_that_is_under_way_when_the_bridge_is_lost_arrives_once(own, engine):
    pid = own.start("sleep 1; sha256sum")
    data = os.urandom(3_000_000)
    writing = later(own.berthd.call, "POST", f"{own.path}/{pid}/stdin", {"data_b64": base64.b64encode(data).decode(), "close": True})
    inside = main_pid(engine, own.berthd.container_of(own.session))
    for _ in range(3):
        for p in wait_for(lambda: bridges(inside), 20):
            os.kill(p, signal.SIGKILL)
    r = writing.result(120)
    assert r.status == 200 and r.json["bytes"] == len(data), r
    import hashlib
    assert own.finish(pid)[0].split()[0] == hashlib.sha256(data).hexdigest()


def test_a_delete_goes_through_a_kill_of_berthd(own):
    pid = own.start("trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done")
    own.read_until(pid, "ready")
    later(own.call, "DELETE", f"/{pid}?grace_s=5")
    own.read_until(pid, "asked")
    own.berthd.kill()
    own.berthd.start()
    wait_for(lambda: not own.state(pid)["running"], 60)
    assert own.state(pid)["reason"] == "cancelled"
    assert own.delete(pid)["running"] is False


def test_berthd_stops_with_readers_waiting(own):
    pid = own.start("sleep 600")
    stream = own.stream(pid)
    waiting = later(own.call, "GET", f"/{pid}?wait_s=60")
    time.sleep(0.5)
    began = time.monotonic()
    own.berthd.stop()
    assert time.monotonic() - began < 20
    r = waiting.result(30)
    assert r is None or r.status in (200, 503)
    assert stream.rest()[1]["error"]["code"] == "stopping"
    own.berthd.start()
    assert own.get(pid)["running"] is True
