"""What the agent promises about files: the built-ins of runtime/protocol/builtin.h."""
import errno
import hashlib
import os
import random
import subprocess
import tempfile

import pytest

from berthproto import (BLOCK, JOB_STDIN, JOB_WINDOW, LINK_WINDOW, PAYLOAD_MAX, STDIN, STDOUT, Link, Sandbox, field,
                        records, wait_for)
from conftest import AGENT

PYTHON = "/usr/bin/python3"


def said(r):
    assert (r.reason, r.code) == ("exited", 0), (r.exit, r.stderr)
    return records(r.stdout)


def builtin(link, name, *args, cwd="/tmp", env=(), **kw):
    """Runs one; what it said."""
    return said(link.run(builtin=name, argv=args, cwd=cwd, env=env, **kw))


def feed(link, job, data, eof=True):
    """Sends it to the job's stdin as credit allows."""
    credit, link_credit, sent = JOB_WINDOW, LINK_WINDOW, 0
    while sent < len(data) and link.results[job].exit is None:
        n = min(credit, link_credit, PAYLOAD_MAX, len(data) - sent)
        if n:
            link.send("DATA", STDIN, job, data[sent:sent + n])
            sent, credit, link_credit = sent + n, credit - n, link_credit - n
            continue
        f = link.recv()
        if f.type == "WINDOW":
            credit, link_credit = (credit + f.fields["BYTES"], link_credit) if f.job == job else (
                credit, link_credit + f.fields["BYTES"])
    if eof:
        link.send("EOF", STDIN, job)


def write(link, path, data, mode="", want="", cwd="/tmp"):
    """The one entry of a write."""
    job = link.start(builtin="write", argv=[path, mode, want], cwd=cwd, env=[], flags=JOB_STDIN)
    feed(link, job, data)
    r = link.finish(job)
    link.send("FORGET", job=job)
    (entry,), done, rest = said(r)
    assert done is None and rest == b""
    return entry


def read(link, path, offset=0, length=0, cwd="/tmp", **kw):
    """The entry of a read, and the bytes."""
    (entry,), done, rest = builtin(link, "read", path, str(offset), str(length), cwd=cwd, **kw)
    return entry, rest


def tag(entry):
    return "-".join(f"{entry.get(k, 0):x}" for k in ("INODE", "SIZE", "MTIME_NS", "CTIME_NS"))


def names(link, path):
    return link.run(argv=["ls", "-A", path]).stdout.decode().split()


@pytest.fixture
def place(link):
    """A fresh folder in the sandbox's /tmp, by its path there. What is in it goes with it."""
    path = f"/tmp/t{random.getrandbits(60):x}"
    assert link.run(argv=["mkdir", path]).code == 0
    yield path
    link.run(argv=["sh", "-c", f"chmod -R u+rwx {path}; rm -rf {path}"])


def in_mounts_of(sandbox, *argv):
    subprocess.run(["nsenter", "-t", str(sandbox.pid), "-m", "-p", *argv], check=True, timeout=20)


def disk(sandbox, path, options):
    in_mounts_of(sandbox, "sh", "-c", f"mkdir {path}; mount -t tmpfs -o mode=1777,{options} tmpfs {path}")
    yield path
    in_mounts_of(sandbox, "umount", "-l", path)


@pytest.fixture
def small_disk(shared, place):
    """A file system of 1 MiB and 64 inodes in the place."""
    yield from disk(shared, place + "/disk", "size=1m,nr_inodes=64")


@pytest.fixture
def other_disk(shared, place):
    yield from disk(shared, place + "/other", "size=64m")


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


# ---- read ----

def test_read_sends_the_entry_and_then_the_bytes(link, place):
    link.sh("printf hello >f", cwd=place)
    entry, content = read(link, place + "/f")
    assert (entry["PATH"], entry["TYPE"], entry["SIZE"], content) == (f"{place}/f".encode(), "file", 5, b"hello")


@pytest.mark.parametrize("offset, length, want", [
    (0, 0, b"0123456789"), (0, 3, b"012"), (3, 0, b"3456789"), (3, 3, b"345"), (9, 5, b"9"), (10, 0, b""),
    (11, 1, b""), (2**63 - 1, 0, b""), (0, 2**64 - 1, b"0123456789"),
])
def test_read_takes_a_range(link, place, offset, length, want):
    link.sh("printf 0123456789 >f", cwd=place)
    entry, content = read(link, place + "/f", offset, length)
    assert (entry["ERRNO"], entry["SIZE"], content) == (0, 10, want)


