"""Files of a session: each promise of docs/API.md, "Files", from outside, on both engines."""
import base64, http.client, json, os, pathlib, signal, socket, threading, time
import urllib.parse

import pytest

from berthd import TOKEN, wait_for
from crash import bridges, main_pid

MIB = 1 << 20


class Files:
    """The files of one session, through berthd."""

    def __init__(self, berthd, session):
        self.berthd, self.session = berthd, session
        self.root = f"/v1/sessions/{session}/files"

    def post(self, what, **body):
        return self.berthd.call("POST", f"{self.root}/{what}", body)

    def where(self, path):
        if isinstance(path, bytes):
            return "path_b64=" + urllib.parse.quote(base64.b64encode(path).decode(), safe="")
        return "path=" + urllib.parse.quote(path, safe="")

    def put(self, path, data=b"", query="", **headers):
        return self.berthd.call("PUT", f"{self.root}/content?{self.where(path)}{query}", raw=data,
                                headers={k.replace("_", "-"): v for k, v in headers.items()})

    def get(self, path, method="GET", **headers):
        return self.berthd.call(method, f"{self.root}/content?{self.where(path)}", headers={k.replace("_", "-"): v for k, v in headers.items()})

    def stat(self, *paths):
        r = self.post("stat", paths=[{"b64": base64.b64encode(p).decode()} if isinstance(p, bytes) else p for p in paths])
        assert r.status == 200, r
        return r.json

    def list(self, path, **more):
        r = self.post("list", path=path, **more)
        assert r.status == 200, r
        return r.json

    def delete(self, *paths, recursive=False):
        r = self.post("delete", paths=[{"b64": base64.b64encode(p).decode()} if isinstance(p, bytes) else p for p in paths], recursive=recursive)
        assert r.status == 200, r
        return [e["error"] for e in r.json]

    def sh(self, command):
        return self.berthd.sh(self.session, command)

    def open_put(self, path, length):
        """A request whose body does not come yet."""
        c = self.berthd.connect()
        c.putrequest("PUT", f"{self.root}/content?{self.where(path)}")
        c.putheader("Authorization", f"Bearer {TOKEN}")
        c.putheader("Content-Length", str(length))
        c.endheaders()
        return c

    def open_get(self, path):
        c = self.berthd.connect()
        c.request("GET", f"{self.root}/content?{self.where(path)}", headers={"Authorization": f"Bearer {TOKEN}"})
        return c, c.getresponse()


@pytest.fixture(scope="module")
def files(berthd, session):
    return Files(berthd, session)


def code(error):
    return error and error.split(":")[0]


# ---- names ----

NAMES = [b"plain", b"with blanks  and\ttabs", b"new\nline", b"quo\"te's`$(id)", b"-rf", b"--", b"*", b"\xc3\xa4\xe2\x82\xac", b"\xff\xfe no utf8",
         b"x" * 255, b"\x01\x7f", b"back\\slash", b"...", b"#?&=%41", b" "]


@pytest.mark.parametrize("name", NAMES, ids=[repr(n[:12]) for n in NAMES])
def test_any_name_goes_all_the_ways(files, name):
    """written, read, told, listed, moved, uploaded, downloaded, deleted, and what a command sees is the same"""
    folder = b"/workspace/names"
    path, moved = folder + b"/" + name, folder + b"/" + name[:250] + b"~2"
    b64 = base64.b64encode(path).decode()
    assert files.put(path, b"content of " + name).status in (200, 201)
    assert files.get(path).body == b"content of " + name
    told = files.stat(path)[0]
    assert told["error"] is None and told["size"] == len(name) + 11 and told["type"] == "file"
    exact = base64.b64decode(told["path_b64"]) if "path_b64" in told else told["path"].encode()
    assert exact == path
    seen = files.sh("ls -A names | wc -l; printf '%s\\0' names/* names/.[!.]* names/..?* | base64 -w0")
    assert base64.b64encode(b"names/" + name) in seen.encode() or (b"names/" + name + b"\0") in base64.b64decode(seen.split("\n")[1])
    listed = files.list("names")["entries"]
    assert [e.get("path_b64") or base64.b64encode(e["path"].encode()).decode() for e in listed] == [b64]
    r = files.post("move", **{"from": {"b64": b64}, "to": {"b64": base64.b64encode(moved).decode()}})
    assert r.status == 200 and r.json == {"ok": True}
    up = files.post("upload", files=[{"path_b64": b64, "content_b64": base64.b64encode(name).decode()}]).json
    assert up[0]["error"] is None
    down = files.post("download", paths=[{"b64": b64}]).json
    assert base64.b64decode(down[0]["content_b64"]) == name and down[0]["error"] is None
    assert files.delete(path, moved) == [None, None]
    assert files.list("names")["entries"] == []


