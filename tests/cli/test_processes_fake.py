"""Background processes against a server that breaks off, repeats and lies."""

import base64
import json

import pytest
from fake import SESSION, error

PROCESSES = f"/v1/sessions/{SESSION}/processes"
ID = "p_cccccccccccccccccccc"


def process(**other):
    return {"id": ID, "name": "web", "command": "serve", "pid": 7, "running": True, "exit_code": None, "reason": None,
            "signal": None, "started_at": "2026-01-31T12:00:00.000Z", "ended_at": None, "ports": [80, 8080], **other}


def output(data, next_offset, **other):
    return {"type": "output", "data": base64.b64encode(data).decode(), "next_offset": next_offset, **other}


EXIT = {"type": "exit", "exit_code": 3, "reason": "exited", "signal": None}


@pytest.fixture
def one(fake):
    fake.on("GET", PROCESSES, lambda h: h.reply(200, {"processes": [process()]}))
    return fake


def test_start_sends_the_command_and_prints_the_id(berth, fake):
    fake.on("POST", PROCESSES, lambda h: h.reply(201, {"id": ID, "pid": 7}))
    done = berth("start", SESSION, "--name", "web", "-e", "A=1", "-w", "/tmp", "--", "serve", "--port", "80")
    assert (done.returncode, done.out) == (0, ID + "\n")
    assert fake.requests[-1][2] == {"argv": ["serve", "--port", "80"], "name": "web", "env": {"A": "1"}, "cwd": "/tmp"}


def test_ps_lists_them_with_their_ports(berth, one):
    done = berth("ps", SESSION)
    assert done.returncode == 0 and "web" in done.out and "80,8080" in done.out
    assert json.loads(berth("ps", SESSION, "--json").stdout) == [process()]


def test_logs_by_name(berth, one):
    one.on("GET", f"{PROCESSES}/{ID}", lambda h: h.reply(200, {
        **process(), "output": base64.b64encode(b"\xff\x00x").decode(), "next_offset": 13, "lost_bytes": 10}))
    done = berth("logs", SESSION, "web")
    assert (done.returncode, done.stdout) == (0, b"\xff\x00x") and "10 bytes" in done.err
    assert berth("logs", SESSION, "other").returncode == 4


def test_a_name_that_several_have_means_the_one_that_runs(berth, fake):
    other = "p_dddddddddddddddddddd"
    both = [process(running=False, exit_code=0), process(id=other)]
    fake.on("GET", PROCESSES, lambda h: h.reply(200, {"processes": both}))
    fake.on("GET", f"{PROCESSES}/{other}", lambda h: h.reply(200, {"output": "", "next_offset": 0}))
    assert berth("logs", SESSION, "web").returncode == 0
    both[0]["running"] = True
    assert berth("logs", SESSION, "web").returncode == 5


def test_follow_goes_on_where_a_stream_broke(berth, one):
    offsets = []

    def answer(h):
        offsets.append(int(h.query["offset"][0]))
        if offsets[-1] == 0:
            h.stream([output(b"one ", 4)], cut=True)
        elif offsets[-1] == 4 and len(offsets) < 4:
            h.stream([], cut=True)
        else:
            h.stream([output(b"", 4), output(b"two", 7), EXIT])

    one.on("GET", f"{PROCESSES}/{ID}/stream", answer)
    done = berth("logs", "-f", SESSION, ID)
    assert (done.returncode, done.stdout) == (0, b"one two") and offsets == [0, 4, 4, 4]


def test_follow_of_a_session_that_is_gone_ends(berth, one):
    one.on("GET", f"{PROCESSES}/{ID}/stream", lambda h: h.reply(410, error("session_gone", "it has ended")))
    done = berth("logs", "-f", SESSION, ID)
    assert done.returncode == 4 and "it has ended" in done.err


def test_stop_prints_the_last_words(berth, one):
    one.on("DELETE", f"{PROCESSES}/{ID}", lambda h: h.reply(200, {
        **process(running=False, reason="cancelled"), "output": base64.b64encode(b"bye").decode()}))
    done = berth("stop", SESSION, "web", "--grace", "2")
    assert (done.returncode, done.stdout) == (0, b"bye")
    assert one.seen()[-1] == f"DELETE {PROCESSES}/{ID}?encoding=base64&grace_s=2"