@pytest.mark.parametrize("make, sys", [
    ("mkfifo x", errno.EINVAL), ("mkdir x", errno.EISDIR), ("ln -s /dev/zero x", errno.EINVAL), ("true", errno.ENOENT),
    ("ln -s x x", errno.ELOOP), ("touch x; chmod 0 x", errno.EACCES), ("ln -s /proc/self/mem x", errno.EIO),
    (f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'", errno.EINVAL),
])
def test_read_of_what_is_no_readable_file_is_an_error_at_once(link, place, make, sys):
    assert link.sh(make, cwd=place).code == 0
    entry, content = read(link, place + "/x")
    assert (entry["ERRNO"], content) == (sys, b"")


@pytest.mark.parametrize("offset, length", [("", "0"), ("-1", "0"), ("0", "x"), (str(2**63), "0"), (str(2**64), "0")])
def test_read_refuses_numbers_that_are_none(link, offset, length):
    (entry,), _, rest = builtin(link, "read", "/etc/passwd", offset, length)
    assert (entry["ERRNO"], rest) == (errno.EINVAL, b"")


def test_a_fifo_that_is_read_does_not_wake_its_writer(link, place):
    job = link.start(script="mkfifo f; echo ready; echo x >f; echo woken", cwd=place, keep=BLOCK)
    link.wait("DATA", job)
    entry, _ = read(link, place + "/f")
    assert (entry["ERRNO"], entry["DETAIL"]) == (errno.EINVAL, b"not a regular file")
    link.ping()
    assert link.results[job].stdout == b"ready\n"


@pytest.mark.parametrize("path", ["/proc/self/status", "/proc/meminfo", "/sys/kernel/mm/transparent_hugepage/enabled"])
def test_a_file_without_a_size_is_read_to_its_end(link, path):
    entry, content = read(link, path)
    assert (entry["ERRNO"], entry["SIZE"]) == (0, 0) and content.endswith(b"\n")


def test_a_file_that_grows_is_read_to_the_size_it_had(link, place):
    job = link.start(script="head -c 9 /dev/zero >f; echo; while :; do head -c 100000 /dev/zero >>f; done", cwd=place,
                     keep=BLOCK)
    link.wait("DATA", job)
    entry, content = read(link, place + "/f")
    assert entry["SIZE"] > 0 and len(content) == entry["SIZE"]
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))


def test_a_file_that_is_cut_while_it_is_read_is_no_whole_output(link, place):
    link.sh("head -c 50000000 /dev/zero >f", cwd=place)
    link.auto_credit = False
    job = link.start(builtin="read", argv=["f", "0", "0"], cwd=place, env=[], keep=BLOCK)
    link.wait("DATA", job)
    link.sh(": >f", cwd=place)
    link.auto_credit = True
    for credit in (("WINDOW", 0, 0), ("WINDOW", STDOUT, job)):
        link.send(*credit, field("BYTES", len(link.results[job].stdout)))
    r = link.finish(job)
    assert r.code == 1 and len(r.stdout) < 50000000
    link.send("FORGET", job=job)


def test_a_large_file_arrives_whole(link, place):
    r = link.sh("head -c 30000000 /dev/urandom >f; sha256sum <f", cwd=place)
    entry, content = read(link, place + "/f")
    assert entry["SIZE"] == 30000000 and hashlib.sha256(content).hexdigest() == r.stdout.split()[0].decode()


# ---- write ----

def test_write_makes_a_file_and_its_folders(link, place):
    entry = write(link, "a/b/c", b"hello", cwd=place)
    assert (entry["PATH"], entry["TYPE"], entry["SIZE"], entry["MODE"]) == (b"a/b/c", "file", 5, 0o644)
    assert entry["DETAIL"] == b"new"
    assert link.sh("cat a/b/c; stat -c %a a a/b", cwd=place).stdout == b"hello755\n755\n"
    (again,), _, _ = builtin(link, "stat", "a/b/c", cwd=place)
    assert tag(again) == tag(entry)


def test_write_replaces_a_file_and_keeps_its_permissions(link, place):
    link.sh("echo old >f; chmod 4750 f", cwd=place)
    entry = write(link, "f", b"new", mode="600", cwd=place)
    assert (entry["MODE"], entry.get("DETAIL")) == (0o750, None)
    assert link.sh("cat f; ls -A", cwd=place).stdout == b"newf\n"


@pytest.mark.parametrize("mode, want", [("", 0o644), ("0", 0), ("600", 0o600), ("0755", 0o755), ("777", 0o755),
                                        ("7777", 0o755), ("6711", 0o711)])
def test_write_of_a_new_file_takes_its_mode_under_umask(link, place, mode, want):
    assert write(link, "f", b"", mode=mode, cwd=place)["MODE"] == want


@pytest.mark.parametrize("mode", ["8", "x", "0o644", "10000", "-1"])
def test_write_refuses_a_mode_that_is_none(link, place, mode):
    assert write(link, "f", b"", mode=mode, cwd=place)["ERRNO"] == errno.EINVAL
    assert names(link, place) == []


@pytest.mark.parametrize("make, path, sys", [
    ("mkdir x", "x", errno.EISDIR), ("mkdir x", "x/", errno.EISDIR), ("true", "x/", errno.EISDIR),
    ("mkdir x", "x/.", errno.EISDIR), ("mkdir x", "x/..", errno.EISDIR), ("true", "/", errno.EISDIR),
    ("mkfifo x", "x", errno.EINVAL), ("ln -s /dev/null x", "x", errno.EINVAL), ("touch x", "x/y", errno.ENOTDIR),
    ("ln -s gone/y x", "x", errno.ENOENT), ("ln -s x x", "x", errno.ELOOP), ("mkdir -m 555 x", "x/y", errno.EACCES),
    ("touch x; chmod 444 x", "x", errno.EACCES), ("ln -s gone x", "x/y", errno.ENOENT),
    ("true", "y" * 256, errno.ENAMETOOLONG), ("true", "y/" * 2050 + "z", errno.ENAMETOOLONG),
    ("true", "/x", errno.EACCES),
])
def test_write_says_what_is_wrong_with_a_place(link, place, make, path, sys):
    link.sh(make, cwd=place)
    before = link.sh("ls -lAR", cwd=place).stdout
    entry = write(link, path, b"data", cwd=place)
    assert entry["ERRNO"] == sys
    assert link.sh("ls -lAR", cwd=place).stdout == before


