"""Fixtures: each test runs on a real Docker and on a real Podman. An engine that does not start is a failure, not a skip."""
import os, pathlib, subprocess, sys, time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from berthd import Berthd, Engine, IMAGE, TOP  # noqa: E402
from hostile import Arena  # noqa: E402


def start_engine(kind):
    """The engine that BERTH_TEST_DOCKER or BERTH_TEST_PODMAN names, else a private one."""
    script = TOP / "tests/engines" / f"{kind}.sh"
    address = os.environ.get(f"BERTH_TEST_{kind.upper()}")
    if not address:
        out = subprocess.run([str(script), "start"], check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
        address = next(w for w in out.split() if w.startswith("unix://"))
    engine = Engine(kind, address, script)
    subprocess.run(["make", "-s", "image"], cwd=TOP, check=True, timeout=1200, env={**os.environ, "SANDBOX_ENGINE": address})
    subprocess.run([str(TOP / "images/minimal.sh")], cwd=TOP, check=True, timeout=600, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SANDBOX_ENGINE": address})
    return engine


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request):
    return start_engine(request.param)


@pytest.fixture(scope="module")
def berthd(engine):
    """One daemon for the tests of a module that do not hurt it."""
    b = Berthd(engine).start()
    yield b
    b.destroy()


@pytest.fixture
def own_berthd(engine):
    """A daemon of the test's own, to be killed; more settings by berthd.settings before start()."""
    b = Berthd(engine)
    yield b
    b.destroy()


@pytest.fixture(scope="module")
def session(berthd):
    return berthd.create()["id"]


@pytest.fixture(scope="module")
def arena(engine):
    """A daemon with a neighbour that is asked all the time, for sessions that are attacked from inside."""
    a = Arena(engine)
    yield a
    a.close()


@pytest.fixture
def neighbour(arena):
    """Nothing the test does may be noticed next door."""
    began = time.monotonic()
    yield arena
    arena.probe.check(began)


@pytest.fixture
def victim(neighbour):
    """The session under attack. Afterwards it answers, is the same, and nothing of the attack runs on."""
    v = neighbour.victim()
    yield v
    neighbour.shared = None  # one that fails is not attacked again
    v.check()
    neighbour.shared = v


@pytest.fixture
def own_victim(neighbour):
    """A session of the test's own, which may end by it."""
    v = neighbour.make(memory_mb=256)
    yield v
    v.delete()