def test_a_name_that_is_too_long_is_an_error_of_its_own(files):
    assert files.put("y" * 256, b"").status == 422
    assert code(files.stat("y" * 256)[0]["error"]) == "unprocessable"
    assert files.get(b"a/" * 2040 + b"b").status in (404, 422)


# ---- what is not a file of one's own ----

def test_symlinks_are_told_as_such_and_delete_does_not_follow_them(files):
    files.sh("mkdir -p out in/sub; echo keep >out/keep; ln -s ../out in/link; ln -s /workspace/out/keep in/file; ln -s nowhere in/dead; ln -s loop in/loop")
    told = {e["path"].split("/")[-1]: e for e in files.list("in")["entries"]}
    assert {n: (e["type"], e.get("target")) for n, e in told.items()} == {
        "link": ("symlink", "../out"), "file": ("symlink", "/workspace/out/keep"), "dead": ("symlink", "nowhere"), "loop": ("symlink", "loop"), "sub": ("dir", None)}
    assert files.stat("in/link")[0]["type"] == "symlink"
    assert [e["path"] for e in files.list("in", recursive=True)["entries"]] == [f"/workspace/in/{n}" for n in ("dead", "file", "link", "loop", "sub")]
    assert files.get("in/file").body == b"keep\n"
    assert files.get("in/loop").status == 422
    assert files.get("in/dead").status == 404
    assert files.delete("in", recursive=True) == [None]
    assert files.sh("cat out/keep") == "keep\n"
    files.sh("ln -s out direct")
    assert files.delete("direct", recursive=True) == [None]
    assert files.sh("cat out/keep") == "keep\n"


def test_what_has_no_end_or_no_size_is_bounded_and_never_hangs(files):
    files.sh("rm -f fifo sock; mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' 2>/dev/null || true")
    begun = time.monotonic()
    for path in ("fifo", "/dev/zero", "/dev/null", "/proc/kmsg", "/dev/stdin", "."):
        assert files.get(path).status in (403, 404, 422), path
        assert files.put(path, b"x").status in (403, 404, 422), path
        assert files.post("download", paths=[path]).json[0]["error"]
    assert files.get("/proc/self/status").body.startswith(b"Name:")
    assert files.get("/proc/self/status", "HEAD").status == 200
    assert files.get("/proc/meminfo", Range="bytes=0-1").status == 200
    assert len(files.get("/sys/kernel/mm/transparent_hugepage/enabled").body) < 100
    assert b"processor" in base64.b64decode(files.post("download", paths=["/proc/cpuinfo"]).json[0]["content_b64"])
    assert files.stat("fifo", "/dev/zero", "/proc")[0]["type"] == "fifo"
    assert files.stat("/dev/zero")[0]["type"] == "char"
    assert time.monotonic() - begun < 60
    assert files.delete("fifo", "sock")[0] is None


def test_a_file_that_grows_while_it_is_read_is_sent_as_long_as_it_was(files):
    files.sh("head -c 5000000 /dev/zero >grows; (for i in $(seq 300); do head -c 100000 /dev/zero >>grows; sleep 0.01; done) >/dev/null 2>&1 &")
    for _ in range(5):
        c, r = files.open_get("grows")
        body = r.read()
        assert r.status == 200 and len(body) == int(r.headers["Content-Length"]) >= 5000000
        c.close()