def test_write_follows_a_symlink_and_leaves_it(link, place):
    link.sh("mkdir d; echo old >d/f; ln -s d/f l1; ln -s l1 l2; ln -s d/new l3; ln -s $PWD/d/abs l4", cwd=place)
    for name in ("l2", "l3", "l4"):
        assert write(link, name, name.encode(), cwd=place)["ERRNO"] == 0
    assert link.sh("cat d/f d/new d/abs; find . -type l | sort | xargs", cwd=place).stdout == (
        b"l2l3l4./l1 ./l2 ./l3 ./l4\n")


@pytest.mark.parametrize("name", NAMES)
def test_write_and_read_take_any_name(link, place, name):
    assert write(link, name, b"x", cwd=place)["PATH"] == name
    assert read(link, name, cwd=place)[1] == b"x"


def test_write_only_if_there_is_none(link, place):
    assert write(link, "f", b"1", want="new", cwd=place)["DETAIL"] == b"new"
    assert write(link, "f", b"2", want="new", cwd=place)["ERRNO"] == errno.EEXIST
    link.sh("ln -s gone l; ln -s f m", cwd=place)
    assert write(link, "m", b"2", want="new", cwd=place)["ERRNO"] == errno.EEXIST
    assert read(link, "f", cwd=place)[1] == b"1"


def test_write_only_if_it_is_the_one_that_was_seen(link, place):
    assert write(link, "f", b"0", want="old", cwd=place)["ERRNO"] == errno.ESTALE
    first = write(link, "f", b"1", cwd=place)
    second = write(link, "f", b"2", want=tag(first), cwd=place)
    assert (second["ERRNO"], second.get("DETAIL")) == (0, None)
    assert write(link, "f", b"3", want=tag(first), cwd=place)["ERRNO"] == errno.ESTALE
    assert write(link, "f", b"4", want="old", cwd=place)["ERRNO"] == 0
    assert read(link, "f", cwd=place)[1] == b"4"


def test_the_condition_is_looked_at_when_all_is_there(link, place):
    first = write(link, "f", b"1", cwd=place)
    job = link.start(builtin="write", argv=["f", "", tag(first)], cwd=place, env=[], flags=JOB_STDIN)
    feed(link, job, b"mine", eof=False)
    write(link, "f", b"theirs", cwd=place)
    link.send("EOF", STDIN, job)
    (entry,), _, _ = said(link.finish(job))
    assert entry["ERRNO"] == errno.ESTALE
    assert read(link, "f", cwd=place)[1] == b"theirs" and names(link, place) == ["f"]


def test_of_writers_that_want_the_same_one_wins(link, place):
    first = write(link, "f", b"1", cwd=place)
    jobs = [link.start(builtin="write", argv=["f", "", tag(first)], cwd=place, env=[], flags=JOB_STDIN)
            for _ in range(16)]
    for job in jobs:
        link.send("DATA", STDIN, job, b"%d" % job)
    for job in jobs:
        link.send("EOF", STDIN, job)
    won = [job for job in jobs if said(link.finish(job))[0][0]["ERRNO"] == 0]
    assert len(won) == 1 and read(link, "f", cwd=place)[1] == b"%d" % won[0]


@pytest.mark.parametrize("name", ["f", "new", "a/b/new"])
@pytest.mark.parametrize("end", ["KILL", "TERM"])
def test_a_write_that_does_not_see_its_end_leaves_nothing(link, place, name, end):
    link.sh("echo old >f", cwd=place)
    job = link.start(builtin="write", argv=[name, "", ""], cwd=place, env=[], flags=JOB_STDIN)
    feed(link, job, b"x" * 1000000, eof=False)
    if end == "KILL":
        link.send("SIGNAL", job=job, payload=field("SIGNAL", 9))
        assert link.finish(job).reason == "signalled"
    else:
        link.send("CANCEL", job=job, payload=field("GRACE_MS", 5000))
        assert link.finish(job).reason == "cancelled"
    assert link.sh("cat f; ls -A", cwd=place).stdout == b"old\nf\n"


def test_a_full_disk_leaves_the_old_file(link, small_disk):
    write(link, "f", b"old", cwd=small_disk)
    for name in ("f", "new", "a/b"):
        assert write(link, name, b"x" * 3_000_000, cwd=small_disk)["ERRNO"] == errno.ENOSPC
    assert read(link, "f", cwd=small_disk)[1] == b"old"
    assert names(link, small_disk) == ["f"]


def test_no_inodes_left_is_a_full_disk(link, small_disk):
    link.sh("for i in $(seq 100); do : >i$i; done", cwd=small_disk)
    assert write(link, "new", b"x", cwd=small_disk)["ERRNO"] == errno.ENOSPC


def test_a_read_only_file_system_is_said(link, shared, place):
    link.sh("mkdir ro; echo old >ro/f", cwd=place)
    in_mounts_of(shared, "sh", "-c", f"mount --bind {place}/ro {place}/ro; mount -o remount,bind,ro {place}/ro")
    try:
        assert write(link, "ro/f", b"x", cwd=place)["ERRNO"] == errno.EROFS
        assert write(link, "ro/new", b"x", cwd=place)["ERRNO"] == errno.EROFS
    finally:
        in_mounts_of(shared, "umount", f"{place}/ro")


