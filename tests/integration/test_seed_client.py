"""berthd in the place of a server with one sandbox: its clients change the address and nothing else."""
import base64, io, tarfile

import pytest

from berthd import Berthd, wait_for
from seed_client import SeedClient

MINE = "default-session-token-0123456789"


@pytest.fixture(scope="module")
def client(engine):
    b = Berthd(engine, SANDBOX_TOKEN=MINE, ATLAS_SANDBOX_MEM="512m").start()
    yield SeedClient(b.port, MINE)
    b.destroy()


def test_exec(client):
    r = client.exec("echo out; echo err >&2; exit 3")
    assert {"output", "exit_code", "truncated", "timed_out", "duration_ms"} <= set(r)
    assert (r["output"], r["exit_code"], r["truncated"], r["timed_out"]) == ("out\nerr\n", 3, False, False)
    assert isinstance(r["duration_ms"], int)
    r = client.exec("echo $A; pwd; sleep 60", timeout_s=1, cwd="/tmp", env={"A": "b"})
    assert (r["output"], r["timed_out"]) == ("b\n/tmp\n", True)
    r = client.exec("head -c 300000 /dev/zero | tr '\\0' x; echo end")
    assert r["truncated"] and r["output"].startswith("xxx") and r["output"].endswith("end\n")
    assert len(r["output"]) < 101000


def test_exec_stream(client):
    lines = client.stream("for i in 1 2 3; do echo $i; done; exit 4")
    assert "".join(l["data"] for l in lines if l["type"] == "output") == "1\n2\n3\n"
    assert lines[-1]["type"] == "exit" and lines[-1]["exit_code"] == 4


def test_processes(client):
    made = client.start("while read line; do echo got $line; done; echo bye", name="echo")
    assert set(made) >= {"id", "pid"} and made["pid"] > 1
    found = next(p for p in client.processes() if p["id"] == made["id"])
    assert (found["name"], found["running"], found["exit_code"]) == ("echo", True, None)
    assert {"command", "started_at", "ended_at"} <= set(found)
    client.stdin(made["id"], "one\n")
    first = wait_for(lambda: (lambda r: r["output"] and r)(client.output(made["id"])))
    assert first["output"] == "got one\n" and first["running"]
    client.stdin(made["id"], "two\n", close=True)
    done = wait_for(lambda: (lambda r: not r["running"] and r)(client.output(made["id"], first["next_offset"])))
    assert (done["output"], done["exit_code"]) == ("got two\nbye\n", 0)
    client.stop(made["id"])
    long = client.start("echo started; sleep 300")
    wait_for(lambda: client.output(long["id"])["output"])
    ended = client.stop(long["id"], grace_s=1)
    assert ended["output"] == "started\n" and not ended["running"]
    client.json("GET", f"/processes/{long['id']}", status=404)


def test_files(client):
    files = {"/workspace/a/b.txt": b"text\n", "/workspace/a/b.bin": bytes(range(256))}
    assert client.upload(files) == [{"path": p, "error": None} for p in files]
    assert client.download(*files) == [{"path": p, "content_b64": base64.b64encode(b).decode(), "error": None} for p, b in files.items()]
    missing = client.download("/workspace/none")[0]
    assert missing["content_b64"] is None and missing["error"]
    assert client.mkdir("/workspace/a/c/d") == {"ok": True}
    assert client.move("/workspace/a/b.bin", "/workspace/a/c/moved") == {"ok": True}
    listed = client.list("/workspace/a", recursive=True)
    assert listed["truncated"] is False
    assert {e["path"]: e["type"] for e in listed["entries"]} == {
        "/workspace/a/b.txt": "file", "/workspace/a/c": "dir", "/workspace/a/c/d": "dir", "/workspace/a/c/moved": "file"}
    assert all({"path", "type", "size", "mtime", "mode"} <= set(e) for e in listed["entries"])
    stat = client.stat("/workspace/a/b.txt", "/workspace/none")
    assert (stat[0]["type"], stat[0]["size"], stat[0]["error"]) == ("file", 5, None) and stat[1]["error"]
    assert client.delete("/workspace/a/b.txt")[0]["error"] is None
    assert client.delete("/workspace/a", recursive=True)[0]["error"] is None
    assert client.list("/workspace", max=10)["entries"] == []
    for kept in "/", "/workspace", "/tmp", "/home/sandbox":
        assert client.delete(kept, recursive=True)[0]["error"]


def test_archives(client):
    client.upload({"/workspace/r/x": b"x\n", "/workspace/r/d/y": b"y\n"})
    data = client.get_archive("/workspace/r")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        names = {n.removeprefix("./").strip("/") for n in tar.getnames()}
    assert {"x", "d/y"} <= names or {"r/x", "r/d/y"} <= names
    client.put_archive("/workspace/again", data)
    assert sorted(client.exec("cd /workspace/again && find . -type f -exec cat {} +")["output"].split()) == ["x", "y"]


def test_what_is_open(client):
    h = client.health()
    assert {"ok", "version", "workspace", "busy", "processes", "tools"} <= set(h)
    assert h["ok"] and h["workspace"] == "/workspace" and isinstance(h["tools"], dict)
    metrics = client.metrics()
    assert "# TYPE" in metrics
    assert client.openapi()["openapi"].startswith("3.1")


def test_a_wrong_token_is_refused(client):
    SeedClient(client.port, MINE + "x").request("POST", "/exec", {"command": "true"}, status=401)
    client.request("POST", "/exec", {"command": "true"}, auth=False, status=401)
    for name in "SANDBOX_TOKEN", "SANDBOX_ADMIN_TOKEN":
        reply = client.json("POST", "/exec", {"command": "true", "env": {name: "x"}}, status=400)
        assert reply["error"]["field"] == f"env.{name}"
