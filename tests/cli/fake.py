"""A server that speaks Berth's documented API as badly as a test wants: cut streams, broken replies, silence."""

import base64
import http.server
import json
import socket
import threading
import time
import urllib.parse

SESSION = "s_aaaaaaaaaaaaaaaaaaaa"
EXEC = "x_bbbbbbbbbbbbbbbbbbbb"
TOKEN = "admin-token-of-the-test"


def session(**other):
    """A session as the API shows it."""
    return {
        "id": SESSION, "name": None, "state": "ready", "reason": None, "detail": None, "image": "box", "labels": {},
        "limits": {"memory_mb": 4096, "cpus": 2.0, "pids": 1024}, "network": "none", "isolation": "runc",
        "workspace": {"kind": "volume", "name": None, "size_mb": 10240}, "ttl_s": 3600, "idle_s": 900,
        "created_at": "2026-01-31T12:00:00.000Z", "expires_at": "2026-01-31T13:00:00.000Z",
        "idle_at": "2026-01-31T12:15:00.000Z", "ended_at": None, **other,
    }


def output(data, stream=None):
    line = {"type": "output", "data": base64.b64encode(data).decode()}
    return {**line, "stream": stream} if stream else line


def exit_line(reason="exited", exit_code=0, **other):
    return {"type": "exit", "id": EXEC, "exit_code": exit_code if reason == "exited" else None, "reason": reason,
            "signal": None, **other}


def error(code, message="said by the server", **other):
    return {"error": {"code": code, "message": message, **other}}


class Fake:
    """replies maps (method, path) to a function of the handler; requests holds what came, in order."""

    def __init__(self):
        self.requests = []
        self.came = threading.Condition()
        self.released = threading.Event()
        self.replies = {
            ("POST", "/v1/sessions"): lambda h: h.reply(201, session(token="bst_secret")),
            ("POST", f"/v1/sessions/{SESSION}/exec/stream"): lambda h: h.stream([exit_line()]),
            ("DELETE", f"/v1/sessions/{SESSION}"): lambda h: h.reply(200, session(state="gone")),
            ("DELETE", f"/v1/sessions/{SESSION}/execs/{EXEC}"): lambda h: h.reply(202, {"id": EXEC}),
        }
        fake = self

        class Handler(FakeHandler):
            owner = fake

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def on(self, method, path, answer):
        self.replies[method, path] = answer

    def stream(self, lines, **how):
        self.on("POST", f"/v1/sessions/{SESSION}/exec/stream", lambda h: h.stream(lines, **how))

    def note(self, request):
        with self.came:
            self.requests.append(request)
            self.came.notify_all()

    def wait_for(self, method, path, seconds=10):
        """The body of the first such request."""
        end = time.monotonic() + seconds
        with self.came:
            while True:
                for m, p, body in self.requests:
                    if (m, p.split("?")[0]) == (method, path):
                        return body
                left = end - time.monotonic()
                assert left > 0, f"no {method} {path} came: {self.seen()}"
                self.came.wait(left)

    def seen(self):
        return [f"{method} {path}" for method, path, _ in self.requests]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class FakeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner = None

    def body(self):
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def handle_expect_100(self):
        return True  # body() says it

    def handle_any(self):
        body = self.body()
        self.query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        is_json = self.headers.get("Content-Type") == "application/json"
        self.json = json.loads(body) if body and is_json else None
        self.owner.note((self.command, self.path, self.json if is_json or not body else body))
        answer = self.owner.replies.get((self.command, self.path.split("?")[0]))
        if answer:
            answer(self)
        else:
            self.reply(404, error("not_found", "no such path"))

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def reply(self, status, value):
        self.raw(status, json.dumps(value).encode())

    def raw(self, status, content, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, lines, cut=False, hang=False):
        """Each line a chunk; a line is sent as it is when it is bytes. cut: the connection breaks after them."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("X-Exec-Id", EXEC)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if hang:
            self.owner.released.wait(60)
        if cut or hang:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def hang(self):
        self.owner.released.wait(60)
        self.close_connection = True

    def log_message(self, *args):
        pass
