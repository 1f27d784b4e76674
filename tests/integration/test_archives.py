"""Archives of a session: docs/API.md, "Archives", from outside, on both engines. What the agent makes of each kind of entry
is told by tests/agent/test_archives.py; here it is what a client sees of it."""
import gzip, hashlib, http.client, io, json, os, signal, socket, tarfile, time

import pytest

import tarmaker
from berthd import TOKEN, wait_for
from crash import bridges, main_pid
from test_files import Files, MIB, code, leftovers

TYPES = {"tar": "application/x-tar", "tar.gz": "application/gzip", "tar.zst": "application/zstd"}


class Archives(Files):
    def out(self, path=None, query="", **headers):
        where = self.where(path) if path else ""
        return self.berthd.call("GET", f"{self.root}/archive?{where}{query}", headers=headers, timeout=300)

    def into(self, path, data, kind=None, query=""):
        return self.berthd.call("PUT", f"{self.root}/archive?{self.where(path)}{query}", raw=data, timeout=300,
                                headers={"Content-Type": kind or "application/octet-stream"})

    def picture(self, folder):
        """Types, rwx bits, mtimes, sizes, targets and contents of all in a folder."""
        return self.sh(f"cd {folder} && find . -mindepth 1 -printf '%P|%y|%m|%T@|%s|%l\\n' | sed -E 's/^(.*\\|d\\|.*\\|.*\\|)[0-9]+\\|/\\1/' | sort | sha256sum; "
                       f"find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum; find . | wc -l")


@pytest.fixture(scope="module")
def archives(berthd):
    return Archives(berthd, berthd.create()["id"])


MANY = """import os, random
r = random.Random(7)
os.makedirs("/workspace/repo"); os.chdir("/workspace/repo")
for i in range(200):
    os.makedirs(f"d{i % 20}/s{i}")
    for j in range(100):
        p = f"d{i % 20}/s{i}/f{j}"
        if j % 25 == 24: os.symlink(r.choice(["../x", "f1", "nowhere", "../../d0/s0/f0"]), p)
        else:
            with open(p, "wb") as f: f.write(r.randbytes(r.choice([0, 10, 500, 4000])))
            os.chmod(p, r.choice([0o644, 0o755, 0o600, 0o444]))
        ns = r.randrange(1, 2**60); os.utime(p, ns=(ns, ns), follow_symlinks=False)
"""


def test_a_repository_of_20000_files_goes_out_and_in_as_it_was(archives):
    archives.put("many.py", MANY.encode())
    archives.sh("python3 many.py")
    want = archives.picture("repo")
    before = archives.berthd.rss_mb()
    got = archives.out("repo")
    assert got.status == 200 and got.headers["Content-Type"] == "application/gzip"
    r = archives.into("copy", got.body)
    assert r.status == 200 and r.json["refused"] == 0 and r.json["errors"] == [] and r.json["truncated"] is False
    assert r.json["entries"] >= 20200
    assert archives.picture("copy") == want
    assert archives.berthd.rss_mb() - before < 24
    assert archives.delete("repo", "copy", recursive=True) == [None, None]


@pytest.mark.parametrize("name", TYPES)
def test_each_kind_goes_out_and_in(archives, name):
    archives.sh("rm -rf kind back; mkdir -p kind/sub; echo hello >kind/a; ln -s a kind/l; chmod 750 kind/sub; touch -d '2001-02-03T04:05:06.5Z' kind/a")
    got = archives.out("kind", Accept=TYPES[name])
    assert (got.status, got.headers["Content-Type"]) == (200, TYPES[name])
    assert archives.out("kind", f"&format={name}").headers["Content-Type"] == TYPES[name]
    for how in ({"kind": TYPES[name]}, {"query": f"&format={name}"}, {}):
        archives.sh("rm -rf back")
        assert archives.into("back", got.body, **how).status == 200
        assert archives.picture("back") == archives.picture("kind")
    if name != "tar.zst":
        with tarfile.open(fileobj=io.BytesIO(got.body)) as tar:
            assert sorted(m.name.removeprefix("./").rstrip("/") for m in tar if m.name not in (".", "./")) == ["a", "l", "sub"]
            assert not any(m.islnk() for m in tar)