def test_a_file_that_shrinks_while_it_is_read_breaks_the_connection(files):
    files.sh("head -c 60000000 /dev/urandom >shrinks")
    c, r = files.open_get("shrinks")
    assert r.status == 200 and int(r.headers["Content-Length"]) == 60000000
    got = len(r.read(1000))
    files.sh("truncate -s 1000 shrinks")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        while True:
            piece = r.read(MIB)
            got += len(piece)
            if not piece:
                break
        # http.client tells of a short body only by its count
        if got < 60000000:
            raise ConnectionError
    c.close()


def test_no_permission_and_no_place(files):
    assert files.put("/etc/x", b"").status == 403
    assert files.put("/proc/x", b"").status in (403, 404)
    assert files.get("/etc/shadow").status in (403, 404)
    assert files.get("absent").status == 404
    assert files.post("list", path="absent").status == 404
    files.put("afile", b"x")
    assert files.put("afile/x", b"").status == 422
    assert files.post("mkdir", path="afile").status == 409
    assert files.post("mkdir", path="afile/x").status == 422
    assert files.post("move", **{"from": "absent", "to": "y"}).status == 404
    assert [code(e) for e in files.delete("absent", "/etc/passwd", "afile")] == ["not_found", "forbidden", None]


# ---- list, mkdir, move, delete ----

def test_a_list_is_sorted_by_bytes_and_leaves_out_git_and_node_modules(files):
    files.sh("rm -rf tree; mkdir -p tree/.git/objects tree/node_modules/x tree/b/node_modules/y tree/B; touch tree/a-1 tree/a/ tree/a 2>/dev/null; touch tree/b/f tree/ä")
    got = files.list("tree", recursive=True)
    paths = [e["path"].removeprefix("/workspace/tree/") for e in got["entries"]]
    assert paths == sorted(["B", "a", "a-1", "b", "b/f", "ä"], key=lambda p: p.encode())
    assert got["truncated"] is False
    assert [e["path"].split("/")[-1] for e in files.list("tree")["entries"]] == sorted([".git", "B", "a", "a-1", "b", "node_modules", "ä"], key=lambda p: p.encode())
    assert [e["type"] for e in files.list("tree/b/f")["entries"]] == ["file"]
    few = files.list("tree", recursive=True, max=3)
    assert few["truncated"] is True and len(few["entries"]) == 3
    assert files.list("tree/B") == {"entries": [], "truncated": False}


def test_types_sizes_modes_and_times_are_what_the_kernel_says(files):
    files.sh("rm -rf kinds; mkdir kinds; cd kinds; printf 12345 >f; chmod 4751 f; touch -d '2001-02-03T04:05:06.789Z' f; mkdir -m 1770 d; mkfifo p; ln -s f l")
    got = {e["path"].split("/")[-1]: e for e in files.list("kinds")["entries"]}
    assert (got["f"]["size"], got["f"]["mode"], got["f"]["mtime"]) == (5, "4751", "2001-02-03T04:05:06.789Z")
    assert {n: e["type"] for n, e in got.items()} == {"f": "file", "d": "dir", "p": "fifo", "l": "symlink"}
    assert got["d"]["mode"] == "1770"


def test_mkdir_makes_parents_and_takes_what_is_there(files):
    for _ in range(2):
        assert files.post("mkdir", path="m/k/d ir").json == {"ok": True}
    assert files.stat("m/k/d ir")[0]["type"] == "dir"


