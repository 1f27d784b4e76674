import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))

import berthproto  # noqa: E402
from berthproto import wait_for  # noqa: E402

AGENT = os.environ.get("BERTH_AGENT", str(ROOT / "build/berth-agent"))


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root for namespaces"))


def has_v1(kind):
    return os.path.exists(f"/sys/fs/cgroup/{kind}/cgroup.procs")


@pytest.fixture(scope="module")
def shared():
    """One agent for the tests that leave nothing behind in it."""
    sandbox = berthproto.Sandbox(AGENT)
    yield sandbox
    assert sandbox.alive(), "the agent died"
    sandbox.close()


@pytest.fixture
def link(shared):
    """A link to the shared agent; afterwards no process and no descriptor of the test is left."""
    link = berthproto.Link(shared)
    before = shared.descriptors()
    yield link
    link.forget_all()
    wait_for(lambda: shared.descriptors() <= before, 5)  # a slot is freed when its supervisor is reaped
    link.close()


@pytest.fixture
def sandbox():
    """An agent for one test."""
    sandbox = berthproto.Sandbox(AGENT)
    yield sandbox
    assert sandbox.alive(), "the agent died"
    sandbox.close()


@pytest.fixture
def small():
    """An agent with 256 pids and 64 MiB of memory."""
    if not has_v1("pids") or not has_v1("memory"):
        pytest.skip("needs cgroup v1 controllers to set limits without an engine")
    sandbox = berthproto.Sandbox(AGENT, pids=256, memory=64 << 20)
    yield sandbox
    assert sandbox.alive(), "the agent died"
    sandbox.close()
