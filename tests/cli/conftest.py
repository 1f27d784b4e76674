import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from fake import TOKEN, Fake

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from berthd import TOKEN as ADMIN_TOKEN  # noqa: E402
from berthd import Berthd, Engine, wait_for  # noqa: E402

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

    def start(self, *words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=None, **other):
        return subprocess.Popen([PROGRAM, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
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


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request):
    script = ROOT / "tests" / "engines" / f"{request.param}.sh"
    said = subprocess.run([script, "start"], check=True, capture_output=True, text=True, timeout=120).stdout
    found = Engine(request.param, next(w for w in said.split() if w.startswith("unix://")), script)
    subprocess.run(["make", "-s", "image"], cwd=ROOT, check=True, timeout=1200,
                   env={**os.environ, "SANDBOX_ENGINE": found.address})
    return found


@pytest.fixture(scope="module")
def berthd(engine):
    server = Berthd(engine).start()
    wait_for(lambda: server.call("GET", "/health").status == 200, 60)
    yield server
    server.destroy()


@pytest.fixture
def real(home, berthd):
    """The program, told to use a real berthd."""
    return Berth(home, f"http://127.0.0.1:{berthd.port}", ADMIN_TOKEN)


@pytest.fixture
def box(real):
    """The id of a session."""
    made = real("create", "--json", "--memory", "512m")
    assert made.returncode == 0, made.err
    id = json.loads(made.stdout)["id"]
    yield id
    real("rm", id)