def test_move(files):
    files.sh("rm -rf mv; mkdir -p mv/full mv/empty mv/src; echo 1 >mv/a; echo 2 >mv/b; touch mv/full/x mv/src/y; ln -s a mv/l")
    move = lambda a, b: files.post("move", **{"from": a, "to": b}).status
    assert move("mv/a", "mv/a") == 200 and files.sh("cat mv/a") == "1\n"
    assert move("mv/full", "mv/full") == 200
    assert move("mv/a", "mv/b") == 200 and files.sh("cat mv/b; ls mv/a 2>&1 | wc -l") == "1\n1\n"
    assert move("mv/src", "mv/full") == 409
    assert move("mv/src", "mv/src/below") == 422
    assert move("mv/src", "mv/empty") == 200 and files.sh("ls mv/empty") == "y\n"
    assert move("mv/b", "mv/full") in (409, 422)
    assert move("mv/l", "mv/l2") == 200 and files.sh("readlink mv/l2") == "a\n"
    assert move("mv/empty", "/tmp/moved") == 200 and files.sh("ls /tmp/moved; ls mv") .startswith("y\n")  # another file system
    assert move("/tmp/moved", "mv/back") == 200 and files.sh("ls mv/back; ls /tmp/moved 2>&1 | wc -l") == "y\n1\n"
    for kept in ("/workspace", "/tmp", "/home/sandbox", "/home", "/"):
        assert move(kept, "/workspace/mv/kept") == 403, kept


def test_the_places_that_always_stay(files):
    files.sh("mkdir -p stay; touch /tmp/t /home/sandbox/h stay/w; ln -s /tmp stay/tmp; ln -s / stay/root")
    kept = ["/", "/workspace", ".", "/workspace/", "/workspace/stay/..", "/tmp", "/tmp/../tmp", "/home/sandbox", "/home", "/conversation_history", "//"]
    assert [code(e) for e in files.delete(*kept, recursive=True)] == ["forbidden"] * len(kept)
    assert [code(e) for e in files.delete("stay/root/tmp", "stay/root/workspace/../tmp", "stay/tmp/.", recursive=True)] == ["forbidden", "forbidden", None]  # the link
    assert files.sh("ls /tmp/t /home/sandbox/h stay/w") == "/home/sandbox/h\n/tmp/t\nstay/w\n"


def test_a_folder_that_is_not_empty_is_deleted_only_recursively(files):
    files.sh("mkdir -p full/of/it; touch full/x")
    assert code(files.delete("full")[0]) == "conflict"
    assert files.delete("full", recursive=True) == [None]
    assert code(files.stat("full")[0]["error"]) == "not_found"


# ---- bytes ----

def test_bytes_conditions_and_ranges(files):
    r = files.put("bytes", bytes(range(256)))
    assert r.status == 201 and r.json["size"] == 256 and r.json["path"] == "/workspace/bytes" and r.json["mode"] == "0644"
    tag = r.headers["ETag"]
    got = files.get("bytes")
    assert got.body == bytes(range(256)) and got.headers["ETag"] == tag
    assert files.get("bytes", Range="bytes=-2").body == b"\xfe\xff"
    assert files.get("bytes", Range="bytes=10-19").body == bytes(range(10, 20))
    assert files.get("bytes", Range="bytes=256-").status == 416
    assert files.get("bytes", If_None_Match=tag).status == 304
    assert files.get("bytes", "HEAD").headers["Content-Length"] == "256"
    second = files.put("bytes", b"2", If_Match=tag)
    assert second.status == 200 and second.headers["ETag"] != tag
    assert files.put("bytes", b"3", If_Match=tag).status == 412
    assert files.put("bytes", b"3", If_None_Match="*").status == 412
    assert files.put("not-there", b"3", If_Match="*").status == 412
    assert files.get("bytes").body == b"2"
    files.sh("echo longer >bytes")
    assert files.put("bytes", b"4", If_Match=second.headers["ETag"]).status == 412
    files.put("script", b"#!/bin/sh\necho ran", query="&mode=0755")
    assert files.sh("./script; stat -c %a script") == "ran\n755\n"
    files.put("script", b"#!/bin/sh\necho again")
    assert files.sh("./script; stat -c %a script") == "again\n755\n"


def test_a_write_through_a_symlink_changes_its_target(files):
    files.sh("mkdir -p real; echo old >real/f; rm -f via; ln -s real/f via")
    assert files.put("via", b"new").status == 200
    assert files.sh("cat real/f; readlink via") == "newreal/f\n"


