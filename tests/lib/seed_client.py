"""A client of a server with one sandbox, written from that server's own description alone: an address, a token, paths at the
root, the bodies and replies that it names. It knows nothing of sessions."""
import base64, http.client, json, urllib.parse


class SeedClient:
    def __init__(self, port, token):
        self.port, self.token = port, token

    def request(self, method, path, body=None, raw=None, auth=True, status=200):
        headers = {"Authorization": f"Bearer {self.token}"} if auth else {}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        elif raw is not None:
            headers["Content-Type"] = "application/gzip"
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            c.request(method, path, data, headers)
            r = c.getresponse()
            text = r.read()
        finally:
            c.close()
        assert r.status == status, (method, path, r.status, text[:400])
        return text

    def json(self, *args, **more):
        return json.loads(self.request(*args, **more))

    # ---- commands ----

    def exec(self, command, **more):
        return self.json("POST", "/exec", {"command": command, **more})

    def stream(self, command, **more):
        return [json.loads(line) for line in self.request("POST", "/exec/stream", {"command": command, **more}).splitlines()]

    # ---- processes ----

    def start(self, command, **more):
        return self.json("POST", "/processes", {"command": command, **more}, status=201)

    def processes(self):
        return self.json("GET", "/processes")["processes"]

    def output(self, id, offset=0):
        return self.json("GET", f"/processes/{id}?offset={offset}")

    def stdin(self, id, data, close=False):
        return self.json("POST", f"/processes/{id}/stdin", {"data": data, "close": close})

    def stop(self, id, grace_s=5):
        return self.json("DELETE", f"/processes/{id}?grace_s={grace_s}")

    # ---- files ----

    def upload(self, files):
        return self.json("POST", "/files/upload",
                         {"files": [{"path": p, "content_b64": base64.b64encode(b).decode()} for p, b in files.items()]})

    def download(self, *paths):
        return self.json("POST", "/files/download", {"paths": list(paths)})

    def list(self, path, **more):
        return self.json("POST", "/files/list", {"path": path, **more})

    def stat(self, *paths):
        return self.json("POST", "/files/stat", {"paths": list(paths)})

    def mkdir(self, path):
        return self.json("POST", "/files/mkdir", {"path": path})

    def move(self, old, new):
        return self.json("POST", "/files/move", {"from": old, "to": new})

    def delete(self, *paths, **more):
        return self.json("POST", "/files/delete", {"paths": list(paths), **more})

    def get_archive(self, path):
        return self.request("GET", "/files/archive?path=" + urllib.parse.quote(path))

    def put_archive(self, path, data):
        return self.json("PUT", "/files/archive?path=" + urllib.parse.quote(path), raw=data)

    # ---- open ----

    def health(self):
        return self.json("GET", "/health", auth=False)

    def metrics(self):
        return self.request("GET", "/metrics", auth=False).decode()

    def openapi(self):
        return self.json("GET", "/openapi.json", auth=False)
