"""What the agent promises about archives: the built-ins pack and unpack (runtime/protocol/builtin.h).

GNU tar and Python's tarfile are the judges of what is packed, and the makers of what is unpacked.
"""
import errno
import gzip
import hashlib
import io
import os
import pathlib
import random
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile

import pytest

import tarmaker as t
from berthproto import JOB_SPLIT, JOB_STDIN, JOB_WINDOW, STDIN, STDOUT, Link, field, records, wait_for

UID = 10001
FORMATS = ["tar", "tar.gz", "tar.zst"]
# as both judges know them
UNPACKERS = {"tar": "cat", "tar.gz": "gzip -dc", "tar.zst": "zstd -dcq"}
PACKERS = {"tar": "cat", "tar.gz": "gzip -1c", "tar.zst": "zstd -1cq"}


def split(output):
    """The entry of the folder, and the archive behind it."""
    end = 6 + int.from_bytes(output[2:6], "big")
    return records(output[:end])[0][0], output[end:]


def pack(link, path, fmt="tar", timeout=120):
    """The archive, what was left out, and the end."""
    r = link.run(builtin="pack", argv=[path, fmt], flags=JOB_SPLIT, timeout_ms=timeout * 1000, timeout=timeout)
    assert (r.reason, r.code) == ("exited", 0), (r.reason, r.exit, r.stderr)
    entries, done, rest = records(r.stderr)
    assert rest == b""
    return *split(r.stdout), entries, done


def unpack(link, path, archive, fmt="", timeout=120):
    """What was refused, and the end."""
    job = link.start(builtin="unpack", argv=[path, fmt], flags=JOB_STDIN, timeout_ms=timeout * 1000)
    link.feed(job, archive)
    r = link.finish(job, timeout)
    link.send("FORGET", job=job)
    assert (r.reason, r.code) == ("exited", 0), (r.reason, r.exit, r.stdout)
    entries, done, rest = records(r.stdout)
    assert rest == b""
    return entries, done


def refused(entries):
    return [(e["PATH"], e["ERRNO"], e.get("DETAIL", b"").decode()) for e in entries]


def through(command, data):
    return subprocess.run(["sh", "-c", command], input=data, stdout=subprocess.PIPE, check=True).stdout


def chown_all(path, uid=UID):
    subprocess.run(["chown", "-Rh", f"{uid}:{uid}", path], check=True)


def picture(root, skip=None, times=True, modes=True):
    """All that is below a folder: type, permissions, contents or target, times; links are not followed."""
    seen = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [f for f in folders if os.path.join(folder, f) != skip]
        for name in folders + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                what = os.readlink(path)
            elif stat.S_ISREG(st.st_mode):
                what = hashlib.sha256(pathlib.Path(os.fsdecode(path)).read_bytes()).hexdigest()
            else:
                what = None
            mode = 0 if stat.S_ISLNK(st.st_mode) or not modes else stat.S_IMODE(st.st_mode)
            seen[os.path.relpath(path, os.fsencode(root))] = (stat.S_IFMT(st.st_mode), mode, what,
                                                              st.st_mtime_ns if times else 0)
    return seen


class Area:
    """A folder on a real disk that the sandbox sees: `target`, and around it what must stay as it is."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="berth-tar-", dir="/var/tmp"))
        self.target = self.root / "target"
        self.outside = self.root / "outside"
        self.target.mkdir()
        self.outside.mkdir()
        (self.outside / "file").write_text("untouched")
        (self.root / "secret").write_text("untouched")
        chown_all(self.root)
        self.root.chmod(0o755)
        self.outside.chmod(0o777)
        self.before = self.around()

    def around(self):
        return picture(self.root, skip=os.fsencode(self.target))

    def tree(self, **how):
        return picture(self.target, **how)

    def names(self):
        return sorted(self.tree())


@pytest.fixture
def area():
    """Whatever a test does, nothing is written outside of the target."""
    a = Area()
    yield a
    try:
        assert a.around() == a.before
        assert not [n for n in a.names() if b".berth-" in n], "a temporary file was left"
    finally:
        shutil.rmtree(os.fsencode(a.root), ignore_errors=True)


@pytest.fixture
def source():
    """Another folder, to be packed."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="berth-src-", dir="/var/tmp"))
    yield path
    shutil.rmtree(os.fsencode(path), ignore_errors=True)


NAMES = [b"a b", b"a\nb", b"it's \"q\"", b"-rf", b"--", b"*", b"\\", b".hidden", b"\xff\xfe", "ü€😀".encode(), b"n" * 255,
         b"tab\t", b"c:d", b"\x01"]