def test_head_packs_nothing_and_errors_come_before_the_stream(archives):
    archives.put("one", b"1")
    c = archives.berthd.connect()
    c.request("HEAD", f"{archives.root}/archive?path=one", headers={"Authorization": f"Bearer {TOKEN}"})
    r = c.getresponse()
    assert (r.status, r.headers["Content-Type"], r.read()) == (200, "application/gzip", b"")
    c.close()
    assert archives.out("absent").status == 404
    assert archives.out("one", "&format=rar").status == 400
    with tarfile.open(fileobj=io.BytesIO(archives.out("one").body)) as tar:
        assert [(m.name, tar.extractfile(m).read()) for m in tar] == [("one", b"1")]


def test_hard_links_go_out_as_files_and_what_is_no_file_is_left_out(archives):
    archives.sh("rm -rf odd; mkdir odd; echo 1 >odd/a; ln odd/a odd/b; mkfifo odd/p; echo x >odd/secret; chmod 000 odd/secret")
    with tarfile.open(fileobj=io.BytesIO(archives.out("odd").body)) as tar:
        kinds = {m.name.removeprefix("./").rstrip("/"): m for m in tar}
        assert kinds["a"].isreg() and kinds["b"].isreg() and "secret" not in kinds and "p" not in kinds


HOSTILE = [
    ("an absolute path", tarmaker.file(b"/tmp/evil")), ("..", tarmaker.file(b"../evil")), (".. within", tarmaker.file(b"a/../../evil")),
    ("a link out, and through it", tarmaker.symlink(b"l", b"/tmp") + tarmaker.file(b"l/evil")),
    ("links through links", tarmaker.symlink(b"a", b".") + tarmaker.symlink(b"a/b", b"..") + tarmaker.file(b"a/b/evil")),
    ("a hard link out", tarmaker.hardlink(b"h", b"/etc/passwd")), ("a device", tarmaker.header(b"dev", b"3")), ("a FIFO", tarmaker.header(b"fifo", b"6")),
]