def test_a_large_file_is_written_whole(link, place):
    data = random.randbytes(20_000_000)
    assert write(link, "f", data, cwd=place)["SIZE"] == len(data)
    assert link.sh("sha256sum <f", cwd=place).stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


# Becomes what follows, after a filter that refuses openat with O_TMPFILE and sendfile as an older system does.
OLD_SYSTEM = r"""
import ctypes, os, struct, sys
def code(op, k, yes=0, no=0):
    return struct.pack('HBBI', op, yes, no, k)
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
filter = b''.join([
    code(LOAD, 0), code(EQUAL, 40, 0, 1), code(RETURN, 0x50000 | 22),         # sendfile: EINVAL
    code(EQUAL, 257, 0, 3), code(LOAD, 32), code(ANY, 0o20000000, 0, 1), code(RETURN, 0x50000 | 95),
    code(RETURN, 0x7fff0000)])
keep = ctypes.create_string_buffer(filter)
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(filter) // 8, ctypes.addressof(keep)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def old():
    """A link to an agent on a system without files that have no name and without sendfile(2)."""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    script = tempfile.NamedTemporaryFile("w", suffix=".py", dir="/run")
    script.write(OLD_SYSTEM)
    script.flush()
    os.chmod(script.name, 0o644)
    sandbox = Sandbox(AGENT, wrap=f"{PYTHON} {script.name}")
    link = Link(sandbox)
    yield link
    link.close()
    assert sandbox.alive(), "the agent died"
    sandbox.close()


def test_an_old_system_reads_and_writes_all_the_same(old):
    data = random.randbytes(1_000_000)
    assert write(old, "a/f", data)["DETAIL"] == b"new"
    assert read(old, "a/f", 5)[1] == data[5:]
    first = write(old, "a/f", b"1")
    assert first.get("DETAIL") is None
    assert write(old, "a/f", b"2", want="new")["ERRNO"] == errno.EEXIST
    assert write(old, "a/f", b"2", want=tag(first))["ERRNO"] == 0
    assert write(old, "a/f", b"3", want=tag(first))["ERRNO"] == errno.ESTALE
    assert write(old, "b/f", b"3", want="new")["DETAIL"] == b"new"
    assert old.sh("cat a/f b/f; find . | sort | xargs", cwd="/tmp").stdout == b"23. ./a ./a/f ./b ./b/f\n"


@pytest.mark.parametrize("end", ["close", "TERM"])
def test_an_old_system_takes_the_temporary_file_away(old, end):
    job = old.start(builtin="write", argv=["f", "", ""], cwd="/tmp", env=[], flags=JOB_STDIN)
    feed(old, job, b"x" * 1000000, eof=False)
    wait_for(lambda: names(old, "/tmp") != [])
    if end == "TERM":
        old.send("CANCEL", job=job, payload=field("GRACE_MS", 5000))
        assert old.finish(job).reason == "cancelled"
        assert names(old, "/tmp") == []
    else:
        old.send("EOF", STDIN, job)
        old.finish(job)
        assert names(old, "/tmp") == ["f"]


# ---- mkdir ----

def test_mkdir_makes_parents_and_is_fine_with_what_is_there(link, place):
    for path in ("a/b/c", "a/b/c", "a", "a//b/", "a/x/../y", ".", "/", "/tmp"):
        (entry,), _, _ = builtin(link, "mkdir", path, cwd=place)
        assert (entry["PATH"], entry["ERRNO"], entry["TYPE"]) == (path.encode(), 0, "dir")
    assert link.sh("find . -type d | sort | xargs; stat -c %a a/b/c", cwd=place).stdout == (
        b". ./a ./a/b ./a/b/c ./a/x ./a/y\n755\n")


@pytest.mark.parametrize("path, sys", [("f", errno.EEXIST), ("f/x", errno.ENOTDIR), ("l", errno.EEXIST),
                                       ("ok", 0), ("/x", errno.EACCES), ("y" * 256, errno.ENAMETOOLONG),
                                       ("y/" * 2050, errno.ENAMETOOLONG)])
def test_mkdir_says_what_is_in_its_way(link, place, path, sys):
    link.sh("touch f; ln -s gone l; mkdir d; ln -s d ok", cwd=place)
    (entry,), _, _ = builtin(link, "mkdir", path, cwd=place)
    assert entry["ERRNO"] == sys


# ---- list ----

def list_(link, path, recursive=False, most=1000, cwd="/tmp", **kw):
    entries, done, rest = builtin(link, "list", path, str(int(recursive)), str(most), cwd=cwd, **kw)
    assert done is not None and rest == b""
    return entries, done


def paths(entries):
    return [e["PATH"] for e in entries]


TREE = "mkdir -p a/b/c e .git/x a/node_modules/y 'a.d' a-d; touch a/b/c/f a/z a.txt 'a!' z a.d/f a/node_modules/y/f; " \
       "ln -s a link; mkfifo fifo; printf 12345 >e/five"


def test_list_tells_what_is_in_a_folder(link, place):
    link.sh(TREE, cwd=place)
    entries, done = list_(link, place)
    assert paths(entries) == [f"{place}/{n}".encode() for n in (".git", "a", "a!", "a-d", "a.d", "a.txt", "e", "fifo",
                                                                "link", "z")]
    kinds = {e["PATH"].rpartition(b"/")[2]: e["TYPE"] for e in entries}
    assert (kinds[b"a"], kinds[b"fifo"], kinds[b"link"], kinds[b"z"]) == ("dir", "fifo", "symlink", "file")
    assert [e["TARGET"] for e in entries if "TARGET" in e] == [b"a"]
    assert (done["ENTRIES"], done.get("TRUNCATED", 0), done.get("ERRNO", 0)) == (10, 0, 0)


def test_list_goes_down_in_byte_order_and_skips_git_and_node_modules(link, place):
    link.sh(TREE, cwd=place)
    entries, done = list_(link, ".", True, cwd=place)
    want = link.sh("find . -mindepth 1 '(' -name .git -o -name node_modules ')' -prune -o -print | LC_ALL=C sort",
                   cwd=place).stdout.split(b"\n")[:-1]
    assert paths(entries) == want and b"./e/five" in want and done["BYTES"] == 5


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("most", [1, 2, 7, 9, 10, 11, 16, 17, 100])
def test_list_of_at_most_so_many_is_the_beginning_of_the_whole(link, place, recursive, most):
    link.sh(TREE, cwd=place)
    whole, _ = list_(link, place, recursive)
    part, done = list_(link, place, recursive, most)
    assert part == whole[:most] and done["ENTRIES"] == len(part)
    assert bool(done.get("TRUNCATED")) == (most < len(whole))


def test_list_of_a_random_tree_is_in_byte_order_and_whole(link, place):
    r = link.run(argv=[PYTHON, "-c", r"""