def test_uploads_of_many_with_errors_of_their_own(files):
    many = [{"path": f"up/{i % 7}/{i}", "content_b64": base64.b64encode(str(i).encode()).decode()} for i in range(300)]
    many[10]["path"] = "/etc/no"
    many[20]["content_b64"] = "no base64"
    r = files.post("upload", files=many)
    assert r.status == 200 and [i for i, e in enumerate(r.json) if e["error"]] == [10, 20]
    assert files.sh("cat up/5/299; find up -type f | wc -l") == "299298\n"
    down = files.post("download", paths=[f"up/{i % 7}/{i}" for i in range(300)]).json
    assert [i for i, e in enumerate(down) if e["content_b64"] is None] == [10, 20]
    assert base64.b64decode(down[299]["content_b64"]) == b"299"


def test_a_download_that_is_too_large_leaves_room_for_the_others(engine, own_berthd):
    own_berthd.settings = {"SANDBOX_MAX_BODY": "1m"}
    own_berthd.start()
    files = Files(own_berthd, own_berthd.create()["id"])
    files.sh("head -c 2000000 /dev/zero >big; head -c 500000 /dev/zero >half; echo x >small")
    got = files.post("download", paths=["big", "small", "half", "half", "small"]).json
    assert [code(e["error"]) for e in got] == ["too_large", None, None, "too_large", None]
    assert [e["content_b64"] and len(base64.b64decode(e["content_b64"])) for e in got] == [None, 2, 500000, None, 2]


