"""`berth run` and `berth exec` where the server behaves as a real one seldom does."""

import base64
import json
import signal
import subprocess
import time

import pytest
from conftest import finish
from fake import EXEC, SESSION, error, exit_line, output

STREAM = f"/v1/sessions/{SESSION}/exec/stream"
REMOVE = f"DELETE /v1/sessions/{SESSION}"
CANCEL = f"DELETE /v1/sessions/{SESSION}/execs/{EXEC}"

ENDS = {
    "its own code": (exit_line(exit_code=7), 7),
    "255": (exit_line(exit_code=255), 255),
    "a signal is 128 + n": (exit_line("signalled", signal=11), 139),
    "timeout is 124": (exit_line("timeout"), 124),
    "out of memory is as SIGKILL": (exit_line("oom"), 137),
    "cancelled is as SIGTERM": (exit_line("cancelled"), 143),
    "output limit is 125": (exit_line("output_limit"), 125),
    "sandbox lost is 125": (exit_line("sandbox_lost"), 125),
    "not found is 127": (exit_line("start_failed", errno=2), 127),
    "not startable is 126": (exit_line("start_failed", errno=13), 126),
    "an unknown reason is 125": (exit_line("eaten"), 125),
    "no reason is 125": ({"type": "exit"}, 125),
    "a code that is none is 125": (exit_line(exit_code="0"), 125),
    "a code out of range is 125": (exit_line(exit_code=256), 125),
}


@pytest.mark.parametrize("end, status", ENDS.values(), ids=ENDS.keys())
def test_exit_status(berth, fake, end, status):
    fake.stream([end])
    assert berth("run", "--rm", "--", "true").returncode == status


def test_output_is_exact_and_split(berth, fake):
    data = bytes(range(256)) * 300
    pieces = [data[at:at + 1000] for at in range(0, len(data), 1000)]
    fake.stream([output(p) for p in pieces] + [output(b"")] + [output(b"\xffoops", "stderr"), exit_line()])
    done = berth("run", "--rm", "--", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"\xffoops")
    body = fake.wait_for("POST", STREAM)
    assert body == {"argv": ["x"], "encoding": "base64", "split": True}


def test_lines_may_be_cut_anywhere(berth, fake):
    whole = b"".join(json.dumps(x).encode() + b"\n" for x in [output(b"one"), output(b"two"), exit_line(exit_code=3)])
    fake.stream([whole[i:i + 1] for i in range(len(whole))])
    done = berth("run", "--rm", "--", "x")
    assert (done.returncode, done.stdout) == (3, b"onetwo")


def test_unknown_lines_are_passed_over(berth, fake):
    fake.stream([{"type": "progress", "percent": 3}, output(b"hi"), exit_line()])
    assert berth("run", "--rm", "--", "x").stdout == b"hi"


BROKEN = {
    "a stream without an end": dict(lines=[output(b"part")]),
    "a connection that breaks": dict(lines=[output(b"part")], cut=True),
    "half a line": dict(lines=[output(b"part"), b'{"type":"exit","reason":"exi']),
    "a line that is no JSON": dict(lines=[output(b"part"), b"oops\n", exit_line()]),
    "output that is no base64": dict(lines=[output(b"part"), {"type": "output", "data": "%%%%"}, exit_line()]),
    "output of a wrong length": dict(lines=[output(b"part"), {"type": "output", "data": "abc"}, exit_line()]),
    "output without data": dict(lines=[output(b"part"), {"type": "output"}, exit_line()]),
    "a line without a bound": dict(lines=[output(b"part"), b"x" * (2 << 20), b"\n", exit_line()]),
    "an error of the server": dict(lines=[output(b"part"), {"type": "error", **error("sandbox_failure", "it is lost")}]),
}


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN.keys())
def test_broken_stream_is_no_success(berth, fake, how):
    fake.stream(**how)
    done = berth("run", "--rm", "--", "x")
    assert done.returncode == 125
    assert done.stdout == b"part"
    assert done.err.startswith("berth: ") and done.err.count("\n") == 1 and EXEC in done.err
    assert REMOVE in fake.seen()


def test_end_counts_also_when_the_connection_breaks_after_it(berth, fake):
    fake.stream([output(b"all"), exit_line(exit_code=4)], cut=True)
    assert berth("run", "--rm", "--", "x").returncode == 4


def test_session_id_is_told_without_rm(berth, fake):
    done = berth("run", "--", "x")
    assert done.returncode == 0 and SESSION in done.err and REMOVE not in fake.seen()