def make_tree(root, rng=None):
    """One of everything that an archive may hold."""
    rng = rng or random.Random(1)
    root = os.fsencode(root)
    for i, name in enumerate(NAMES):
        folder = os.path.join(root, b"d%d" % i, name)
        os.makedirs(folder)
        for j, other in enumerate(NAMES):
            with open(os.path.join(folder, other), "wb") as f:
                f.write(rng.randbytes(rng.choice([0, 1, 511, 512, 513, 10000])))
            os.chmod(os.path.join(folder, other), rng.choice([0o644, 0o755, 0o600, 0o444, 0o700, 0o500]))
        os.symlink(b"../x", os.path.join(folder, b"up"))
        os.symlink(NAMES[8], os.path.join(folder, b"odd"))
    deep = os.path.join(root, *[b"p" * 200] * 12)
    os.makedirs(deep)
    with open(os.path.join(deep, b"file"), "wb") as f:
        f.write(b"deep")
    os.symlink(b"q" * 200 + b"/" + b"r" * 200, os.path.join(deep, b"long"))
    os.makedirs(os.path.join(root, b".git/empty"))
    os.chmod(os.path.join(root, b".git/empty"), 0o500)
    with open(os.path.join(root, b"big"), "wb") as f:
        f.write(rng.randbytes(3_000_001))
    chown_all(root)
    times = [0, 1, -1_500_000_000, 1_600_000_000_123_456_789, 2**33 * 10**9 + 5, 1_700_000_000_000_000_000]
    for folder, folders, files in os.walk(root, topdown=False):
        for name in folders + files:
            ns = rng.choice(times)
            os.utime(os.path.join(folder, name), ns=(ns, ns), follow_symlinks=False)


# ---- round trips, and others as judges ----

@pytest.mark.parametrize("fmt", FORMATS)
def test_a_tree_goes_out_and_in_as_it_was(link, area, source, fmt):
    make_tree(source)
    entry, archive, left_out, done = pack(link, str(source), fmt)
    assert entry["ERRNO"] == 0 and entry["TYPE"] == "dir" and entry["PATH"] == os.fsencode(source)
    want = picture(source)
    assert left_out == [] and done["ENTRIES"] == len(want)
    entries, done = unpack(link, str(area.target), archive, fmt)
    assert refused(entries) == [] and done["ENTRIES"] == len(want) and done.get("ERRNO", 0) == 0
    assert area.tree() == want
    assert done["BYTES"] == sum(os.lstat(os.path.join(os.fsencode(source), p)).st_size
                                for p, (kind, *_) in want.items() if kind == stat.S_IFREG)


@pytest.mark.parametrize("fmt", FORMATS)
def test_gnu_tar_reads_what_is_packed(link, area, source, fmt):
    make_tree(source)
    _, archive, _, _ = pack(link, str(source), fmt)
    r = subprocess.run(["sh", "-c", f"{UNPACKERS[fmt]} | tar --warning=no-timestamp -xpf - -C {area.target}"], input=archive,
                       capture_output=True, check=True)
    assert r.stderr == b""
    assert area.tree() == picture(source)


@pytest.mark.parametrize("fmt", FORMATS)
def test_python_reads_what_is_packed(link, source, fmt):
    make_tree(source)
    _, archive, _, _ = pack(link, str(source), fmt)
    want = picture(source)
    with tarfile.open(fileobj=io.BytesIO(through(UNPACKERS[fmt], archive)), errors="surrogateescape",
                      encoding="utf-8") as tar:
        members = {os.fsencode(m.name): m for m in tar}
        assert set(members) == set(want)
        for name, m in members.items():
            kind, mode, what, ns = want[name]
            assert (m.uid, m.gid, m.uname, m.gname) == (0, 0, "", "")
            assert abs(m.mtime - ns / 1e9) < 1e-3
            assert m.isdir() == (kind == stat.S_IFDIR) and m.isfile() == (kind == stat.S_IFREG)
            if m.issym():
                assert os.fsencode(m.linkname) == what
            else:
                assert m.mode == mode
            if m.isfile():
                assert hashlib.sha256(tar.extractfile(m).read()).hexdigest() == what