import os, random
random.seed(5)
folders = [b'.']
for i in range(2000):
    at = random.choice(folders)
    name = bytes(random.choice(b'ab!.-/0\xff\n'.replace(b'/', b'')) for _ in range(random.randint(1, 4)))
    path = at + b'/' + name
    if name in (b'.', b'..') or os.path.lexists(path):
        continue
    if random.random() < 0.3:
        os.mkdir(path)
        folders.append(path)
    else:
        open(path, 'w').close()
all = sorted(os.path.join(d, n) for d, ds, fs in os.walk(b'.') for n in ds + fs)
os.write(1, b'\0'.join(all))
"""], cwd=place, keep=BLOCK)
    want = r.stdout.split(b"\0")
    assert len(want) > 1000
    for most in (len(want) + 1, len(want), 500, 33):
        entries, done = list_(link, ".", True, most, cwd=place)
        assert paths(entries) == want[:most] and bool(done.get("TRUNCATED")) == (most < len(want))


@pytest.mark.parametrize("make, kind", [("touch x", "file"), ("mkfifo x", "fifo"), ("ln -s gone x", "symlink"),
                                        ("touch f; ln -s f x", "symlink"), ("ln -s x x", "")])
def test_list_of_what_is_no_folder_is_its_own_entry(link, place, make, kind):
    link.sh(make, cwd=place)
    entries, done = list_(link, "x", cwd=place)
    assert [e["TYPE"] for e in entries] == ([kind] if kind else [])
    assert done.get("ERRNO", 0) == (0 if kind else errno.ELOOP)


@pytest.mark.parametrize("path, most, sys", [
    ("gone", 10, errno.ENOENT), ("f/x", 10, errno.ENOTDIR), ("shut", 10, errno.EACCES), (".", 0, errno.EINVAL),
    (".", 100001, errno.EINVAL), (".", "x", errno.EINVAL), ("y" * 256, 10, errno.ENAMETOOLONG),
])
def test_list_says_why_it_cannot(link, place, path, most, sys):
    link.sh("touch f; mkdir -m 0 shut", cwd=place)
    entries, done = list_(link, path, False, most, cwd=place)
    assert (entries, done["ERRNO"]) == ([], sys)


def test_list_of_a_link_to_a_folder_tells_what_is_in_it_but_goes_through_no_other(link, place):
    link.sh("mkdir d; touch d/f; ln -s d l; ln -s .. d/up; ln -s /etc d/etc", cwd=place)
    entries, _ = list_(link, "l", True, cwd=place)
    assert paths(entries) == [b"l/etc", b"l/f", b"l/up"]


def test_list_counts_what_it_could_not_read(link, place):
    link.sh("mkdir a b; touch a/x b/x; chmod 0 a", cwd=place)
    entries, done = list_(link, ".", True, cwd=place)
    assert paths(entries) == [b"./a", b"./b", b"./b/x"] and done["REFUSED"] == 1


def test_list_of_a_tree_deeper_than_a_path_can_be(link, place):
    link.run(argv=[PYTHON, "-c", "import os\nfor i in range(3000):\n os.mkdir('dd')\n os.chdir('dd')"], cwd=place)
    entries, done = list_(link, ".", True, 100000, cwd=place)
    assert len(entries) == 4094 // 3 and max(map(len, paths(entries))) < 4096 and done["REFUSED"] == 1
    (entry,), _, _ = builtin(link, "delete", "1", "dd", cwd=place)
    assert entry["ERRNO"] == 0 and names(link, place) == []


def test_list_of_many_files_is_bounded_in_memory(link, place):
    job = link.start(script=f"{PYTHON} -c 'for i in range(100000): open(\"%06d\" % i, \"w\").close()'", cwd=place)
    assert link.finish(job, 60).code == 0
    r = link.run(builtin="list", argv=[place, "1", "100000"], cwd="/", env=[], keep=BLOCK)
    entries, done, _ = said(r)
    assert len(entries) == done["ENTRIES"] == 100000 and not done.get("TRUNCATED")
    assert r.exit["PEAK_BYTES"] < 32 << 20
    r = link.run(builtin="list", argv=[place, "1", "1000"], cwd="/", env=[], keep=BLOCK)
    entries, done, _ = said(r)
    assert paths(entries) == [f"{place}/{i:06}".encode() for i in range(1000)] and done["TRUNCATED"] == 1
    assert r.exit["PEAK_BYTES"] < 8 << 20
    r = link.run(builtin="delete", argv=["1", place], cwd="/", env=[], keep=BLOCK, timeout=60)
    assert said(r)[0][0]["ERRNO"] == 0 and r.exit["PEAK_BYTES"] < 8 << 20


def test_delete_while_it_is_listed(link, place):
    link.sh("for i in $(seq 50); do mkdir d$i; touch d$i/f$i; done", cwd=place)
    job = link.start(builtin="delete", argv=["1"] + [f"d{i}" for i in range(1, 51)], cwd=place, env=[])
    for _ in range(20):
        entries, done = list_(link, ".", True, cwd=place)
        assert done.get("ERRNO", 0) == 0 and paths(entries) == sorted(paths(entries))
    assert all(e["ERRNO"] == 0 for e in said(link.finish(job))[0])


# ---- delete ----

def delete(link, *paths_, recursive=True, cwd="/tmp", **kw):
    entries, _, _ = builtin(link, "delete", str(int(recursive)), *paths_, cwd=cwd, **kw)
    assert [e["PATH"] for e in entries] == [p if isinstance(p, bytes) else p.encode() for p in paths_]
    return [e["ERRNO"] for e in entries]


def test_delete_tells_each_path(link, place):
    link.sh("mkdir -p full/x empty; touch f full/f full/x/f; ln -s full link; ln -s gone dead; mkfifo p", cwd=place)
    assert delete(link, "f", "full", "empty", "gone", "dead", "p", "f/x", recursive=False, cwd=place) == [
        0, errno.ENOTEMPTY, 0, errno.ENOENT, 0, 0, errno.ENOENT]
    assert delete(link, "link", "full/", cwd=place) == [0, 0]
    assert names(link, place) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", ["touch", "mkdir"])
def test_delete_takes_any_name(link, place, name, make):
    link.run(argv=[make, "--", name], cwd=place)
    assert delete(link, name, cwd=place) == [0] and names(link, place) == []


def test_delete_never_goes_through_a_symlink(link, place):
    link.sh("mkdir out in; touch out/f; ln -s ../out in/l; ln -s out top", cwd=place)
    assert delete(link, "top/", cwd=place) == [errno.ENOTDIR]
    assert delete(link, "in", "top", cwd=place) == [0, 0]
    assert link.sh("ls -A . out | xargs", cwd=place).stdout == b".: out out: f\n"


KEPT = ["/", "//", "/.", "/..", "/tmp", "/tmp/", "/tmp/.", "//tmp/../tmp", "/tmp/{}/..", "/proc/self/root/tmp", ".",
        "./", "sub/..", "../{}", "{abs}", "{abs}/home", "{abs}/home/", "{abs}/l", "{abs}/home/.", "/proc/self/cwd"]


@pytest.mark.parametrize("path", KEPT)
@pytest.mark.parametrize("recursive", [False, True])
def test_delete_refuses_the_places_whatever_path_leads_there(link, place, path, recursive):
    link.sh("mkdir -p sub home; touch f sub/f home/f; ln -s home l", cwd=place)
    path = path.format(place.rpartition("/")[2], abs=place)
    before = link.sh("find | sort", cwd=place).stdout
    assert delete(link, path, recursive=recursive, cwd=place, env=[f"HOME={place}/l"]) == [errno.EPERM]
    assert link.sh("find | sort", cwd=place).stdout == before


def test_delete_of_a_folder_around_a_place_leaves_it(link, place):
    link.sh("mkdir -p a/home; touch a/home/f", cwd=place)
    assert delete(link, "a", cwd=place, env=[f"HOME={place}/a/home"]) == [errno.EPERM]
    assert link.sh("ls a/home", cwd=place).stdout == b"f\n"


def test_delete_stops_at_a_mount(link, shared, place):
    link.sh("mkdir -p a/disk a/bind src; touch src/f", cwd=place)
    in_mounts_of(shared, "sh", "-c", f"mount -t tmpfs -o mode=1777 tmpfs {place}/a/disk; touch {place}/a/disk/f; "
                                     f"mount --bind {place}/src {place}/a/bind")
    try:
        for path in ("a/disk", "a/bind", "a"):
            assert delete(link, path, cwd=place) == [errno.EBUSY]
            assert delete(link, path, cwd=place, recursive=False)[0] in (errno.EBUSY, errno.ENOTEMPTY)
        assert link.sh("ls src a/disk | xargs", cwd=place).stdout == b"a/disk: f src: f\n"
    finally:
        in_mounts_of(shared, "umount", f"{place}/a/disk", f"{place}/a/bind")


def test_delete_says_which_name_it_could_not_delete(link, place):
    link.sh("mkdir -p a/b/c; touch a/b/c/f; chmod 555 a/b/c", cwd=place)
    (entry,), _, _ = builtin(link, "delete", "1", "a", cwd=place)
    assert entry["ERRNO"] == errno.EACCES and entry["DETAIL"] == b"could not delete f: Permission denied"


def test_delete_under_attack_never_leads_outside(link, place):
    """A job swaps folders in the tree with symlinks to one outside, as fast as it can."""
    link.sh("mkdir outside; touch outside/precious", cwd=place)
    swapper = link.start(argv=[PYTHON, "-c", r"""
