import os
import pathlib
import signal
import subprocess

import pytest

from fake import TOKEN, Fake

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BERTH_CLI", str(ROOT / "build" / "berth"))


class Berth:
    """Runs the program in an environment of its own."""

    def __init__(self, home, address=None, token=None):
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        self.env |= {k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "TSAN_"))}
        if address:
            self.env["BERTH_ADDRESS"] = address
        if token:
            self.env["BERTH_TOKEN"] = token

    def start(self, *words, stdin=subprocess.DEVNULL, env=None, **other):
        return subprocess.Popen([PROGRAM, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**self.env, **(env or {})}, **other)

    def __call__(self, *words, input=None, timeout=60, env=None, **other):
        """The whole run; returncode, stdout and stderr (bytes; .out and .err as text)."""
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        return finish(self.start(*words, stdin=stdin, env=env, **other), input, timeout)


def finish(process, input=None, timeout=60):
    try:
        stdout, stderr = process.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    done = subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
    done.out, done.err = stdout.decode(errors="replace"), stderr.decode(errors="replace")
    return done


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def fake():
    server = Fake()
    yield server
    server.close()


@pytest.fixture
def berth(home, fake):
    """The program, told to use the fake server."""
    return Berth(home, fake.address, TOKEN)


@pytest.fixture
def lone(home):
    """The program without any server named."""
    return Berth(home)
