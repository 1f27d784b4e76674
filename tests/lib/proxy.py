"""A proxy before an engine's socket, so that a test meets exact points: it sees each request before the engine does,
each reply before berthd does, and the agent's frames that pass on a hijacked stream.

A hook may do anything (kill berthd, wait for an event) and may return CUT: then both ends of that connection are closed.
"""
import contextlib, os, re, socket, tempfile, threading

from berthproto import TYPES

CUT = "cut"
PIECE = 65536


class Request:
    def __init__(self, head, body):
        self.method, self.path = head.split(b" ", 2)[:2]
        self.method, self.path, self.body = self.method.decode(), self.path.decode(), body.decode(errors="replace")
        self.hijacks = b"upgrade: tcp" in head.lower()

    def __str__(self):
        return f"{self.method} {self.path} {self.body}"


class Rule:
    """What happens at the requests whose text ("METHOD PATH BODY") matches; at most `times` of them."""

    def __init__(self, pattern, before=None, reply=None, times=1):
        self.pattern, self.before, self.reply, self.left = re.compile(pattern, re.S), before, reply, times
        self.hit = threading.Event()


class Proxy:
    def __init__(self, target):
        self.target = target
        self.dir = tempfile.mkdtemp(prefix="berth-proxy-", dir="/var/tmp")
        self.path = os.path.join(self.dir, "engine.sock")
        self.address = f"unix://{self.path}"
        self.lock = threading.Lock()
        self.rules, self.frame_hook, self.pairs, self.requests = [], None, set(), []
        self.gate = threading.Event()  # cleared: the engine hangs
        self.gate.set()
        self.delay_s = 0
        self.listener = None
        self.open()

    # ---- the engine's life, as berthd sees it ----

    def open(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(64)
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self, cut=True):
        """The engine is away: nobody listens. With cut the open connections break, too."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        if cut:
            self.cut_all()

    def cut_all(self):
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            for s in pair:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)

    def destroy(self):
        self.calm()
        with contextlib.suppress(OSError):
            self.close()
        os.rmdir(self.dir)

    def calm(self):
        """No more trouble."""
        with self.lock:
            self.rules.clear()
        self.frame_hook, self.delay_s = None, 0
        self.gate.set()

    # ---- trouble ----

    def rule(self, pattern, before=None, reply=None, times=1):
        rule = Rule(pattern, before, reply, times)
        with self.lock:
            self.rules.append(rule)
        return rule

    def on_frame(self, hook):
        """hook(type, aux, job, forwarded) for each frame from berthd to an agent, before and after it is passed on."""
        self.frame_hook = hook

    def _find(self, request):
        with self.lock:
            self.requests.append(f"{request.method} {request.path}")
            for rule in self.rules:
                if rule.left > 0 and rule.pattern.search(str(request)):
                    rule.left -= 1
                    return rule
        return None

    # ---- one connection ----

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        engine = socket.socket(socket.AF_UNIX)
        pair = (client, engine)
        try:
            engine.connect(self.target)
            with self.lock:
                self.pairs.add(pair)
            state = {"reply": None}
            back = threading.Thread(target=self._back, args=(pair, state), daemon=True)
            back.start()
            self._forth(pair, state)
            with contextlib.suppress(OSError):
                engine.shutdown(socket.SHUT_WR)
            back.join()
        except OSError:
            pass
        finally:
            with self.lock:
                self.pairs.discard(pair)
            client.close()
            engine.close()

    def _break(self, pair):
        for s in pair:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def _forth(self, pair, state):
        client, engine = pair
        have = b""
        while True:
            while b"\r\n\r\n" not in have:
                piece = client.recv(PIECE)
                if not piece:
                    return
                have += piece
            head, have = have.split(b"\r\n\r\n", 1)
            found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
            if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):  # an image goes in: no trouble there
                engine.sendall(head + b"\r\n\r\n" + have)
                return self._raw(client, engine)
            length = int(found.group(1)) if found else 0
            while len(have) < length:
                have += client.recv(PIECE)
            request = Request(head, have[:length])
            whole, have = head + b"\r\n\r\n" + have[:length], have[length:]
            self.gate.wait()
            if self.delay_s:
                threading.Event().wait(self.delay_s)
            rule = self._find(request)
            if rule and rule.before:
                rule.hit.set()
                if rule.before() == CUT:
                    return self._break(pair)
            state["reply"] = rule if rule and rule.reply else None
            engine.sendall(whole)
            if request.hijacks:
                return self._frames(pair, have)

    def _raw(self, source, sink):
        while piece := source.recv(PIECE):
            sink.sendall(piece)

    def _frames(self, pair, have):
        """The agent's protocol (runtime/protocol/protocol.h): 8 bytes of header, then the payload."""
        client, engine = pair
        while True:
            while len(have) < 8 or len(have) < 8 + int.from_bytes(have[2:4], "big"):
                piece = client.recv(PIECE)
                if not piece:
                    return
                have += piece
            size = 8 + int.from_bytes(have[2:4], "big")
            frame, have = have[:size], have[size:]
            what = (TYPES[frame[0] - 1], frame[1], int.from_bytes(frame[4:8], "big"))
            hook = self.frame_hook
            if hook and hook(*what, False) == CUT:
                return self._break(pair)
            engine.sendall(frame)
            if hook and hook(*what, True) == CUT:
                return self._break(pair)

    def _back(self, pair, state):
        client, engine = pair
        with contextlib.suppress(OSError):
            while piece := engine.recv(PIECE):
                rule, state["reply"] = state["reply"], None
                if rule:
                    rule.hit.set()
                    if rule.reply() == CUT:
                        return self._break(pair)
                client.sendall(piece)
        self._break(pair)