import os
print('ready', flush=True)
n = 0
while True:
    n += 1
    try:
        os.makedirs('tree/a/b', exist_ok=True)
        open('tree/a/b/f', 'w').close()
        os.symlink(os.path.abspath('outside'), 'tree/l%d' % n)
        os.rename('tree/a', 'tree/x')
        os.rename('tree/l%d' % n, 'tree/a')
        os.unlink('tree/a')
        os.rename('tree/x', 'tree/a')
    except OSError:
        pass
"""], cwd=place, keep=BLOCK)
    link.wait("DATA", swapper)
    for _ in range(200):
        assert delete(link, "tree", cwd=place)[0] in (0, errno.ENOENT, errno.ENOTEMPTY, errno.EBUSY)
    link.send("CANCEL", job=swapper, payload=field("GRACE_MS", 0))
    link.finish(swapper)
    assert names(link, f"{place}/outside") == ["precious"]
    assert delete(link, "tree", cwd=place)[0] in (0, errno.ENOENT) and names(link, place) == ["outside"]


# ---- move ----

def move(link, from_, to, cwd="/tmp", **kw):
    (entry,), done, rest = builtin(link, "move", from_, to, cwd=cwd, **kw)
    assert done is None and rest == b"" and entry["PATH"] == (to if isinstance(to, bytes) else to.encode())
    return entry


MOVES = [
    # what is there, from, to, errno, what is there then
    ("echo x >f", "f", "g", 0, "g x"), ("echo x >f; echo y >g", "f", "g", 0, "g x"), ("mkdir -p d/e", "d", "x/", 0, "x/e"),
    ("mkdir -p d/e x", "d", "x", 0, "x/e"), ("mkdir -p d/e x/y", "d", "x", errno.ENOTEMPTY, "d/e x/y"),
    ("mkdir d; echo x >f", "f", "d", errno.EISDIR, "d f x"), ("mkdir d; echo x >f", "d", "f", errno.ENOTDIR, "d f x"),
    ("echo x >f", "f", "f", 0, "f x"), ("echo x >f", "f", "./f", 0, "f x"), ("mkdir d", "d", "d/", 0, "d"),
    ("mkdir d", "d", "d/e", errno.EINVAL, "d"), ("echo x >f; ln f g", "f", "g", 0, "g x"),
    ("echo x >f; ln -s f l", "l", "m", 0, "f m x"), ("mkdir d; ln -s d l", "l/", "m", errno.ENOTDIR, "d l"),
    ("mkdir d; ln -s d l; echo x >f", "f", "l", 0, "d l x"), ("true", "f", "g", errno.ENOENT, ""),
    ("echo x >f", "f", "no/g", errno.ENOENT, "f x"), ("echo x >f", "f", "f/g", errno.ENOTDIR, "f x"),
    ("echo x >f", "f", "g/", errno.ENOTDIR, "f x"), ("echo x >f", "f", "y" * 256, errno.ENAMETOOLONG, "f x"),
    ("ln -s no l", "l", "m", 0, "m"), ("mkfifo p", "p", "q", 0, "q"), ("mkdir d", "d/.", "x", errno.EINVAL, "d"),
    ("mkdir d", ".", "x", errno.EPERM, "d"), ("mkdir d", "d", "..", errno.EPERM, "d"), ("mkdir d", "/", "x", errno.EPERM, "d"),
]


@pytest.mark.parametrize("make, from_, to, sys, then", MOVES)
def test_move_is_a_rename(link, place, make, from_, to, sys, then):
    link.sh(make, cwd=place)
    assert move(link, from_, to, cwd=place)["ERRNO"] == sys
    r = link.sh("find . -mindepth 1 ! '(' -type d ! -empty ')' -printf '%P ' -type f -exec cat {} ';' | xargs -n1 | sort | xargs",
                cwd=place)
    assert sorted(r.stdout.decode().split()) == sorted(then.split())


@pytest.mark.parametrize("name", NAMES)
def test_move_takes_any_name(link, place, other_disk, name):
    link.run(argv=["touch", "--", name], cwd=place)
    assert move(link, name, b"other/" + name, cwd=place)["ERRNO"] == 0
    assert move(link, b"other/" + name, name + b"2" if len(name) < 255 else b"2", cwd=place)["ERRNO"] == 0
    assert names(link, other_disk) == []


HERE_AND_THERE = "cd %s; find . -printf '%%P %%y %%m %%l %%T@ %%s\\n' | grep -v '^ ' | sort; find . -type f -exec sha256sum {} + | sort"


def test_move_to_another_file_system_takes_all_along(link, place, other_disk):
    link.sh("mkdir -p tree/a/b tree/ro; head -c 3000000 /dev/urandom >tree/a/f; echo x >tree/ro/g; ln -s no/where tree/l; "
            "mkfifo tree/p; chmod 751 tree/a/f; chmod 555 tree/ro; touch -hd @123456789.123456789 tree/a/f tree/a/b tree/l; "
            "mkdir tree/$(printf 'n%.0s' $(seq 255)); chmod u+w tree/ro", cwd=place)
    before = link.sh(HERE_AND_THERE % "tree", cwd=place).stdout
    entry = move(link, "tree", "other/new", cwd=place)
    assert (entry["ERRNO"], entry["TYPE"]) == (0, "dir")
    assert link.sh(HERE_AND_THERE % "other/new", cwd=place).stdout == before
    assert names(link, place) == ["other"] and names(link, other_disk) == ["new"]


@pytest.mark.parametrize("make, from_, to, sys", [
    ("echo x >f; echo y >other/f", "f", "other/f", 0), ("mkdir d other/d", "d", "other/d", 0),
    ("mkdir -p d other/d/x", "d", "other/d", errno.ENOTEMPTY), ("mkdir d; echo x >other/d", "d", "other/d", errno.ENOTDIR),
    ("echo x >d; mkdir other/d", "d", "other/d", errno.EISDIR), ("ln -s no l", "l", "other/l", 0),
    ("mkdir s; touch s/f; chmod 555 s", "s/f", "other/f", errno.EACCES), ("mkdir d; touch d/x; chmod 0 d/x", "d", "other/d", errno.EACCES),
])
def test_move_to_another_file_system_is_a_rename_in_its_outcome(link, place, other_disk, make, from_, to, sys):
    link.sh(make, cwd=place)
    before = link.sh("find | sort; cat f", cwd=place).stdout
    assert move(link, from_, to, cwd=place)["ERRNO"] == sys
    after = link.sh("find | sort; cat f", cwd=place).stdout
    assert (after == before) == (sys != 0) and b".berth-" not in after


def test_move_to_a_full_file_system_leaves_the_original(link, place, small_disk):
    link.sh("mkdir d; echo x >d/a; head -c 3000000 /dev/zero >d/f", cwd=place)
    assert move(link, "d", "disk/d", cwd=place)["ERRNO"] == errno.ENOSPC
    assert names(link, small_disk) == [] and names(link, f"{place}/d") == ["a", "f"]


def test_move_of_a_folder_into_itself_through_another_mount(link, shared, place):
    link.sh("mkdir -p d/e bind", cwd=place)
    in_mounts_of(shared, "mount", "--bind", f"{place}/d/e", f"{place}/bind")
    try:
        entry = move(link, "d", "bind/x", cwd=place)
        assert entry["ERRNO"] == errno.EINVAL
        assert link.sh("find d", cwd=place).stdout == b"d\nd/e\n"
        assert move(link, "bind", "x", cwd=place)["ERRNO"] in (errno.EBUSY, errno.EXDEV)
    finally:
        in_mounts_of(shared, "umount", f"{place}/bind")


def test_a_move_that_is_cancelled_leaves_the_original_and_nothing_else(link, place, other_disk):
    link.sh("mkdir d; for i in $(seq 3000); do echo x >d/$i; done; head -c 50000000 /dev/zero >d/big", cwd=place)
    job = link.start(builtin="move", argv=["d", "other/d"], cwd=place, env=[])
    link.wait("STARTED", job)
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 10000))
    r = link.finish(job)
    there, here = names(link, other_disk), names(link, f"{place}/d")
    if r.reason == "cancelled":
        assert there == [] and len(here) == 3001
    link.send("FORGET", job=job)


def test_move_of_a_tree_deeper_than_a_path_can_be(link, place, other_disk):
    link.run(argv=[PYTHON, "-c", "import os\nfor i in range(3000):\n os.mkdir('dd')\n os.chdir('dd')"], cwd=place)
    assert move(link, "dd", "other/dd", cwd=place)["ERRNO"] == 0
    assert delete(link, "other/dd", cwd=place) == [0]


# ---- ports ----

LISTEN = r"""
import os, socket, sys
keep = []
for family, address, port in ((socket.AF_INET, '127.0.0.1', 8080), (socket.AF_INET6, '::', 9090),
                              (socket.AF_INET, '0.0.0.0', 65535)):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, port + OFFSET))
    s.listen()
    keep.append(s)
