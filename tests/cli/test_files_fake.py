"""Copies, and what else moves bytes, against a server that answers as badly as a test wants."""

import io
import os
import tarfile

import pytest
from fake import SESSION, error

FILES = f"/v1/sessions/{SESSION}/files"


@pytest.fixture
def remote(fake):
    """Nothing is there, and everything is taken."""
    fake.types = {}
    fake.on("POST", f"{FILES}/stat", lambda h: h.reply(200, [
        {"path": p, "type": fake.types.get(p), "error": None} for p in h.json["paths"]]))
    fake.on("POST", f"{FILES}/mkdir", lambda h: h.reply(200, {"ok": True}))
    fake.on("PUT", f"{FILES}/content", lambda h: h.reply(201, {"size": 1}))
    fake.on("PUT", f"{FILES}/archive", lambda h: h.reply(200, {"entries": 1, "bytes": 1, "refused": 0, "errors": []}))
    return fake


def put(fake, what):
    """The query and the body of the one PUT."""
    path, body = [(p, b) for m, p, b in fake.requests if m == "PUT" and f"/files/{what}" in p][-1]
    return path.partition("?")[2], body


def tar_of(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def entry(name, data=b"", **other):
    info = tarfile.TarInfo(name)
    for key, value in other.items():
        setattr(info, key, value)
    return info, data


def test_a_file_goes_in_whole_with_its_mode(berth, remote, home):
    data = os.urandom(300_000)
    (home / "tool").write_bytes(data)
    (home / "tool").chmod(0o750)
    done = berth("cp", str(home / "tool"), f"{SESSION}:bin/tool")
    assert done.returncode == 0, done.err
    query, body = put(remote, "content")
    assert query == "path=bin%2Ftool&mode=0750" and body == data


def test_into_a_folder_it_keeps_its_name(berth, remote, home):
    (home / "a b").write_text("x")
    remote.types["/workspace"] = "dir"
    assert berth("cp", str(home / "a b"), f"{SESSION}:/workspace").returncode == 0
    assert put(remote, "content")[0].startswith("path=%2Fworkspace%2Fa%20b&")
    assert berth("cp", str(home / "a b"), f"{SESSION}:new/").returncode == 0
    assert put(remote, "content")[0].startswith("path=new%2Fa%20b&")


def test_stdin_goes_in_with_any_length(berth, remote):
    data = os.urandom(500_000)
    assert berth("cp", "-", f"{SESSION}:x", input=data).returncode == 0
    assert put(remote, "content")[1] == data
    remote.types["."] = "dir"
    done = berth("cp", "-", f"{SESSION}:", input=b"x")
    assert done.returncode == 2 and "stdin" in done.err


def test_a_name_that_is_no_text_goes_as_base64(berth, remote, home):
    name = os.fsencode(home) + b"/\xff\xfe"
    open(name, "wb").close()
    remote.types["."] = "dir"
    assert berth("cp", name, f"{SESSION}:").returncode == 0
    assert put(remote, "content")[0].startswith("path_b64=Li%2F%2F%2Fg%3D%3D&")


def test_a_folder_goes_in_as_what_is_in_it(berth, remote, home):
    top = home / "src"
    (top / "sub" / "empty").mkdir(parents=True)
    (top / "sub" / "ä\n.c").write_text("int x;")
    (top / "run.sh").write_text("#!/bin/sh")
    (top / "run.sh").chmod(0o755)
    (top / "sub" / "up").symlink_to("../run.sh")
    (top / "out").symlink_to("/etc/passwd")
    os.mkfifo(top / "fifo")
    done = berth("cp", str(top), f"{SESSION}:dst")
    assert done.returncode == 6 and "2 entries" in done.err and "fifo" in done.err and "out:" in done.err
    query, body = put(remote, "archive")
    assert query == "path=dst&format=tar"
    tar = tarfile.open(fileobj=io.BytesIO(body))
    members = {m.name: m for m in tar.getmembers()}
    assert set(members) == {"sub", "sub/empty", "sub/ä\n.c", "run.sh", "sub/up"}
    assert members["run.sh"].mode == 0o755 and members["sub/up"].linkname == "../run.sh"
    assert {(m.uid, m.gid, m.uname) for m in members.values()} == {(0, 0, "")}
    assert tar.extractfile("sub/ä\n.c").read() == b"int x;"


def test_what_the_sandbox_refuses_fails_the_copy(berth, remote, home):
    (home / "d").mkdir()
    remote.on("PUT", f"{FILES}/archive", lambda h: h.reply(200, {
        "entries": 0, "bytes": 0, "refused": 1, "errors": [{"path": "x", "error": "no_space: disk full"}]}))
    done = berth("cp", str(home / "d"), f"{SESSION}:dst")
    assert done.returncode == 6 and "disk full" in done.err


def test_a_file_comes_out_whole_or_not_at_all(berth, remote, home):
    remote.types["x"] = "file"
    remote.on("GET", f"{FILES}/content", lambda h: h.raw(200, b"new", "application/octet-stream"))
    (home / "x").write_text("old")
    assert berth("cp", f"{SESSION}:x", str(home)).returncode == 0
    assert (home / "x").read_text() == "new"

    def cut(h):
        h.send_response(200)
        h.send_header("Content-Length", "1000")
        h.end_headers()
        h.wfile.write(b"part")
        h.close_connection = True

    remote.on("GET", f"{FILES}/content", cut)
    assert berth("cp", f"{SESSION}:x", str(home)).returncode == 8
    assert (home / "x").read_text() == "new" and os.listdir(home).count("x") == 1 and len(os.listdir(home)) == 1


def test_out_to_stdout(berth, remote):
    data = os.urandom(100_000)
    remote.types["x"] = "file"
    remote.on("GET", f"{FILES}/content", lambda h: h.raw(200, data, "application/octet-stream"))
    assert berth("cp", f"{SESSION}:x", "-").stdout == data
    assert berth("cat", SESSION, "x", "y").stdout == data + data


def test_a_file_that_is_not_there(berth, remote, home):
    done = berth("cp", f"{SESSION}:x", str(home))
    assert done.returncode == 4 and done.err.count("\n") == 1
    remote.on("GET", f"{FILES}/content", lambda h: h.reply(404, error("not_found", "no such file")))
    assert berth("cat", SESSION, "x").returncode == 4


HOSTILE = {
    "absolute": [entry("/tmp/berth-cli-escape", b"x")],
    "up": [entry("../escape", b"x")],
    "up in the middle": [entry("a/../../escape", b"x")],
    "a link out, then through it": [entry("l", type=tarfile.SYMTYPE, linkname=".."), entry("l/escape", b"x")],
    "an absolute link": [entry("l", type=tarfile.SYMTYPE, linkname="/etc")],
    "a hard link": [entry("h", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
    "a device": [entry("d", type=tarfile.CHRTYPE)],
    "a FIFO": [entry("f", type=tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_writes_nothing_outside(berth, remote, home, entries):
    remote.types["d"] = "dir"
    remote.on("GET", f"{FILES}/archive", lambda h: h.raw(200, tar_of([*entries, entry("good", b"1", mode=0o6755)])))
    target = home / "in" / "d"
    target.parent.mkdir()
    done = berth("cp", f"{SESSION}:d", str(target.parent))
    assert done.returncode == 6 and "left out" in done.err
    assert not (target / "l").is_symlink() and set(os.listdir(target)) <= {"good", "l"}
    assert (target / "good").stat().st_mode & 0o7777 == 0o755
    assert os.listdir(home / "in") == ["d"] and os.listdir(home) == ["in"]
    assert not os.path.exists("/tmp/berth-cli-escape")


def test_a_broken_archive_is_told(berth, remote, home):
    remote.types["d"] = "dir"
    remote.on("GET", f"{FILES}/archive", lambda h: h.raw(200, tar_of([entry("good", b"1" * 5000)])[:3000]))
    done = berth("cp", f"{SESSION}:d", str(home))
    assert done.returncode != 0 and done.err


def test_links_and_times_come_out(berth, remote, home):
    remote.types["d"] = "dir"
    remote.on("GET", f"{FILES}/archive", lambda h: h.raw(200, tar_of([
        entry("a", b"1", mtime=1000000000), entry("s/l", type=tarfile.SYMTYPE, linkname="../a")])))
    assert berth("cp", f"{SESSION}:d", str(home / "new")).returncode == 0
    assert os.readlink(home / "new/s/l") == "../a" and os.stat(home / "new/a").st_mtime == 1000000000


WRONG = {
    "both local": ["cp", "a", "b"],
    "both remote": ["cp", "s:a", "t:b"],
    "a colon behind a slash is local": ["cp", "./a:b", "c"],
    "a folder to stdout": ["cp", f"{SESSION}:d", "-"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG.keys())
def test_wrong_words(berth, remote, words):
    remote.types["d"] = "dir"
    done = berth(*words)
    assert done.returncode == 2 and done.err.count("\n") == 1


def test_archive_to_a_file_or_not_at_all(berth, remote, home):
    remote.on("GET", f"{FILES}/archive", lambda h: h.raw(200, b"bytes"))
    assert berth("archive", SESSION, "src", "-o", str(home / "a.tar.gz")).returncode == 0
    assert (home / "a.tar.gz").read_bytes() == b"bytes"
    assert "GET " + f"{FILES}/archive?format=tar.gz&path=src" in remote.seen()
    remote.on("GET", f"{FILES}/archive", lambda h: h.reply(404, error("not_found", "no such folder")))
    assert berth("archive", SESSION, "src", "-o", str(home / "b")).returncode == 4
    assert os.listdir(home) == ["a.tar.gz"]


def test_ls_files(berth, remote):
    files = [{"path": "/workspace/a\x1b[2J", "type": "file", "size": 3, "mode": "0644",
              "mtime": "2026-01-31T12:00:00.000Z"}]
    remote.on("POST", f"{FILES}/list", lambda h: h.reply(200, {"entries": files, "truncated": True}))
    done = berth("ls-files", SESSION, "src", "-r", "--limit", "1")
    assert done.returncode == 0 and "0644" in done.out and "\x1b" not in done.out and "more" in done.err
    assert remote.requests[-1][2] == {"path": "src", "recursive": True, "max": 1}


def test_a_terminal_sees_how_far_a_copy_is(berth, remote, home):
    (home / "big").write_bytes(b"x" * 3_000_000)
    ours, theirs = os.openpty()
    process = berth.start("cp", str(home / "big"), f"{SESSION}:x", stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # its end (EIO)
        os.close(ours)
    assert process.wait(30) == 0
    assert b"x [###" in shown and b"100%" in shown and b"MiB/s" in shown