def test_rm_that_fails_is_told(berth, fake):
    fake.on("DELETE", f"/v1/sessions/{SESSION}", lambda h: h.reply(503, error("engine_unavailable")))
    done = berth("run", "--rm", "--", "x")
    assert done.returncode == 125 and f"berth rm {SESSION}" in done.err


def test_session_that_cannot_be_made(berth, fake):
    fake.on("POST", "/v1/sessions", lambda h: h.reply(404, error("not_found", "no image called nope", field="image")))
    done = berth("run", "--rm", "--image", "nope", "--", "x")
    assert (done.returncode, done.stdout, done.err) == (125, b"", "berth: image: no image called nope\n")
    assert fake.seen() == ["POST /v1/sessions"]


def test_json_is_one_object(berth, fake):
    reply = {"id": EXEC, "output": "hi\n", "exit_code": 5, "reason": "exited", "signal": None}
    fake.on("POST", f"/v1/sessions/{SESSION}/exec", lambda h: h.reply(200, reply))
    done = berth("run", "--rm", "--json", "--", "x")
    assert done.returncode == 5
    assert json.loads(done.stdout) == {**reply, "session": SESSION}


def test_json_of_a_failure_is_one_object(berth, fake):
    fake.on("POST", f"/v1/sessions/{SESSION}/exec", lambda h: h.reply(422, error("no_shell", "has no bash")))
    done = berth("run", "--rm", "--json", "-c", "x")
    assert done.returncode == 125
    assert json.loads(done.stdout) == {"error": {"code": "no_shell", "message": "has no bash"}, "session": SESSION}


def test_options_reach_the_server(berth, fake):
    done = berth("run", "--rm", "--image", "i", "--name", "n", "--memory", "1g", "--cpus", "1.5", "--pids", "64",
                 "--env", "A=1=2", "-eB=", "-e", "OWN", "-e", "UNSET", "--label", "k=v", "--network", "net",
                 "--workspace", "named:w", "--workspace-size=2g", "--isolation", "gvisor", "--ttl", "10m", "--idle",
                 "0", "--timeout", "90", "--cwd", "/tmp", "--", "a", "-b", "--", "c", env={"OWN": "mine"})
    assert done.returncode == 0, done.err
    assert fake.wait_for("POST", "/v1/sessions") == {
        "image": "i", "name": "n", "limits": {"memory_mb": 1024, "cpus": 1.5, "pids": 64},
        "env": {"A": "1=2", "B": "", "OWN": "mine"}, "labels": {"k": "v"}, "network": "net",
        "workspace": {"kind": "named", "name": "w", "size_mb": 2048}, "isolation": "gvisor", "ttl_s": 600,
        "idle_s": 0}
    assert fake.wait_for("POST", STREAM) == {"argv": ["a", "-b", "--", "c"], "timeout_s": 90, "cwd": "/tmp",
                                             "encoding": "base64", "split": True}


def test_shell_text_and_existing_session(berth, fake):
    assert berth("run", "--session", SESSION, "-e", "A=1", "-c", "echo $A | cat").returncode == 0
    assert fake.wait_for("POST", STREAM) == {"command": "echo $A | cat", "env": {"A": "1"}, "encoding": "base64",
                                             "split": True}
    assert fake.seen() == [f"POST {STREAM}"]


def test_command_may_stand_without_dashes(berth, fake):
    berth("run", "--rm", "ls", "-l", "--rm")
    assert fake.wait_for("POST", STREAM)["argv"] == ["ls", "-l", "--rm"]
    fake.requests.clear()
    berth("exec", SESSION, "-w", "/tmp", "ls", "-l")
    assert fake.wait_for("POST", STREAM)["argv"] == ["ls", "-l"]


MISUSES = {
    "no command": ["run"],
    "no command after dashes": ["run", "--rm", "--"],
    "shell and command": ["run", "-c", "true", "--", "true"],
    "an unknown option": ["run", "--nope", "--", "true"],
    "an option of a new session with an old one": ["run", "--session", SESSION, "--memory", "1g", "--", "true"],
    "a memory that is no size": ["run", "--memory", "lots", "--", "true"],
    "an env without a name": ["run", "--env", "=x", "--", "true"],
    "bytes that are no UTF-8": ["run", "--", b"\xff"],
    "exec without a session": ["exec"],
}


@pytest.mark.parametrize("words", MISUSES.values(), ids=MISUSES.keys())
def test_misuse_is_125_and_asks_nothing(berth, fake, words):
    done = berth(*words)
    assert done.returncode == 125
    assert done.err.startswith("berth: ") and done.err.count("\n") == 1
    assert fake.seen() == []