def test_a_large_file_goes_in_and_out_in_constant_memory(files):
    size, piece = 256 * MIB, os.urandom(MIB)
    before = files.berthd.rss_mb()
    c, peak = files.open_put("large", size), 0
    for i in range(size // MIB):
        c.send(piece)
        peak = max(peak, files.berthd.rss_mb()) if i % 32 == 0 else peak
    r = c.getresponse()
    assert r.status == 201 and json.loads(r.read())["size"] == size
    c, r = files.open_get("large")
    for i in range(size // MIB):
        assert r.read(MIB) == piece
        peak = max(peak, files.berthd.rss_mb()) if i % 32 == 0 else peak
    assert r.read() == b""
    assert peak - before < 24, (before, peak)
    files.delete("large")


# ---- what is cut, repeated, raced ----

def leftovers(files):
    return files.sh("find /workspace /tmp -name '.*' -newer /proc/1/comm -type f 2>/dev/null | grep -i berth || true")


def await_idle(files):
    """No built-in job is left in the sandbox."""
    wait_for(lambda: "berth-agent" not in files.sh("for p in /proc/[0-9]*; do [ $p = /proc/1 ] || tr '\\0' ' ' <$p/cmdline 2>/dev/null; done | grep -a berth-agent | grep -v bridge || true"), 30)


@pytest.mark.parametrize("old", [None, b"old content"])
def test_a_client_that_dies_in_mid_body_changes_nothing(files, old):
    path = "cut-old" if old else "cut-new"
    if old:
        files.put(path, old)
    c = files.open_put(path, 50 * MIB)
    c.send(b"x" * (5 * MIB))
    mid = files.get(path)
    assert (mid.status, mid.body) == (200, old) if old else mid.status == 404  # nothing of it is to be seen
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    c.close()
    wait_for(lambda: any(r["outcome"] != "ok" for r in files.berthd.rows("SELECT outcome FROM audit WHERE action = 'file.write' AND subject = ?",
                                                                        f"/workspace/{path}")), 30)
    after = files.get(path)
    assert (after.status, after.body) == (200, old) if old else after.status == 404
    assert leftovers(files) == ""


def test_a_bridge_that_dies_in_mid_body_changes_nothing_and_nothing_stays(berthd, engine):
    files = Files(berthd, berthd.create()["id"])
    files.put("f", b"old")
    pid = main_pid(engine, berthd.container_of(files.session))
    c = files.open_put("f", 50 * MIB)
    c.send(b"x" * MIB)
    for p in wait_for(lambda: bridges(pid), 20):
        os.kill(p, signal.SIGKILL)
    try:
        c.send(b"x" * (49 * MIB))
    except OSError:
        pass
    r = c.getresponse()
    assert r.status in (502, 503), r.status
    assert wait_for(lambda: files.get("f"), 30).body == b"old"
    assert leftovers(files) == ""
    # the places of the session are free again
    for _ in range(20):
        assert files.get("f").status == 200


def test_a_berthd_that_dies_in_mid_body_changes_nothing_and_nothing_stays(own_berthd):
    own_berthd.start()
    files = Files(own_berthd, own_berthd.create()["id"])
    files.put("f", b"old")
    cs = [files.open_put("f", 50 * MIB) for _ in range(4)]
    for c in cs:
        c.send(b"x" * MIB)
    wait_for(lambda: files.get("f").status == 200, 10)
    own_berthd.kill()
    own_berthd.start()
    wait_for(lambda: files.get("f").status == 200, 30)
    assert files.get("f").body == b"old"
    assert leftovers(files) == ""
    for i in range(70):  # the agent's table has 64 places: what was left in it is gone
        assert files.put("f", b"%d" % i).status == 200


def test_a_full_disk_is_507_and_leaves_the_old_file(berthd):
    files = Files(berthd, berthd.create(workspace={"kind": "tmpfs", "size_mb": 16})["id"])
    files.put("f", b"old")
    r = files.put("f", b"x" * (40 * MIB))
    assert r.status == 507 and r.json["error"]["code"] == "no_space"
    assert files.get("f").body == b"old"
    up = files.post("upload", files=[{"path": "g", "content_b64": base64.b64encode(b"x" * (20 * MIB)).decode()}, {"path": "h", "content_b64": "aA=="}]).json
    assert [code(e["error"]) for e in up] == ["no_space", None]
    assert files.sh("ls -A; df --output=used -k . | tail -1 | tr -d ' '").split()[:2] == ["f", "h"]
    assert files.put("f", b"new").status == 200


def race(*fns):
    out = [None] * len(fns)

    def run(i):
        out[i] = fns[i]()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(fns))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def test_of_two_writers_with_one_tag_exactly_one_wins(files):
    for i in range(20):
        tag = files.put("race", b"start").headers["ETag"]
        got = race(*[lambda n=n: files.put("race", b"writer %d" % n, If_Match=tag) for n in range(4)])
        assert sorted(r.status for r in got) == [200, 412, 412, 412], [r.status for r in got]
        winner = next(n for n, r in enumerate(got) if r.status == 200)
        assert files.get("race").body == b"writer %d" % winner
    for i in range(10):
        got = race(*[lambda n=n: files.put(f"race-new-{i}", b"writer %d" % n, If_None_Match="*") for n in range(4)])
        assert sorted(r.status for r in got) == [201, 412, 412, 412], [r.status for r in got]


def test_two_uploads_to_one_path_leave_one_of_them_whole(files):
    bodies = [bytes([65 + n]) * (3 * MIB) for n in range(4)]
    for _ in range(3):
        got = race(*[lambda b=b: files.put("both", b) for b in bodies])
        assert all(r.status in (200, 201) for r in got)
        assert files.get("both").body in bodies


def test_a_delete_while_it_is_listed_and_read(files):
    for _ in range(3):
        files.sh("mkdir -p busy; cd busy; for i in $(seq 20); do mkdir -p $i; touch $i/{1..50}; done")
        listed, deleted, again = race(lambda: files.post("list", path="busy", recursive=True, max=100000), lambda: files.delete("busy", recursive=True),
                                      lambda: files.post("list", path="busy", recursive=True, max=100000))
        assert listed.status in (200, 404) and again.status in (200, 404)
        assert deleted == [None], deleted
        assert code(files.stat("busy")[0]["error"]) == "not_found"


def test_repeated_requests(files):
    assert [files.put("again", b"x").status for _ in range(3)] == [201, 200, 200]
    assert [code(files.delete("again")[0]) for _ in range(2)] == [None, "not_found"]
    assert [files.post("mkdir", path="again.d").status for _ in range(2)] == [200, 200]
    files.put("from", b"x")
    assert [files.post("move", **{"from": "from", "to": "to"}).status for _ in range(2)] == [200, 404]


def test_more_requests_than_places_are_all_served(files):
    files.sh("head -c 3000000 /dev/zero >shared")
    got = race(*[lambda: files.get("shared") for _ in range(40)])
    assert [r.status for r in got] == [200] * 40 and {len(r.body) for r in got} == {3000000}


def test_readers_that_stall_hold_up_nobody_but_other_transfers(files):
    files.sh("head -c 50000000 /dev/zero >stalls")
    held = [files.open_get("stalls") for _ in range(5)]  # all there may be
    begun = time.monotonic()
    for _ in range(10):
        assert files.stat("stalls")[0]["size"] == 50000000
    assert files.sh("echo on") == "on\n"
    assert time.monotonic() - begun < 10
    for c, _ in held:
        c.close()


def test_a_transfer_counts_as_use_of_its_session(own_berthd):
    own_berthd.start()
    session = own_berthd.create(idle_s=3)["id"]
    files = Files(own_berthd, session)
    c = files.open_put("slow", 8 * MIB)
    for _ in range(8):
        c.send(b"x" * MIB)
        time.sleep(1)
    r = c.getresponse()
    assert r.status == 201 and json.loads(r.read())["size"] == 8 * MIB


def test_a_session_that_is_deleted_ends_its_transfers(berthd):
    files = Files(berthd, berthd.create()["id"])
    files.sh("head -c 300000000 /dev/zero >big")
    c, r = files.open_get("big")
    r.read(MIB)
    assert berthd.call("DELETE", f"/v1/sessions/{files.session}").status == 200
    got = MIB
    try:
        while piece := r.read(MIB):
            got += len(piece)
    except (http.client.IncompleteRead, ConnectionError):
        pass
    assert got < 300000000
    assert files.get("big").status in (404, 410)


def test_changes_and_downloads_are_audited_without_their_content(files):
    files.put("audited", b"secret-content")
    files.get("audited")
    files.post("move", **{"from": "audited", "to": "audited2"})
    files.delete("audited2")

    def rows():
        got = files.berthd.rows("SELECT action, subject, outcome, detail, actor FROM audit WHERE subject LIKE '%audited%' ORDER BY id")
        return got if len(got) >= 4 else None
    got = wait_for(rows, 20)
    assert [(r["action"], r["outcome"]) for r in got] == [("file.write", "ok"), ("file.read", "ok"), ("file.move", "ok"), ("file.delete", "ok")]
    assert got[0]["detail"] == "14 bytes" and got[0]["subject"] == "/workspace/audited"
    assert "secret-content" not in json.dumps(got) and "secret-content" not in files.berthd.log.read_text()


def test_a_session_token_works_at_the_root_and_for_its_own_session_only(berthd):
    mine, other = berthd.create(), berthd.create()
    r = berthd.call("PUT", "/files/content?path=x", token=mine["token"], raw=b"mine")
    assert r.status == 201
    assert berthd.call("POST", "/files/stat", {"paths": ["x"]}, token=mine["token"]).json[0]["size"] == 4
    assert berthd.call("GET", f"/v1/sessions/{other['id']}/files/content?path=x", token=mine["token"]).status == 404
    assert berthd.call("GET", "/files/content?path=x", token=other["token"]).status == 404
    assert berthd.call("GET", "/files/content?path=x", token=None).status == 401


def test_long_lists_that_nobody_reads_are_bounded_in_memory(own_berthd):
    """Each is some 70 MB until its reader has it; together they count as the bodies of requests do."""
    b = own_berthd.start()
    path = base64.b64encode(b"".join(b"/" + b"\xff" * 250 for _ in range(16))).decode()
    body = json.dumps({"paths": [{"b64": path}] * 4096}).encode()
    head = (f"POST /v1/sessions/{b.create()['id']}/files/stat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    readers, statuses = [], []
    try:
        while 503 not in statuses:
            assert len(statuses) < 12, statuses
            s = socket.create_connection(("127.0.0.1", b.port), timeout=90)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            readers.append(s)
            s.sendall(head + body)
            statuses.append(int(s.recv(12)[9:]))
    finally:
        for s in readers:
            s.close()
    assert statuses[:2] == [200, 200] and set(statuses) == {200, 503}, statuses
