import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

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


class Berthd:
    """A real berthd of its own on a real engine."""

    token = "admin-token-for-the-tests-of-berth"

    def __init__(self, kind, folder):
        script = ROOT / "tests" / "engines" / f"{kind}.sh"
        engine = subprocess.run([script, "start"], check=True, capture_output=True, text=True, timeout=120).stdout.strip()
        self.log = folder / "log"
        env = {
            "PATH": os.environ["PATH"], "SANDBOX_LISTEN": "127.0.0.1:0", "SANDBOX_DATA": str(folder / "data"),
            "SANDBOX_ENGINE": engine.splitlines()[-1], "SANDBOX_ADMIN_TOKEN": self.token, "ATLAS_LOG_FORMAT": "json",
            "SANDBOX_IMAGE": os.environ.get("BERTH_TEST_IMAGE", "localhost/berth/sandbox:latest"),
            "SANDBOX_INSTANCE": f"cli-{kind}-{os.getpid()}",
        }
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([ROOT / "build" / "berthd"], env=env, stdout=log, stderr=log)
        self.address = f"http://127.0.0.1:{self.wait_for_port()}"
        self.wait_until_well()

    def wait_for_port(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                event = json.loads(line) if line.startswith("{") else {}
                if "port" in event:
                    return event["port"]
            time.sleep(0.02)
        raise AssertionError(f"berthd is not ready: {self.log.read_text()}")

    def wait_until_well(self):
        """The engine is connected in the background; until then there is 503."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.address + "/health", timeout=10):
                    return
            except urllib.error.HTTPError as e:
                last = e.read()
            time.sleep(0.05)
        raise AssertionError(f"berthd is not well: {last}")

    def close(self, berth):
        left = berth("rm", "--all", "--yes", timeout=120)
        self.process.terminate()
        assert self.process.wait(30) == 0
        assert left.returncode == 0, left.err


@pytest.fixture(scope="session", params=["docker", "podman"])
def berthd(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    server = Berthd(request.param, folder)
    yield server
    server.close(Berth(folder, server.address, server.token))


@pytest.fixture
def real(home, berthd):
    """The program, told to use a real berthd."""
    return Berth(home, berthd.address, berthd.token)


@pytest.fixture
def box(real):
    """The id of a session."""
    made = json.loads(real("create", "--json", "--memory", "512m").stdout)
    yield made["id"]
    real("rm", made["id"])