# ---- stdin ----


def test_piped_stdin_is_passed_exactly(berth, fake):
    data = bytes(range(256)) * 5000
    berth("run", "--rm", "--", "cat", input=data)
    assert base64.b64decode(fake.wait_for("POST", STREAM)["stdin_b64"]) == data


@pytest.mark.parametrize("words, data", [(["--no-stdin"], b"x"), ([], b"")], ids=["--no-stdin", "empty"])
def test_no_stdin_is_none(berth, fake, words, data):
    berth("run", "--rm", *words, "--", "cat", input=data)
    assert "stdin_b64" not in fake.wait_for("POST", STREAM)


def test_stdin_over_the_limit_is_refused_before_anything_is_made(berth, fake):
    done = berth("run", "--rm", "--", "cat", input=bytes(47 << 20))
    assert done.returncode == 125 and "46 MiB" in done.err and fake.seen() == []


def test_interrupt_while_stdin_is_open(berth, fake):
    process = berth.start("run", "--rm", "--", "cat", stdin=subprocess.PIPE)
    time.sleep(0.3)  # nothing can be seen from outside of a program that only reads
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert fake.seen() == []
    finish(process)


# ---- signals ----

SIGNALS = {"Ctrl-C": (signal.SIGINT, 130), "TERM": (signal.SIGTERM, 143), "HUP": (signal.SIGHUP, 129)}


@pytest.mark.parametrize("signo, status", SIGNALS.values(), ids=SIGNALS.keys())
def test_signal_cancels_and_removes(berth, fake, signo, status):
    fake.stream([output(b"begun\n")], hang=True)
    fake.on("DELETE", f"/v1/sessions/{SESSION}/execs/{EXEC}", lambda h: (h.reply(202, {}), fake.released.set()))
    process = berth.start("run", "--rm", "--", "x")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signo)
    done = finish(process)
    assert done.returncode == status
    assert fake.seen()[-2:] == [CANCEL, REMOVE]


def test_last_words_of_a_cancelled_command_are_shown(berth, fake):
    def stream(h):
        h.send_response(200)
        h.send_header("X-Exec-Id", EXEC)
        h.end_headers()
        h.wfile.write(json.dumps(output(b"begun\n")).encode() + b"\n")
        fake.released.wait(20)
        for line in (output(b"tidied up\n"), exit_line("cancelled")):
            h.wfile.write(json.dumps(line).encode() + b"\n")
        h.close_connection = True

    fake.on("POST", STREAM, stream)
    fake.on("DELETE", f"/v1/sessions/{SESSION}/execs/{EXEC}", lambda h: (h.reply(202, {}), fake.released.set()))
    process = berth.start("run", "--rm", "--", "x")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert (done.returncode, done.stdout) == (130, b"tidied up\n")


def test_second_signal_ends_at_once_and_says_what_stays(berth, fake):
    fake.stream([output(b"begun\n")], hang=True)
    process = berth.start("run", "--rm", "--", "x")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    fake.wait_for("DELETE", f"/v1/sessions/{SESSION}/execs/{EXEC}")
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130 and time.monotonic() - begun < 2
    assert SESSION in done.err and REMOVE not in fake.seen()


def test_signal_while_the_session_is_made_still_removes_it(berth, fake):
    make = fake.replies["POST", "/v1/sessions"]
    fake.on("POST", "/v1/sessions", lambda h: (fake.released.wait(20), make(h)))
    process = berth.start("run", "--rm", "--", "x")
    fake.wait_for("POST", "/v1/sessions")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)  # the program has nothing to show that it has seen the signal
    fake.released.set()
    done = finish(process)
    assert done.returncode == 143
    assert fake.seen() == ["POST /v1/sessions", REMOVE]


def test_reader_that_leaves_ends_the_command(berth, fake):
    fake.stream([output(b"y\n" * 10000)] * 200, hang=True)
    process = berth.start("run", "--rm", "--", "yes")
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert process.wait(10) == 141
    fake.released.set()
    assert fake.seen()[-2:] == [CANCEL, REMOVE]
    process.stderr.close()


def test_signal_gets_through_while_the_reader_stands_still(berth, fake):
    fake.stream([output(b"y\n" * 10000)] * 200, hang=True)
    process = berth.start("run", "--rm", "--", "yes")
    fake.wait_for("POST", STREAM)
    time.sleep(0.5)  # until the pipe is full
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert REMOVE in fake.seen()
    process.stdout.close()
    process.stderr.close()