@pytest.mark.parametrize("kind", ["gnu", "pax", "ustar", "v7"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_what_gnu_tar_packs_is_read(link, area, source, kind, fmt):
    make_tree(source)
    if kind in ("ustar", "v7"):  # which have no room for the long ones, or for times outside of theirs
        shutil.rmtree(os.fsencode(source) + b"/" + b"p" * 200)
        for folder, folders, files in os.walk(os.fsencode(source), topdown=False):
            for path in (os.path.join(folder, name) for name in folders + files):
                if len(os.path.basename(path)) > 90:
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
                else:
                    os.utime(path, (5, 5), follow_symlinks=False)
    archive = through(f"tar -C {source} --format={kind} -cf - . | {PACKERS[fmt]}", b"")
    entries, done = unpack(link, str(area.target), archive)
    assert refused(entries) == [] and done.get("ERRNO", 0) == 0
    whole = kind == "pax"
    assert area.tree(times=whole) == picture(source, times=whole)


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_python_packs_is_read(link, area, kind):
    def add(tar):
        for name in ("a/b/c", "a/" + "l" * 80, "ü"):
            m = tarfile.TarInfo(name)
            m.size, m.mode, m.mtime = 5, 0o640, 12345
            tar.addfile(m, io.BytesIO(b"hello"))
        m = tarfile.TarInfo("a/link")
        m.type, m.linkname = tarfile.SYMTYPE, "b/c"
        tar.addfile(m)
    entries, done = unpack(link, str(area.target), t.by_tarfile(add, kind))
    assert refused(entries) == [] and done["ENTRIES"] == 4
    assert (area.target / "a/link").read_text() == "hello"
    st = (area.target / "ü").stat()
    assert (stat.S_IMODE(st.st_mode), st.st_mtime) == (0o640, 12345)


def test_twenty_thousand_files_in_little_memory(shared, area, source):
    rng = random.Random(3)
    for i in range(200):
        folder = source / f"pkg{i % 20}/sub{i}"
        folder.mkdir(parents=True)
        for j in range(100):
            (folder / f"file{j}.js").write_bytes(rng.randbytes(rng.randrange(40)) * 40)
    chown_all(source)
    link = Link(shared)  # now: the making takes longer than a link lives without a beat
    with Peak(link) as peak:
        _, archive, left_out, done = pack(link, str(source), "tar.gz", 300)
    assert left_out == [] and done["ENTRIES"] == 20220 and peak.bytes < 16 << 20
    with Peak(link) as peak:
        entries, done = unpack(link, str(area.target), archive, "tar.gz", 300)
    link.close()
    assert entries == [] and done["ENTRIES"] == 20220 and peak.bytes < 32 << 20
    assert area.tree() == picture(source)


class Peak:
    """What the process of a built-in has held in memory at the most, as its supervisor tells."""

    def __init__(self, link):
        self.link, self.bytes = link, 0

    def __enter__(self):
        self.before = set(self.link.results)
        return self

    def __exit__(self, *_):
        self.bytes = max(r.exit["PEAK_BYTES"] for j, r in self.link.results.items() if j not in self.before and r.exit)


# ---- pack ----

def test_pack_leaves_out_what_is_no_file_and_says_so(link, source):
    (source / "file").write_text("x")
    os.mkfifo(source / "fifo")
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(source / "socket"))
    os.mknod(source / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (source / "locked").write_text("x")
    (source / "cellar").mkdir(mode=0o700)
    (source / "cellar/x").write_text("x")
    chown_all(source)
    os.chown(source / "locked", 0, 0)
    os.chmod(source / "locked", 0o600)
    os.chown(source / "cellar", 0, 0)
    _, archive, entries, done = pack(link, str(source))
    s.close()
    assert tarfile.open(fileobj=io.BytesIO(archive)).getnames() == ["file"]
    assert sorted(refused(entries)) == [
        (b"cellar", errno.EACCES, ""), (b"device", errno.EINVAL, "a device"), (b"fifo", errno.EINVAL, "a FIFO"),
        (b"locked", errno.EACCES, ""), (b"socket", errno.EINVAL, "a socket")]
    assert (done["ENTRIES"], done["REFUSED"]) == (1, 5)


def test_pack_stores_hard_links_whole_and_symlinks_as_such(link, source):
    (source / "a").write_text("same")
    os.link(source / "a", source / "b")
    (source / "dir").mkdir()
    os.symlink("/etc", source / "out")
    os.symlink("dir", source / "in")
    chown_all(source)
    _, archive, entries, _ = pack(link, str(source))
    assert entries == []
    tar = tarfile.open(fileobj=io.BytesIO(archive))
    assert sorted((m.name, m.type) for m in tar) == [("a", b"0"), ("b", b"0"), ("dir", b"5"), ("in", b"2"), ("out", b"2")]
    assert tar.extractfile("a").read() == tar.extractfile("b").read() == b"same"


@pytest.mark.parametrize("path, sys", [("gone", errno.ENOENT), ("fifo", errno.EINVAL), ("x/y", errno.ENOTDIR), ("locked", errno.EACCES),
                                       ("cellar", errno.EACCES)])
def test_pack_of_what_cannot_be_packed_is_one_entry(link, source, path, sys):
    os.mkfifo(source / "fifo")
    (source / "x").write_text("")
    (source / "locked").write_text("x")
    (source / "cellar").mkdir()
    chown_all(source)
    os.chmod(source / "locked", 0)
    os.chmod(source / "cellar", 0)
    r = link.run(builtin="pack", argv=[path, "tar"], cwd=str(source), flags=JOB_SPLIT)
    (entry,), done, rest = records(r.stdout)
    assert entry["ERRNO"] == sys and entry["PATH"] == path.encode() and not done and not rest and not r.stderr


@pytest.mark.parametrize("name", ["pack", "unpack"])
def test_a_format_that_is_none_is_said(link, area, name):
    r = link.run(builtin=name, argv=[str(area.target), "zip"], flags=JOB_SPLIT)
    entries, done, _ = records(r.stdout)
    assert (entries[0] if name == "pack" else done)["ERRNO"] == errno.EINVAL


def test_pack_of_a_single_file(link, source):
    (source / "file.txt").write_text("hello")
    os.symlink("file.txt", source / "link")
    chown_all(source)
    for name in ("file.txt", "link"):
        entry, archive, _, done = pack(link, str(source / name))
        tar = tarfile.open(fileobj=io.BytesIO(archive))
        assert tar.getnames() == [name] and tar.extractfile(name).read() == b"hello"
        assert entry["TYPE"] == "file" and done["ENTRIES"] == 1


def test_pack_of_an_empty_folder_is_an_archive(link, area, source):
    chown_all(source)
    _, archive, _, done = pack(link, str(source))
    assert archive == bytes(1024) and done.get("ENTRIES", 0) == 0
    assert unpack(link, str(area.target), archive)[1].get("ERRNO", 0) == 0


@pytest.mark.parametrize("then", [1 << 20, 8 << 20])
def test_a_file_that_shrinks_or_grows_while_it_is_packed_keeps_its_size(link, source, then):
    """The agent waits for its reader in the midst of the file; then that becomes another."""
    content = random.randbytes(4 << 20)
    (source / "file").write_bytes(content)
    chown_all(source)
    link.auto_credit = False
    job = link.start(builtin="pack", argv=[str(source), "tar"], flags=JOB_SPLIT)
    while len(link.results[job].stdout) < JOB_WINDOW:
        link.recv()
    os.truncate(source / "file", then)
    link.auto_credit = True
    link.send("WINDOW", 0, 0, field("BYTES", JOB_WINDOW))
    link.send("WINDOW", STDOUT, job, field("BYTES", JOB_WINDOW))
    r = link.finish(job)
    link.send("FORGET", job=job)
    _, archive = split(r.stdout)
    entries, done, _ = records(r.stderr)
    data = tarfile.open(fileobj=io.BytesIO(archive)).extractfile("file").read()
    assert data == content[:then].ljust(4 << 20, b"\0")
    assert [(e["PATH"], e["ERRNO"]) for e in entries] == ([(b"file", errno.ESTALE)] if then < 4 << 20 else [])


def test_half_a_gigabyte_goes_in_little_memory(link, area, source):
    with open(source / "zeros", "wb") as f:
        f.truncate(500 << 20)
    chown_all(source)
    with Peak(link) as peak:
        _, archive, _, done = pack(link, str(source), "tar.zst", 300)
    assert done["BYTES"] == 500 << 20 and peak.bytes < 16 << 20
    with Peak(link) as peak:
        entries, done = unpack(link, str(area.target), archive, "", 300)
    assert entries == [] and done["BYTES"] == 500 << 20 and peak.bytes < 32 << 20
    assert os.stat(area.target / "zeros").st_size == 500 << 20


# ---- unpack: what is refused for itself ----

HOSTILE = {
    "absolute": (t.file(b"/tmp/x"), errno.EINVAL, "absolute"),
    "absolute twice": (t.file(b"//tmp/x"), errno.EINVAL, "absolute"),
    "dot dot": (t.file(b"../outside/x"), errno.EINVAL, '".."'),
    "dot dot within": (t.file(b"a/../../outside/x"), errno.EINVAL, '".."'),
    "dot dot at the end": (t.folder(b"a/.."), errno.EINVAL, '".."'),
    "dot dot by pax": (t.long(b"../outside/x") + t.file(b"innocent"), errno.EINVAL, '".."'),
    "dot dot by GNU's long name": (t.header(b"@", b"L", 13, magic=b"ustar  \0") + t.padded(b"../outside/x\0") +
                                   t.file(b"innocent", magic=b"ustar  \0"), errno.EINVAL, '".."'),
    "no name": (t.file(b""), errno.EINVAL, "empty"),
    "a file named as the folder": (t.file(b"."), errno.EISDIR, "the folder's"),
    "a hard link": (t.hardlink(b"x", b"good"), errno.EINVAL, "hard link"),
    "a hard link outside": (t.hardlink(b"x", b"../secret"), errno.EINVAL, "hard link"),
    "a hard link with data": (t.pax(comment="") + t.hardlink(b"x", b"../secret", b"data" * 1000), errno.EINVAL, "hard link"),
    "a hard link by pax": (t.pax(linkpath="/etc/passwd") + t.hardlink(b"x", b"y"), errno.EINVAL, "hard link"),
    "a character device": (t.header(b"x", b"3"), errno.EINVAL, "device"),
    "a block device": (t.header(b"x", b"4"), errno.EINVAL, "device"),
    "a FIFO": (t.header(b"x", b"6"), errno.EINVAL, "FIFO"),
    "a link to an absolute path": (t.symlink(b"x", b"/etc/passwd"), errno.EINVAL, "absolute"),
    "a link out": (t.symlink(b"x", b"../secret"), errno.EINVAL, "leaves"),
    "a deep link out": (t.symlink(b"a/b/x", b"../../../secret"), errno.EINVAL, "leaves"),
    "a link that hides its way up": (t.symlink(b"x", b"a/b/../../../secret"), errno.EINVAL, "goes up behind"),
    "a link to nothing": (t.symlink(b"x", b""), errno.EINVAL, "nothing"),
    "a long target": (t.long(b"x", b"y/" * 2100) + t.symlink(b"x", b"y"), errno.ENAMETOOLONG, "target"),
    "a long component": (t.long(b"y" * 256) + t.file(b"x"), errno.ENAMETOOLONG, "too long"),
    "a long name": (t.long(b"y/" * 2100 + b"z") + t.file(b"x"), errno.ENAMETOOLONG, "too long"),
    "ten thousand deep": (t.long(b"d/" * 10000 + b"z") + t.file(b"x"), errno.ENAMETOOLONG, "too long"),
    "a broken pax header": (t.header(b"p", b"x", 20) + t.padded(b"99 path=../x\nxxxxxxx") + t.file(b"x"), errno.EBADMSG, "pax"),
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_hostile_is_refused_and_the_rest_written(link, area, what, fmt):
    bad, sys, why = HOSTILE[what]
    archive = through(PACKERS[fmt], t.archive(t.file(b"good", b"1"), bad, t.file(b"after", b"2")))
    entries, done = unpack(link, str(area.target), archive, fmt)
    assert len(entries) == 1 and entries[0]["ERRNO"] == sys and why in entries[0]["DETAIL"].decode(), refused(entries)
    assert (done["ENTRIES"], done["REFUSED"], done.get("ERRNO", 0)) == (2, 1, 0)
    assert [n for n in area.names() if n not in (b"a", b"a/b")] == [b"after", b"good"]
    assert (area.target / "good").read_text() == "1" and (area.target / "after").read_text() == "2"


THROUGH = {
    "a link, then a file through it": ([t.symlink(b"l", b"d"), t.file(b"l/x")], errno.ELOOP, [b"l"]),
    "a link, then a folder of its name": ([t.symlink(b"l", b"d"), t.folder(b"l"), t.file(b"l/x")], errno.ELOOP, [b"l"]),
    "a link below a link": ([t.symlink(b"l", b"d"), t.symlink(b"l/m", b"x")], errno.ELOOP, [b"l"]),
    "links through links": ([t.folder(b"a"), t.folder(b"a/b"), t.symlink(b"a/b/up", b"../.."), t.symlink(b"s", b"a/b/up/../../outside"),
                             t.file(b"s/x")], None, [b"a", b"a/b", b"a/b/up", b"s", b"s/x"]),
    "a file below a file": ([t.file(b"f"), t.file(b"f/x")], errno.ENOTDIR, [b"f"]),
    "a file in a folder's place": ([t.folder(b"d"), t.file(b"d")], errno.EISDIR, [b"d"]),
    "a link in a folder's place": ([t.folder(b"d"), t.symlink(b"d", b"x")], errno.EISDIR, [b"d"]),
    "a folder in a file's place": ([t.file(b"f"), t.folder(b"f")], errno.ENOTDIR, [b"f"]),
}


@pytest.mark.parametrize("what", THROUGH)
def test_nothing_is_written_through_what_stands_in_the_way(link, area, what):
    parts, sys, names = THROUGH[what]
    entries, done = unpack(link, str(area.target), t.archive(*parts))
    assert area.names() == names
    assert all(e["ERRNO"] == sys for e in entries) if sys else refused(entries)[0][1] == errno.EINVAL
    assert done["REFUSED"] == len(entries) > 0


@pytest.mark.parametrize("target", ["/var/tmp", "../outside", "deep"])
def test_nothing_is_written_through_a_link_that_was_there(link, area, target):
    (area.target / "deep").mkdir()
    os.symlink(target, area.target / "l")
    chown_all(area.target)
    entries, done = unpack(link, str(area.target), t.archive(t.file(b"l/berth-x"), t.folder(b"l"), t.file(b"l/y/z")))
    assert [e["ERRNO"] for e in entries] == [errno.ELOOP] * 3 and done.get("ENTRIES", 0) == 0
    assert area.names() == [b"deep", b"l"] and not os.path.exists("/var/tmp/berth-x")


def test_a_link_that_was_there_is_replaced_not_followed(link, area):
    os.symlink("../outside/file", area.target / "f")
    os.symlink("../outside/file", area.target / "l")
    chown_all(area.target)
    entries, _ = unpack(link, str(area.target), t.archive(t.file(b"f", b"new"), t.symlink(b"l", b"f")))
    assert entries == [] and not (area.target / "f").is_symlink() and os.readlink(area.target / "l") == "f"


def test_a_file_that_comes_twice_is_the_later_one(link, area):
    entries, done = unpack(link, str(area.target), t.archive(
        t.file(b"x", b"one", mode=0o600), t.symlink(b"l", b"x"), t.file(b"x", b"two", mode=0o755), t.file(b"l", b"three")))
    assert entries == [] and done["ENTRIES"] == 4
    assert (area.target / "x").read_text() == "two" and (area.target / "l").read_text() == "three"
    assert stat.S_IMODE((area.target / "x").stat().st_mode) == 0o755


@pytest.mark.parametrize("given, kept", [(0o7777, 0o755), (0o4755, 0o755), (0o666, 0o644), (0o400, 0o400), (0, 0), (0o111, 0o111)])
def test_modes_are_the_bits_under_the_umask(link, area, given, kept):
    unpack(link, str(area.target), t.archive(t.folder(b"d", given), t.file(b"d/x"), t.file(b"f", mode=given),
                                             t.header(b"e/f/g", mode=given)))
    for name in ("d", "f", "e/f/g"):
        assert stat.S_IMODE((area.target / name).stat().st_mode) == kept, name
    assert stat.S_IMODE((area.target / "e").stat().st_mode) == 0o755
    assert (area.target / "d/x").exists() and (area.target / "f").stat().st_uid == UID


def test_folders_get_their_modes_and_times_last_also_when_they_come_last(link, area):
    unpack(link, str(area.target), t.archive(t.file(b"a/b/c"), t.folder(b"a/b", 0o555, mtime=5), t.folder(b"a", 0o111, mtime=7),
                                             t.file(b"a/d"), t.folder(b"a", 0o500, mtime=9)))
    st = (area.target / "a").stat()
    assert (stat.S_IMODE(st.st_mode), st.st_mtime) == (0o500, 9)
    st = (area.target / "a/b").stat()
    assert (stat.S_IMODE(st.st_mode), st.st_mtime) == (0o555, 5)


def test_the_folder_itself_stays_as_it_is(link, area):
    before = area.target.stat()
    entries, done = unpack(link, str(area.target), t.archive(t.folder(b"./", 0o500, mtime=3), t.folder(b".", 0o500), t.file(b"./x")))
    assert entries == [] and done["ENTRIES"] == 3 and area.target.stat().st_mode == before.st_mode


def test_the_folder_and_its_parents_are_made(link, area):
    entries, done = unpack(link, str(area.target / "new/er"), t.archive(t.file(b"x")))
    assert entries == [] and area.names() == [b"new", b"new/er", b"new/er/x"]


@pytest.mark.parametrize("path, sys", [("file", errno.ENOTDIR), ("file/x", errno.ENOTDIR), ("/proc/x", errno.ENOENT)])
def test_a_folder_that_is_none_is_said_and_the_sender_does_not_hang(link, area, path, sys):
    (area.target / "file").write_text("")
    _, done = unpack(link, os.path.join(area.target, path), t.archive(t.file(b"x", bytes(3_000_000))))
    assert done["ERRNO"] == sys and done.get("ENTRIES", 0) == 0


@pytest.mark.parametrize("name", NAMES)
def test_names_are_bytes(link, area, name):
    for parts in ([t.file(name[:100])], [t.long(name) + t.file(b"x")], [t.long(b"d/" + name) + t.folder(b"x")],
                  [t.long(b"l" + name[1:], name) + t.symlink(b"x", b"y")]):
        entries, done = unpack(link, str(area.target), t.archive(*parts))
        assert entries == [] and done["ENTRIES"] == 1
    tree = area.tree()
    assert name in tree and b"d/" + name in tree and tree[b"l" + name[1:]][2] == name


def test_at_most_a_thousand_are_reported_and_all_are_counted(link, area):
    archive = t.archive(*[t.hardlink(b"x%d" % i, b"y") for i in range(1500)], t.file(b"z"))
    entries, done = unpack(link, str(area.target), archive)
    assert len(entries) == 1000 and done["REFUSED"] == 1500 and done["TRUNCATED"] == 1 and done["ENTRIES"] == 1


def test_a_report_longer_than_any_pipe_makes_nobody_wait(link, area):
    archive = t.archive(*[t.long(b"y" * 3000 + b"%d" % i) + t.file(b"x", bytes(5000)) for i in range(1000)])
    entries, done = unpack(link, str(area.target), archive)
    assert len(entries) == 1000 and done["REFUSED"] == 1000


# ---- unpack: sparse files and lies about sizes ----

def test_sparse_files_have_their_holes(link, area, source):
    with open(source / "sparse", "wb") as f:
        for at in (0, 5 << 20, 20 << 20):
            f.seek(at)
            f.write(b"data" * 1000)
        f.truncate(40 << 20)
    chown_all(source)
    for kind in ("gnu", "pax --sparse-version=0.0", "pax --sparse-version=0.1", "pax --sparse-version=1.0"):
        archive = through(f"tar -C {source} --format={kind} -S -cf - sparse", b"")
        assert len(archive) < 1 << 20
        entries, done = unpack(link, str(area.target), archive)
        assert entries == [] and done["BYTES"] == 40 << 20
        st = (area.target / "sparse").stat()
        assert st.st_blocks * 512 < 1 << 20
        assert (area.target / "sparse").read_bytes() == (source / "sparse").read_bytes()


@pytest.mark.parametrize("what, archive, sys", [pytest.param(*row, id=row[0]) for row in (
    ("negative", t.header(b"x", size=-5) + b"data", errno.EBADMSG),
    ("negative by pax", t.pax(size=-5) + t.file(b"x", b"data"), errno.EBADMSG),
    ("more than there is", t.header(b"x", size=1 << 40) + b"d" * 512, errno.EBADMSG),
    ("more than there is, by pax", t.pax(size=1 << 62) + t.file(b"x", b"data"), errno.EBADMSG),
    ("beyond 64 bits", t.pax(size="9" * 30) + t.file(b"x", b"data"), errno.EBADMSG),
    ("an eighth of a zettabyte in holes", t.pax(**{"GNU.sparse.map": f"0,4,{1 << 61},0",
                                                   "GNU.sparse.size": 1 << 61}) + t.file(b"x", b"data") + t.END, errno.E2BIG),
    ("blocks behind the end", t.pax(**{"GNU.sparse.map": f"{1 << 61},4", "GNU.sparse.size": 4}) + t.file(b"x", b"data") + t.END,
     errno.E2BIG),
    ("a special header of gigabytes", t.header(b"x", b"x", 5 << 30), errno.EBADMSG),
    ("a long name of gigabytes", t.header(b"x", b"L", 5 << 30, magic=b"ustar  \0"), errno.EBADMSG),
)])
def test_sizes_are_not_believed(link, area, what, archive, sys):
    entries, done = unpack(link, str(area.target), t.file(b"good") + archive)
    assert done["ERRNO"] == sys and done["DETAIL"] and done["ENTRIES"] == 1
    assert area.names() == [b"good"]


# ---- unpack: what is no archive, or not whole ----

WHOLE = t.archive(t.folder(b"d"), t.file(b"d/a", b"a" * 700), t.long("ü/" + "l" * 200) + t.file(b"x", b"b" * 1024), t.file(b"last", b"z"))


@pytest.mark.parametrize("fmt", FORMATS)
def test_cut_anywhere_it_is_said(link, area, fmt):
    """At each block and around it; of compressed ones at each byte of the ends and some between."""
    whole = through(PACKERS[fmt], WHOLE)
    if fmt == "tar":
        cuts = sorted({c + d for c in range(0, len(WHOLE) - 1024 + 1, 512) for d in (-1, 0, 1)} & set(range(len(WHOLE) - 1024 + 1)))
    else:
        cuts = sorted(set(range(0, 24)) | set(range(24, len(whole), 37)) | set(range(len(whole) - 24, len(whole))))
    for cut in cuts:
        _, done = unpack(link, str(area.target), whole[:cut], fmt)
        assert done["ERRNO"] == errno.EBADMSG and done["DETAIL"], cut
    assert unpack(link, str(area.target), whole, fmt)[1].get("ERRNO", 0) == 0


def test_what_was_whole_before_the_cut_stays_and_is_counted(link, area):
    cut = t.file(b"one", b"1" * 600) + t.file(b"two", b"2" * 600)[:-700]
    _, done = unpack(link, str(area.target), cut)
    assert (done["ENTRIES"], done["BYTES"], done["ERRNO"]) == (1, 600, errno.EBADMSG) and b"cut off" in done["DETAIL"]
    assert area.names() == [b"one"]


@pytest.mark.parametrize("fmt", ["tar.gz", "tar.zst"])
def test_a_flipped_bit_is_found(link, area, fmt):
    rng = random.Random(5)
    whole = bytearray(through(PACKERS[fmt], t.archive(t.file(b"x", rng.randbytes(20000)))))
    for _ in range(20):
        at, bit = rng.randrange(12, len(whole)), 1 << rng.randrange(8)
        whole[at] ^= bit
        _, done = unpack(link, str(area.target), bytes(whole), fmt)
        assert done["ERRNO"] == errno.EBADMSG, at
        whole[at] ^= bit


@pytest.mark.parametrize("data", [b"", b"hello", b"\0" * 100, random.Random(1).randbytes(5000), b"PK\3\4" + bytes(2000), b"\x1f\x8b",
                                  b"\x1f\x8b\x08\0garbage" * 100, b"\x28\xb5\x2f\xfdgarbage" * 100, t.gzipped(b""), t.gzipped(b"text"),
                                  t.header(b"x", checksum=5) + t.END])
@pytest.mark.parametrize("fmt", ["", *FORMATS])
def test_what_is_no_archive_is_said(link, area, data, fmt):
    entries, done = unpack(link, str(area.target), data, fmt)
    assert done["ERRNO"] == errno.EBADMSG and done["DETAIL"] and entries == [] and area.names() == []


def test_a_damaged_header_ends_it(link, area):
    entries, done = unpack(link, str(area.target), t.archive(t.file(b"a"), t.header(b"b", checksum=1), t.file(b"c")))
    assert done["ERRNO"] == errno.EBADMSG and b"damaged" in done["DETAIL"] and area.names() == [b"a"]


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_stands_behind_the_end_is_read_and_left(link, area, fmt):
    archive = through(PACKERS[fmt], WHOLE + bytes(20 * 512)) + (b"garbage" * 100_000)
    entries, done = unpack(link, str(area.target), archive, fmt)
    assert entries == [] and done.get("ERRNO", 0) == 0 and done["ENTRIES"] == 4


@pytest.mark.parametrize("fmt", ["tar.gz", "tar.zst"])
def test_several_compressed_streams_are_one_archive(link, area, fmt):
    pieces = [through(PACKERS[fmt], WHOLE[i:i + 333]) for i in range(0, len(WHOLE), 333)]
    entries, done = unpack(link, str(area.target), b"".join(pieces), "")
    assert entries == [] and done.get("ERRNO", 0) == 0 and done["ENTRIES"] == 4


# ---- unpack: bombs, full disks, races ----

def small_place(sandbox, options):
    """A small tmpfs in the sandbox alone; its path."""
    path = f"/tmp/small{random.getrandbits(40):x}"
    subprocess.run(["nsenter", "-t", str(sandbox.pid), "-m", "sh", "-ec", f"mkdir {path}; mount -t tmpfs -o mode=1777,{options} tmpfs {path}"],
                   check=True)
    return path


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_bomb_of_bytes_ends_with_the_disk(sandbox, fmt):
    link = Link(sandbox)
    place = small_place(sandbox, "size=2m")
    bomb = through(PACKERS[fmt], t.archive(t.file(b"good", b"g" * 1000), t.file(b"bomb", bytes(64 << 20)), t.file(b"after")))
    entries, done = unpack(link, place, bomb, fmt)
    assert done["ERRNO"] == errno.ENOSPC and b"bomb" in done["DETAIL"] and (done["ENTRIES"], done["BYTES"]) == (1, 1000)
    assert link.sh(f"ls -A {place}").stdout == b"good\n"
    link.close()


def test_a_bomb_of_entries_ends_with_the_disk(sandbox):
    link = Link(sandbox)
    place = small_place(sandbox, "nr_inodes=100")
    bomb = t.gzipped(t.archive(*[t.file(b"f%d" % i) for i in range(1000)]))
    _, done = unpack(link, place, bomb)
    assert done["ERRNO"] == errno.ENOSPC and 90 <= done["ENTRIES"] < 100
    link.close()


def test_a_bomb_of_names_ends_at_a_million(link, area):
    def pieces():
        block = t.hardlink(b"x", b"y") * 1000
        for _ in range(1001):
            yield block
    bomb = gzip.compress(b"".join(pieces()), 1)
    entries, done = unpack(link, str(area.target), bomb, "tar.gz", 300)
    assert done["ERRNO"] == errno.E2BIG and done["REFUSED"] == 1_000_000 and len(entries) == 1000


def test_a_bomb_of_headers_is_bounded(link, area):
    """A map of holes and a heap of headers before a file that never comes."""
    chain = t.pax(comment="x" * 500_000) * 200 + t.file(b"x") + t.END
    holes = t.pax(**{"GNU.sparse.major": 1, "GNU.sparse.minor": 0, "GNU.sparse.realsize": 1}) + \
        t.file(b"x", b"20000000\n" + b"1\n0\n" * 20_000_000)
    for bomb in (chain, holes):
        with Peak(link) as peak:
            entries, done = unpack(link, str(area.target), t.gzipped(bomb))
        assert done["ERRNO"] == errno.E2BIG and b"header" in done["DETAIL"] and peak.bytes < 128 << 20


def test_a_job_that_swaps_folders_for_links_meanwhile_leads_nothing_out(link, area):
    """As fast as it can, while 3000 files are written into the folder."""
    swapper = link.start(script=f"""
        cd {area.target} && mkdir -p d other && ln -s ../outside link
        while :; do mv -T d spare && mv -T link d; mv -T d link && mv -T spare d; done 2>/dev/null""", shell="bash")
    wait_for(lambda: (area.target / "link").is_symlink() or (area.target / "d").is_symlink())
    archive = t.archive(*[t.file(b"d/%d/f" % i, b"x" * 100) for i in range(3000)])
    entries, done = unpack(link, str(area.target), archive)
    link.send("CANCEL", job=swapper, payload=field("GRACE_MS", 0))
    link.finish(swapper)
    assert done["ENTRIES"] + done.get("REFUSED", 0) == 3000
    assert {e["ERRNO"] for e in entries} <= {errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EEXIST}
    assert sorted(os.listdir(area.outside)) == ["file"]


def test_an_unpack_that_is_killed_leaves_no_half_a_file(link, area):
    job = link.start(builtin="unpack", argv=[str(area.target), "tar"], flags=JOB_STDIN)
    link.send("DATA", STDIN, job, t.file(b"one", b"1") + t.header(b"two", size=1 << 20) + bytes(20000))
    wait_for(lambda: (area.target / "one").exists())
    link.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
    link.finish(job)
    assert area.names() == [b"one"]
