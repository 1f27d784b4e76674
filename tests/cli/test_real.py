"""The program against a real berthd on a real Docker and a real Podman."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import ADMIN_TOKEN, PROGRAM, ROOT, finish

ENDS = {
    "its own code": (["sh", "-c", "exit 7"], 7),
    "success": (["true"], 0),
    "a signal": (["sh", "-c", "kill -SEGV $$"], 139),
    "not found": (["no-such-program"], 127),
    "not executable": (["/etc/passwd"], 126),
    "a folder": (["/tmp"], 126),
}


@pytest.mark.parametrize("command, status", ENDS.values(), ids=ENDS.keys())
def test_exit_status_is_the_commands(real, box, command, status):
    done = real("exec", box, "--", *command)
    assert done.returncode == status, done.err


def test_not_found_in_a_shell_is_127(real, box):
    assert real("exec", box, "-c", "no-such-program").returncode == 127


def test_timeout_is_124(real, box):
    begun = time.monotonic()
    done = real("exec", box, "--timeout", "1", "--", "sleep", "100")
    assert done.returncode == 124 and "timeout" in done.err and time.monotonic() - begun < 10


def test_one_line_for_ci(real):
    done = real("run", "--rm", "--memory", "512m", "-e", "CI=1", "--", "sh", "-c", "echo $CI; id -u; exit 3")
    assert (done.returncode, done.out, done.err) == (3, "1\n10001\n", "")
    assert real("ls", "-q").out == ""


def test_bytes_pass_exactly_both_ways(real, box):
    data = os.urandom(3 << 20)
    done = real("exec", box, "--", "cat", input=data)
    assert done.returncode == 0 and done.stdout == data


def test_stderr_is_apart(real, box):
    done = real("exec", box, "-c", "printf out; printf err >&2")
    assert (done.stdout, done.stderr) == (b"out", b"err")


def test_output_comes_as_it_is_written(real, box):
    process = real.start("exec", box, "-c", "echo first; sleep 30")
    begun = time.monotonic()
    assert process.stdout.readline() == b"first\n"
    assert time.monotonic() - begun < 10
    process.send_signal(signal.SIGINT)
    assert finish(process).returncode == 130


def test_interrupt_ends_the_command_in_the_sandbox(real, box):
    process = real.start("exec", box, "-c", "echo begun; exec sleep 987")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGTERM)
    assert finish(process).returncode == 143
    assert real("exec", box, "--", "pgrep", "-f", "sleep 987").returncode == 1


def test_interrupt_removes_the_session(real):
    process = real.start("run", "--rm", "--memory", "512m", "--", "sh", "-c", "echo begun; sleep 987")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    assert finish(process).returncode == 130
    assert real("ls", "-q").out == ""


def test_reader_that_leaves_ends_the_command(real, box):
    script = f"{PROGRAM} exec {box} -- sh -c 'exec -a endless yes' | head -n 1; echo ${{PIPESTATUS[0]}}"
    script = script.replace("sh -c", "bash -c")
    done = subprocess.run(["bash", "-c", script], env=real.env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.stdout == b"y\n141\n"
    assert real("exec", box, "--", "pgrep", "-f", "endless").returncode == 1


def test_large_output_is_whole(real, box):
    done = real("exec", box, "-c", "head -c 30000000 /dev/zero | tr '\\0' x", timeout=120)
    assert done.returncode == 0 and len(done.stdout) == 30000000 and set(done.stdout) == {ord("x")}


def test_options_of_a_command(real, box):
    done = real("exec", box, "-w", "/tmp", "-e", "A=b c", "-c", "pwd; echo $A")
    assert done.out == "/tmp\nb c\n"


def test_json_of_a_run(real, box):
    done = real("exec", box, "--json", "-c", "echo hi; exit 4")
    reply = json.loads(done.stdout)
    assert done.returncode == 4 and reply["session"] == box
    assert (reply["output"], reply["exit_code"], reply["reason"]) == ("hi\n", 4, "exited")


def test_session_from_create_to_gone(real):
    made = real("create", "--name", "one-of-a-kind", "--label", "job=7", "--memory", "512m", "--cpus", "1", "--pids",
                "100", "--ttl", "10m")
    assert made.returncode == 0, made.err
    id = re.search(r"^id +(s_\w+)$", made.out, re.M)[1]
    assert re.search(r"^token +\S{20,}$", made.out, re.M)
    assert real("exec", "one-of-a-kind", "--", "sh", "-c", "echo kept >file").returncode == 0
    assert real("run", "--session", "one-of-a-kind", "--", "cat", "file").out == "kept\n"
    shown = json.loads(real("show", "one-of-a-kind", "--json").stdout)
    assert shown["limits"] == {"memory_mb": 512, "cpus": 1.0, "pids": 100} and shown["labels"] == {"job": "7"}
    for filter in (["--name", "one-of-a-kind"], ["--label", "job=7"], ["--label", "job"], ["--state", "ready"]):
        assert id in real("ls", "-q", *filter).out.split()
    assert real("ls", "-q", "--label", "job=8").out == ""
    assert real("rm", "one-of-a-kind").out == id + "\n"
    assert real("exec", id, "--", "true").returncode == 125
    assert "state" in real("show", id).out and "gone" in real("show", id).out
    assert real("rm", id).returncode == 4
    assert id in real("ls", "-q", "--state", "gone").out.split()


def test_image_that_is_not_there(real):
    done = real("run", "--rm", "--image", "localhost/no/such:image", "--", "true")
    assert done.returncode == 125 and "localhost/no/such:image" in done.err


def test_wrong_token(real):
    done = real("ls", env={"BERTH_TOKEN": "wrong"})
    assert done.returncode == 3 and "token" in done.err and "wrong" not in done.err


def test_bad_values_name_their_field(real):
    done = real("create", "--name", "no blanks please")
    assert done.returncode == 2 and done.err.startswith("berth: name: ")


def test_health_and_version(real):
    assert real("health").returncode == 0
    assert json.loads(real("health", "--json").stdout)["ok"] is True
    versions = json.loads(real("version", "--json").stdout)
    assert versions["berth"] == versions["berthd"]


def readme_blocks():
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    return [b for b in blocks if "make up" not in b]


@pytest.mark.parametrize("block", readme_blocks(), ids=["berth", "curl"])
def test_first_session_of_the_readme(real, home, block):
    (home / "admin-token").write_text(ADMIN_TOKEN)
    block = block.replace("/var/lib/berth-up/admin-token", str(home / "admin-token"))
    block = block.replace("http://127.0.0.1:8080", real.env["BERTH_ADDRESS"])
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=ROOT, env=real.env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "42" in done.stdout
    assert real("ls", "-q").out == ""
