"""Files and processes from the command line, on a real Docker and a real Podman."""

import io
import json
import os
import tarfile


def tree(top):
    """{relative name: (kind, content or target, rwx, mtime)} of what is in a folder."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = ("link", os.readlink(path), 0, 0)
            elif os.path.isdir(path):
                found[os.path.relpath(path, top)] = ("dir", None, st.st_mode & 0o755, 0)
            else:
                data = open(path, "rb").read()
                found[os.path.relpath(path, top)] = ("file", data, st.st_mode & 0o755, st.st_mtime_ns)
    return found


def make_tree(top):
    (top / "deep" / "er").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "deep" / "er" / "ä b\n'c\"").write_bytes(os.urandom(300_000))
    (top / "-dash").write_text("x")
    (top / "run").write_text("#!/bin/sh\necho ran\n")
    (top / "run").chmod(0o755)
    (top / "deep" / "link").symlink_to("../run")
    os.utime(top / "run", ns=(10**18 + 123456789, 10**18 + 123456789))
    return tree(top)


def test_a_file_goes_in_and_out(real, box, home):
    data = os.urandom(3 << 20)
    (home / "a b").write_bytes(data)
    assert real("cp", str(home / "a b"), f"{box}:").returncode == 0
    assert real("exec", box, "--", "cat", "a b").stdout == data
    assert real("cat", box, "a b").stdout == data
    assert real("cp", f"{box}:a b", str(home / "back")).returncode == 0
    assert (home / "back").read_bytes() == data


def test_stdin_goes_in_and_stdout_comes_out(real, box):
    data = os.urandom(1 << 20)
    assert real("cp", "-", f"{box}:sub/new/x", input=data).returncode == 0
    assert real("cp", f"{box}:sub/new/x", "-").stdout == data


def test_a_folder_makes_the_round_trip(real, box, home):
    (home / "src").mkdir()
    want = make_tree(home / "src")
    assert real("cp", str(home / "src"), f"{box}:").returncode == 0
    assert real("exec", box, "--", "sh", "src/deep/link").out == "ran\n"
    (home / "out").mkdir()
    assert real("cp", f"{box}:src", str(home / "out")).returncode == 0
    assert tree(home / "out" / "src") == want


def test_ls_files_and_archive(real, box, home):
    (home / "src").mkdir()
    make_tree(home / "src")
    assert real("cp", str(home / "src"), f"{box}:list").returncode == 0
    listed = json.loads(real("ls-files", box, "list", "-r", "--json").stdout)
    assert [e["path"] for e in listed["entries"]] == sorted(
        (f"/workspace/list/{p}" for p in tree(home / "src")), key=str.encode)
    assert real("archive", box, "list", "-o", str(home / "a.tar.gz")).returncode == 0
    assert set(tarfile.open(home / "a.tar.gz").getnames()) == set(tree(home / "src"))
    piped = real("archive", box, "list", "--format", "tar").stdout
    assert set(tarfile.open(fileobj=io.BytesIO(piped)).getnames()) == set(tree(home / "src"))


def test_what_is_not_there_is_told_by_the_exit_status(real, box, home):
    assert real("cat", box, "nothing").returncode == 4
    assert real("cp", f"{box}:nothing", str(home)).returncode == 4
    assert real("ls-files", box, "nothing").returncode == 4
    assert real("logs", box, "nothing").returncode == 4
    assert os.listdir(home) == []


SERVER = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), sys.exit(3)))
print(os.environ["WORD"], flush=True)
while True:
    signal.pause()
"""


def test_a_process_from_start_to_stop(real, box):
    started = real("start", box, "--name", "echo", "-e", "WORD=hello", "--", "python3", "-c", SERVER)
    assert started.returncode == 0, started.err
    id = started.out.strip()
    follower = real.start("logs", "-f", box, "echo")
    assert follower.stdout.readline() == b"hello\n"
    listed = json.loads(real("ps", box, "--json").stdout)
    assert [(p["id"], p["name"], p["running"]) for p in listed] == [(id, "echo", True)]
    assert real("logs", box, "echo").out == "hello\n"
    stopped = real("stop", box, "echo", "--grace", "10")
    assert stopped.returncode == 0 and stopped.out == "hello\nbye\n"
    rest, _ = follower.communicate(timeout=30)
    assert rest == b"bye\n" and follower.returncode == 0
    assert json.loads(real("ps", box, "--json").stdout) == []
