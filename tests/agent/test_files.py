"""What the agent promises about files: the built-ins of runtime/protocol/builtin.h."""
import errno
import os
import random
import stat

import pytest

from berthproto import JOB_STDIN, STDIN, STDOUT, field, records, wait_for

PYTHON = "/usr/bin/python3"


def builtin(link, name, *args, cwd="/tmp", env=(), **kw):
    """Runs one; what it said."""
    r = link.run(builtin=name, argv=args, cwd=cwd, env=env, **kw)
    assert (r.reason, r.code) == ("exited", 0), (r.reason, r.exit, r.stderr)
    return records(r.stdout)


@pytest.fixture
def place(link, shared, request):
    """A fresh folder in the sandbox's /tmp, by its path there. What is in it goes with it."""
    path = f"/tmp/t{random.getrandbits(60):x}"
    assert link.run(argv=["mkdir", path]).code == 0
    yield path
    link.run(argv=["rm", "-rf", path])


def outside(shared, path):
    """The same path as root outside of the sandbox sees it."""
    return f"/proc/{shared.pid}/root{path}".encode() if isinstance(path, str) else b"/proc/%d/root" % shared.pid + path


# ---- what is common to all ----

@pytest.mark.parametrize("name, args, sys", [
    ("nonsense", ["a"], errno.ENOSYS), ("stat", [], errno.EINVAL),
    ("stat", ["x"] * 4097, errno.EINVAL), ("stats", ["a"], errno.ENOSYS),
])
def test_a_builtin_that_is_none_is_a_failed_start(link, name, args, sys):
    r = link.run(builtin=name, argv=args)
    assert (r.reason, r.detail, r.exit["ERRNO"], r.started) == ("start_failed", "no_builtin", sys, False)


def test_a_builtin_starts_in_its_folder_or_not_at_all(link):
    r = link.run(builtin="stat", argv=["x"], cwd="/nonexistent")
    assert (r.reason, r.detail, r.exit["ERRNO"]) == ("start_failed", "chdir", errno.ENOENT)


def test_a_builtin_is_a_job_like_any_other(link):
    job = link.start(builtin="stat", argv=["."], cwd="/tmp", go=False, tag="e_1")
    assert link.list()[job]["STATE"] == 0
    link.send("GO", job=job)
    r = link.finish(job)
    assert r.started and r.code == 0 and link.list()[job]["TAG"] == b"e_1"
    link.send("FORGET", job=job)


# ---- stat ----

def test_stat_tells_each_path_in_order(link, place):
    link.sh("echo hello >file; chmod 4751 file; mkdir dir; ln -s no/where link; mkfifo fifo; touch -d @-1.5 old",
            cwd=place)
    entries, done, rest = builtin(link, "stat", "file", "dir", "link", "fifo", "gone", "old", "/dev/null", cwd=place)
    assert done is None and rest == b""
    assert [e["PATH"] for e in entries] == [b"file", b"dir", b"link", b"fifo", b"gone", b"old", b"/dev/null"]
    assert [e["TYPE"] for e in entries] == ["file", "dir", "symlink", "fifo", "", "file", "char"]
    assert [e["ERRNO"] for e in entries] == [0, 0, 0, 0, errno.ENOENT, 0, 0]
    assert (entries[0]["SIZE"], entries[0]["MODE"]) == (6, 0o4751)
    assert entries[2]["TARGET"] == b"no/where"
    assert entries[5]["MTIME_NS"] == 2**64 - 1500000000


NAMES = [b"a b", b"a\nb", b"a'b\"c", b"-rf", b"--", b"\xff\xfe", b"*", b"\\", b"x" * 255]


@pytest.mark.parametrize("name", NAMES)
def test_stat_takes_any_name(link, place, name):
    link.run(argv=["touch", "--", name], cwd=place)
    (entry,), _, _ = builtin(link, "stat", name, cwd=place)
    assert (entry["PATH"], entry["TYPE"]) == (name, "file")


@pytest.mark.parametrize("path, sys", [
    ("x" * 256, errno.ENAMETOOLONG), ("x/" * 3000, errno.ENAMETOOLONG), ("/etc/passwd/x", errno.ENOTDIR),
    ("/root/x", errno.EACCES),
])
def test_stat_says_what_is_wrong_with_a_path(link, path, sys):
    (entry,), _, _ = builtin(link, "stat", path)
    assert entry["ERRNO"] == sys and entry["PATH"] == path.encode()[:4096]


def test_stat_of_many_paths(link):
    paths = [f"/tmp/{i}-{'y' * 200}" for i in range(4096)]
    entries, _, _ = builtin(link, "stat", *paths)
    assert [e["PATH"].decode() for e in entries] == paths