bound = socket.socket()
bound.bind(('127.0.0.1', 7070 + OFFSET))
DAEMON
print('ready', flush=True)
import time
time.sleep(1000)
"""


def ports(link, *pids):
    entries, done, rest = builtin(link, "ports", *map(str, pids))
    assert done is None and rest == b""
    return [(e["PID"], e["SIZE"]) for e in entries]


def test_ports_are_those_of_the_whole_job_and_of_no_other(link):
    listen = {"OFFSET": "0", "DAEMON": ""}
    daemon = {"OFFSET": "-1", "DAEMON": "if os.fork():\n    time = __import__('time'); time.sleep(1000)\n"
                                       "os.setsid()\nif os.fork():\n    os._exit(0)\n"}
    jobs = []
    for names_ in (listen, daemon):
        code = LISTEN
        for key, value in names_.items():
            code = code.replace(key, value)
        jobs.append(link.start(argv=[PYTHON, "-c", code], keep=BLOCK))
        link.wait("DATA", jobs[-1])
    one, two = (link.results[j].pid for j in jobs)
    other = link.start(argv=["sleep", "1000"])
    link.wait("STARTED", other)
    want = [(one, 8080), (one, 9090), (one, 65535)], [(two, 8079), (two, 9089), (two, 65534)]
    assert ports(link, one) == want[0] and ports(link, two) == want[1]
    assert sorted(ports(link, two, link.results[other].pid, one)) == sorted(want[0] + want[1])


@pytest.mark.parametrize("pid", ["1", "0", "4000000", "x", "-1", "99999999999999999999"])
def test_ports_of_what_is_no_job_are_none(link, pid):
    assert ports(link, pid) == []
