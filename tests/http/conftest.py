# SPDX-License-Identifier: MIT
"""The server under test: the HTTP side over a manager without an engine (GUARD_SERVER names the program), or a
real berthd whose address and admin token are given by BERTH_URL and BERTH_TOKEN."""
import http.client
import json
import os
import signal
import socket
import subprocess
import urllib.parse

import pytest

ADMIN = "admin-token-of-the-http-tests"


class Reply:
    """One HTTP response: status, headers (lower-case names), body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


class Server:
    def __init__(self, host, port, admin, process=None):
        self.host, self.port, self.admin, self.process = host, port, admin, process

    def connect(self, timeout=20):
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def ask(self, method, path, body=None, token=None, headers=None, timeout=40):
        """A well-formed request; body: an object, or bytes as they are."""
        sent = {} if token is None else {"Authorization": "Bearer " + token}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent.update(headers or {})
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def raw(self, data, timeout=20):
        """Sends bytes as they are and reads until the server closes: (first response, the rest)."""
        with self.connect(timeout) as s:
            s.sendall(data)
            return parse(read_all(s))

    def head(self, line, *headers, body=b""):
        """The bytes of a request with the admin token and the given header lines."""
        lines = [line, f"Authorization: Bearer {self.admin}", *headers, "", ""]
        return "\r\n".join(lines).encode("latin-1") + body


def read_all(s):
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def unchunk(data):
    """(the body, what follows it); it must have its end."""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        assert data[length:length + 2] == b"\r\n", data[:200]
        body, data = body + data[:length], data[length + 2:]
        if not length:
            return body, data


def parse(data):
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head:
        return None, b""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body, rest = unchunk(rest)
        return Reply(int(first.split()[1]), headers, body), rest
    length = int(headers.get("content-length", len(rest)))
    return Reply(int(first.split()[1]), headers, rest[:length]), rest[length:]


def start(limit, log):
    process = subprocess.Popen([os.environ["GUARD_SERVER"], ADMIN, str(limit)], stdout=subprocess.PIPE, stderr=log)
    port = int(process.stdout.readline().split()[1])
    log.flush()
    # What else it prints goes nowhere: the pipe must not fill.
    subprocess.Popen(["cat"], stdin=process.stdout, stdout=log)
    return Server("127.0.0.1", port, ADMIN, process)


def stop(server):
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(timeout=20)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if url := os.environ.get("BERTH_URL"):
        parts = urllib.parse.urlparse(url)
        yield Server(parts.hostname, parts.port, os.environ["BERTH_TOKEN"])
        return
    with open(tmp_path_factory.mktemp("log") / "server", "wb") as log:
        made = start(200, log)
        yield made
        assert stop(made) == 0


@pytest.fixture
def own_server(tmp_path):
    """A server with room for 4 connections that a test may stop itself; only over the fake manager."""
    if "GUARD_SERVER" not in os.environ:
        pytest.skip("needs GUARD_SERVER")
    with open(tmp_path / "log", "wb") as log:
        made = start(4, log)
        yield made
        if made.process.poll() is None:
            assert stop(made) == 0


@pytest.fixture(scope="session")
def session(server):
    """A session's JSON, its token included."""
    made = server.ask("POST", "/v1/sessions", {"name": "http-tests"}, server.admin)
    assert made.status == 201, made.body
    yield made.json
    server.ask("DELETE", "/v1/sessions/" + made.json["id"], token=server.admin)


@pytest.fixture(scope="session")
def neighbour(server):
    made = server.ask("POST", "/v1/sessions", {}, server.admin)
    assert made.status == 201, made.body
    yield made.json
    server.ask("DELETE", "/v1/sessions/" + made.json["id"], token=server.admin)