@pytest.mark.parametrize("parts", [h[1] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_hostile_entries_are_refused_one_by_one_and_the_others_written(archives, parts):
    archives.sh("rm -rf box; mkdir -p box/in; rm -f /tmp/evil evil")
    before = archives.sh("find /workspace/box /tmp -not -path '*/box/in*' | sort")
    r = archives.into("box/in", tarmaker.gzipped(tarmaker.archive(tarmaker.file(b"before", b"1"), parts, tarmaker.file(b"after", b"2"))))
    assert r.status == 200, r
    assert r.json["refused"] >= 1 and len(r.json["errors"]) == r.json["refused"] and all(e["path"] and e["error"] for e in r.json["errors"])
    assert archives.sh("cat box/in/before box/in/after") == "12"
    assert archives.sh("find /workspace/box /tmp -not -path '*/box/in*' | sort") == before
    assert archives.sh("ls evil /tmp/evil box/evil 2>/dev/null | wc -l; find box/in -type p -o -type c -o -type b -o -links +1 -type f | wc -l") == "0\n0\n"


def test_set_id_bits_and_owners_are_not_restored(archives):
    archives.sh("rm -rf bits")
    data = tarmaker.archive(tarmaker.file(b"s", mode=0o6755), tarmaker.folder(b"d", mode=0o1777), tarmaker.file(b"w", mode=0o666))
    assert archives.into("bits", data).status == 200
    assert archives.sh("cd bits; stat -c '%n %a %U' s d w") == "s 755 sandbox\nd 755 sandbox\nw 644 sandbox\n"


@pytest.mark.parametrize("data", [b"", b"not an archive at all, but some text" * 100, gzip.compress(b"neither" * 500), os.urandom(5000)],
                         ids=["nothing", "text", "gzip of text", "noise"])
def test_what_is_no_archive_is_422(archives, data):
    r = archives.into("none", data)
    assert (r.status, r.json["error"]["code"]) == (422, "unprocessable"), r


def test_a_truncated_archive_is_422_with_a_report(archives):
    archives.sh("rm -rf short")
    whole = tarmaker.gzipped(tarmaker.archive(tarmaker.file(b"a", b"1"), tarmaker.file(b"b", os.urandom(100000))))
    r = archives.into("short", whole[:50000])
    assert r.status == 422 and "entries" in r.json["error"]["message"], r
    assert archives.sh("ls -A short") == "a\n"


def test_a_bomb_is_stopped_by_the_disk_of_the_sandbox(berthd):
    small = Archives(berthd, berthd.create(workspace={"kind": "tmpfs", "size_mb": 16})["id"])
    bomb = gzip.compress(tarmaker.header(b"bomb", size=1 << 30) + bytes(100 * MIB), 9)
    r = small.into("in", bomb)
    assert r.status == 507, r
    assert small.sh("echo alive; ls -A in | grep -v bomb | wc -l") == "alive\n0\n"


def test_a_client_that_is_cut_off_and_a_bridge_that_dies_leave_no_half_file(berthd, engine):
    a = Archives(berthd, berthd.create()["id"])
    whole = tarmaker.archive(tarmaker.file(b"first", b"1"), tarmaker.file(b"big", os.urandom(20 * MIB)))

    def begin():
        c = berthd.connect()
        c.putrequest("PUT", f"{a.root}/archive?path=in")
        c.putheader("Authorization", f"Bearer {TOKEN}")
        c.putheader("Content-Length", str(len(whole)))
        c.endheaders()
        c.send(whole[:10 * MIB])
        return c
    c = begin()
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    c.close()
    wait_for(lambda: any(r["outcome"] != "ok" for r in berthd.rows("SELECT outcome FROM audit WHERE action = 'archive.in' AND session = ?", a.session)), 30)
    assert a.sh("ls -A in") == "first\n"
    c = begin()
    for p in wait_for(lambda: bridges(main_pid(engine, berthd.container_of(a.session))), 20):
        os.kill(p, signal.SIGKILL)
    try:
        c.send(whole[10 * MIB:])
    except OSError:
        pass
    assert c.getresponse().status in (502, 503)
    wait_for(lambda: a.stat("in/first")[0]["error"] is None, 30)
    wait_for(lambda: a.sh("ls -A in") == "first\n", 30)
    assert a.into("in", whole).status == 200
    assert a.stat("in/big")[0]["size"] == 20 * MIB


def test_a_session_that_ends_breaks_the_stream(berthd):
    a = Archives(berthd, berthd.create()["id"])
    a.sh("head -c 200000000 /dev/urandom >big")
    c = berthd.connect()
    c.request("GET", f"{a.root}/archive?format=tar", headers={"Authorization": f"Bearer {TOKEN}"})
    r = c.getresponse()
    assert r.status == 200 and r.headers["Transfer-Encoding"] == "chunked"
    r.read(MIB)
    assert berthd.call("DELETE", f"/v1/sessions/{a.session}").status == 200
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        while r.read(MIB):
            pass
    c.close()


def test_a_report_of_long_names_is_cut_and_says_so(archives):
    """A thousand names of which each is 24 KB as JSON"""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for i in range(1000):
            tar.addfile(tarfile.TarInfo("/" + f"{i:04}" + "\x01" * 3900))
        tar.addfile(tarfile.TarInfo("good"))
    r = archives.into("long", data.getvalue())
    assert r.status == 200 and len(r.body) < 2 << 20, (r.status, len(r.body))
    told = r.json
    assert (told["entries"], told["refused"], told["truncated"]) == (1, 1000, True) and len(told["errors"]) > 10
