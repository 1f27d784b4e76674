# SPDX-License-Identifier: MIT
"""GET /openapi.json against a public validator, a client that a public generator makes of it, and real replies."""
import base64, copy, json, shutil, subprocess

import jsonschema
import pytest

from berthd import BUILD, TOKEN, TOP

TOOLS = BUILD / "openapi-tools"
WRITTEN = TOP / "tests/openapi"
BYTES = {"Content-Type": "application/octet-stream"}


def run(*words, cwd=TOOLS, timeout=300):
    p = subprocess.run([str(w) for w in words], cwd=cwd, timeout=timeout, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert p.returncode == 0, f"{words}: {p.stdout[-3000:]}{p.stderr[-3000:]}"
    return p.stdout


@pytest.fixture(scope="session")
def tools():
    """The pinned packages of tests/openapi, installed once for each of their versions."""
    lock = (WRITTEN / "package-lock.json").read_text()
    done = TOOLS / "installed"
    if not done.exists() or done.read_text() != lock:
        shutil.rmtree(TOOLS, ignore_errors=True)
        TOOLS.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(WRITTEN / name, TOOLS)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        done.write_text(lock)
    return TOOLS / "node_modules/.bin"


@pytest.fixture(scope="module")
def document(berthd):
    r = berthd.call("GET", "/openapi.json", token=None)
    assert r.status == 200 and r.headers["Content-Type"] == "application/json", r
    return r.json


def check(document, schema, value):
    """value is as a schema of the document says, whose references count from the document's root."""
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def meant(document, part):
    while "$ref" in part:
        name = part["$ref"].split("/")
        part = document
        for key in name[1:]:
            part = part[key]
    return part


def operations(document):
    for path, item in document["paths"].items():
        for method, op in item.items():
            yield f"{method} {path}", op


def test_a_public_validator_takes_it(document, tools, tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    run(tools / "validate-api", tmp_path / "openapi.json")
    broken = copy.deepcopy(document)
    broken["paths"]["/exec"]["post"]["responses"] = []  # it does look
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(AssertionError):
        run(tools / "validate-api", tmp_path / "broken.json")


def test_examples_are_as_their_schemas(document):
    seen = 0
    for name, op in operations(document):
        contents = [meant(document, r).get("content", {}) for r in op["responses"].values()]
        for content in [op.get("requestBody", {}).get("content", {}), *contents]:
            media = content.get("application/json", {})
            examples = [media["example"]] if "example" in media else [x["value"] for x in media.get("examples", {}).values()]
            for example in examples:
                check(document, media["schema"], example)
                seen += 1
            ndjson = content.get("application/x-ndjson")
            for line in ndjson["example"].splitlines() if ndjson else []:
                check(document, ndjson["schema"], json.loads(line))
                seen += 1
    assert seen > 200


class Asker:
    """Asks a berthd, and holds every answer against the description of its operation."""

    def __init__(self, document, berthd):
        self.document, self.berthd = document, berthd

    def __call__(self, status, method, path, body=None, under=None, **more):
        op = self.document["paths"][under or path.split("?")[0]][method.lower()]
        r = self.berthd.call(method, path, body, **more)
        assert r.status == status, r
        reply = meant(self.document, op["responses"][str(status)])
        kind = r.headers["Content-Type"].split(";")[0]
        schema = reply["content"][kind]["schema"]
        for value in map(json.loads, r.body.splitlines()) if kind.endswith("ndjson") else [r.json]:
            check(self.document, schema, value)
        if "error" in (r.json if kind == "application/json" else {}):
            assert r.json["error"]["code"] in op["x-errors"], (r, op["x-errors"])
        return r


def test_replies_are_as_described(document, berthd):
    ask = Asker(document, berthd)
    ask(200, "GET", "/health", token=None)
    s = ask(201, "POST", "/v1/sessions", {"limits": {"memory_mb": 256}}).json
    one, t = "/v1/sessions/{session}", s["token"]
    here = f"/v1/sessions/{s['id']}"
    ask(200, "GET", "/v1/sessions?limit=5")
    ask(200, "GET", here, under=one)
    ask(200, "PATCH", here, {"labels": {"a": "b"}}, under=one)
    x = ask(200, "POST", "/exec", {"command": "echo hi; exit 2"}, token=t).json
    ask(200, "POST", "/exec", {"argv": ["/nowhere"], "encoding": "base64"}, token=t)
    ask(200, "POST", f"{here}/exec", {"command": "sleep 9 & kill -9 $$"}, under=f"{one}/exec")
    ask(200, "POST", "/exec/stream", {"command": "echo out; echo err >&2", "split": True}, token=t)
    ask(200, "GET", "/execs", token=t)
    ask(200, "GET", f"/execs/{x['id']}", under="/execs/{exec}", token=t)
    ask(202, "DELETE", f"/execs/{x['id']}", under="/execs/{exec}", token=t)
    # processes
    p = ask(201, "POST", "/processes", {"command": "echo up; cat; echo down", "name": "echo"}, token=t).json
    path = "/processes/{process}"
    ask(200, "GET", f"/processes/{p['id']}?wait_s=30", under=path, token=t)
    ask(200, "GET", "/processes", token=t)
    ask(200, "POST", f"/processes/{p['id']}/stdin", {"data": "in\n", "close": True}, under=f"{path}/stdin", token=t)
    ask(200, "GET", f"/processes/{p['id']}/stream", under=f"{path}/stream", token=t)
    ask(409, "POST", f"/processes/{p['id']}/stdin", {"data": "more"}, under=f"{path}/stdin", token=t)
    ask(200, "DELETE", f"{here}/processes/{p['id']}?encoding=base64", under=f"{one}{path}")
    ask(404, "GET", f"/processes/{p['id']}", under=path, token=t)
    ask(422, "POST", "/processes", {"argv": ["/nowhere"]}, token=t)
    # files
    ask(200, "POST", "/files/upload", {"files": [{"path": "d/a.txt", "content_b64": "aGkK"}, {"path": "/proc/no", "content_b64": ""}]}, token=t)
    ask(200, "POST", "/files/download", {"paths": ["d/a.txt", "nowhere", {"b64": "/w=="}]}, token=t)
    ask(200, "POST", f"{here}/files/list", {"path": ".", "recursive": True}, under=f"{one}/files/list")
    ask(200, "POST", "/files/stat", {"paths": ["d", "d/a.txt", "nowhere", "/dev/null"]}, token=t)
    ask(200, "POST", "/files/mkdir", {"path_b64": base64.b64encode(b"d/\xff").decode()}, token=t)
    ask(200, "POST", "/files/list", {"path": "d"}, token=t)
    ask(200, "POST", "/files/move", {"from": "d/a.txt", "to": "d/b.txt"}, token=t)
    ask(404, "POST", "/files/move", {"from": "d/a.txt", "to": "d/b.txt"}, token=t)
    ask(201, "PUT", "/files/content?path=c.bin", raw=b"12345", headers=BYTES, token=t)
    ask(200, "PUT", "/files/content?path=c.bin", raw=b"123456", headers=BYTES, token=t)
    ask(412, "PUT", "/files/content?path=c.bin", raw=b"1", headers={**BYTES, "If-None-Match": "*"}, token=t)
    ask(416, "GET", "/files/content?path=c.bin", headers={"Range": "bytes=99-"}, token=t)
    ask(404, "GET", "/files/content?path=nowhere", token=t)
    ask(422, "GET", "/files/content?path=d", token=t)
    packed = berthd.call("GET", "/files/archive?path=d", token=t)
    assert packed.status == 200 and packed.headers["Content-Type"] in document["paths"]["/files/archive"]["get"]["responses"]["200"]["content"]
    ask(200, "PUT", "/files/archive?path=e", raw=packed.body, headers={"Content-Type": "application/gzip"}, token=t)
    ask(422, "PUT", "/files/archive?path=e", raw=b"no archive", headers={"Content-Type": "application/gzip"}, token=t)
    ask(200, "POST", "/files/delete", {"paths": ["d", "/", "nowhere"], "recursive": True}, token=t)
    # refusals
    ask(400, "POST", "/exec", {"command": ""}, token=t)
    ask(400, "POST", "/v1/sessions", {"limits": {"pids": 1}})
    ask(401, "GET", "/v1/sessions", token=None)
    ask(403, "GET", "/v1/sessions", token=t)
    ask(404, "GET", "/execs/e_nowhere", under="/execs/{exec}", token=t)
    ask(404, "POST", "/v1/sessions", {"image": "localhost/no/such:image"})
    ask(415, "POST", "/exec", raw=b"x", headers={"Content-Type": "text/plain"}, token=t)
    ask(200, "DELETE", here, under=one)
    ask(404, "DELETE", here, under=one)
    ask(410, "POST", "/exec", {"command": "true"}, token=t)


def test_a_generated_client_works(document, berthd, tools, tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    run(tools / "openapi", "--input", tmp_path / "openapi.json", "--output", tmp_path / "ts", "--client", "fetch", "--useOptions")
    run(tools / "sucrase", tmp_path / "ts", "-d", tmp_path / "js", "--transforms", "typescript,imports", "-q")
    (tmp_path / "js/package.json").write_text('{"type": "commonjs"}')
    found = json.loads(run("node", WRITTEN / "client.mjs", tmp_path / "js", f"http://127.0.0.1:{berthd.port}", TOKEN))
    assert found["reply"]["exit_code"] == 3
    assert found["exec"]["state"] == "ended"
    assert base64.b64decode(found["files"][0]["content_b64"]) == b"from inside"
    assert found["error"]["status"] == 404 and found["error"]["body"]["error"]["code"] == "not_found"
    assert found["end"] == {"id": found["session"], "state": "gone"}
