"""The agent's protocol as a test speaks it (runtime/protocol/protocol.h), and an agent to speak to.

Sandbox is a berth-agent as PID 1 of fresh namespaces, without an engine. Link is one stream to it
through a bridge, entered from outside as an engine's exec does.
"""
import collections
import dataclasses
import itertools
import os
import queue
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

MAGIC, VERSION = 0x4265727468, 1
PAYLOAD_MAX, JOB_WINDOW, LINK_WINDOW = 32768, 128 * 1024, 256 * 1024
STDIN, STDOUT, STDERR = 0, 1, 2
MORE = 1
BLOCK, ENDS, RING = 0, 1, 2
JOB_STDIN, JOB_SPLIT = 1, 2
REASONS = ["exited", "signalled", "timeout", "output_limit", "oom", "cancelled", "sandbox_lost", "start_failed"]
TYPES = ("HELLO START GO STARTED DATA WINDOW EOF GAP SIGNAL CANCEL ATTACH LIST EXIT FORGET ERROR PING PONG "
         "READ CHUNK").split()
HEADER = os.path.join(os.path.dirname(__file__), "../../runtime/protocol/protocol.h")


def _tags():
    """The numbers of enum proto_tag, read from the header so that there is one list of them."""
    body = re.search(r"enum proto_tag \{(.*?)\};", open(HEADER).read(), re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    tags, value = {}, 0
    for name, given in re.findall(r"PROTO_F_(\w+)(?:\s*=\s*(\d+))?", body):
        value = int(given) if given else value + 1
        tags[name] = value
    return tags


TAG = _tags()
NAME = {number: name for name, number in TAG.items()}
BYTES_TAGS = {"AGENT", "BUILD", "DETAIL", "MOUNT", "INTERFACE", "PATH", "FSTYPE", "TAG", "ARG", "SCRIPT", "SHELL",
              "ENV", "CWD", "BUILTIN", "ENTRY", "DONE", "TARGET", "CHUNK"}
REPEATED = {"MOUNT", "INTERFACE", "ARG", "ENV"}


def field(name, value):
    if isinstance(value, int):
        value = struct.pack(">Q", value)
    elif isinstance(value, str):
        value = value.encode()
    return struct.pack(">HI", TAG[name], len(value)) + value


def fields(payload):
    """A field list as a dict; repeated ones as lists."""
    out, at = collections.defaultdict(list), 0
    while at < len(payload):
        tag, size = struct.unpack_from(">HI", payload, at)
        value = payload[at + 6:at + 6 + size]
        assert len(value) == size, "the agent sent a broken field list"
        at += 6 + size
        name = NAME.get(tag, tag)
        if name not in BYTES_TAGS:
            value = struct.unpack(">Q", value)[0]
        out[name].append(value)
    return {k: v if k in REPEATED else v[0] for k, v in out.items()}


TYPE_NAMES = ["", "file", "dir", "symlink", "fifo", "socket", "char", "block"]


def records(output):
    """What a built-in said (runtime/protocol/builtin.h): its entries, its end or None, and the raw bytes behind."""
    entries, done, at = [], None, 0
    while at + 6 <= len(output):
        tag, size = struct.unpack_from(">HI", output, at)
        if NAME.get(tag) not in ("ENTRY", "DONE"):
            break
        value = fields(output[at + 6:at + 6 + size])
        at += 6 + size
        if NAME[tag] == "DONE":
            done = value
            break
        for key, absent in (("PATH", None), ("ERRNO", 0), ("SIZE", 0), ("MODE", 0), ("TYPE", 0), ("MTIME_NS", 0)):
            value.setdefault(key, absent)
        value["TYPE"] = TYPE_NAMES[value["TYPE"]]
        entries.append(value)
    return entries, done, output[at:]


def frame(type_name, aux=0, job=0, payload=b""):
    return struct.pack(">BBHI", TYPES.index(type_name) + 1, aux, len(payload), job) + payload


@dataclasses.dataclass
class Frame:
    type: str
    aux: int
    job: int
    payload: bytes

    @property
    def fields(self):
        return fields(self.payload)


@dataclasses.dataclass
class Result:
    started: bool = False
    pid: int = 0
    out: dict = dataclasses.field(default_factory=lambda: {STDOUT: bytearray(), STDERR: bytearray()})
    gaps: list = dataclasses.field(default_factory=list)  # (stream, offset in out, bytes)
    eof: set = dataclasses.field(default_factory=set)
    exit: dict = None

    @property
    def stdout(self):
        return bytes(self.out[STDOUT])

    @property
    def stderr(self):
        return bytes(self.out[STDERR])

    @property
    def reason(self):
        return REASONS[self.exit["REASON"]]

    @property
    def code(self):
        return self.exit.get("CODE")

    @property
    def detail(self):
        return self.exit.get("DETAIL", b"").decode()


def spec(argv=None, script=None, shell="bash", env=("PATH=/usr/bin:/bin",), cwd="/", timeout_ms=20000, keep=BLOCK,
         head=0, tail=65536, flags=0, tag="t", builtin=None):
    parts = [field("TAG", tag), field("TIMEOUT_MS", timeout_ms), field("KEEP", keep), field("HEAD", head),
             field("TAIL", tail), field("JOB_FLAGS", flags)]
    if cwd is not None:
        parts.append(field("CWD", cwd))
    if builtin is not None:
        parts.append(field("BUILTIN", builtin))
    parts += [field("ARG", a) for a in argv or []]
    parts += [field("ENV", e) for e in env]
    if script is not None:
        parts += [field("SCRIPT", script), field("SHELL", shell)]
    return b"".join(parts)


def wait_for(condition, timeout=5):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.005)


class Closed(Exception):
    pass


class Link:
    """One bridge. A thread reads its frames; credit is given back as they are taken from recv()."""

    def __init__(self, sandbox, generation=None, hello=True, **how):
        self.sandbox = sandbox
        self.process = sandbox.bridge(**how)
        self.frames = queue.Queue()
        self.results = collections.defaultdict(Result)
        self.auto_credit = True
        self.cookies, self.chunks = itertools.count(1), {}
        self.credit = collections.Counter({0: LINK_WINDOW})  # of ours: bytes that may be sent, by job; 0 is the link
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if hello:
            self.generation = generation if generation is not None else sandbox.next_generation()
            self.send("HELLO", payload=field("MAGIC", MAGIC) + field("VERSION", VERSION) +
                      field("GENERATION", self.generation))
            self.hello = self.wait("HELLO").fields

    def _read(self):
        pipe = self.process.stdout
        while True:
            try:
                head = pipe.read(8)
            except (ValueError, ConnectionError):  # closed by close(); a local agent has ended
                head = b""
            if len(head) < 8:
                self.frames.put(None)
                return
            kind, aux, size, job = struct.unpack(">BBHI", head)
            self.frames.put(Frame(TYPES[kind - 1], aux, job, pipe.read(size)))

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, type_name, aux=0, job=0, payload=b""):
        self.send_raw(frame(type_name, aux, job, payload))

    def recv(self, timeout=10):
        try:
            f = self.frames.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if f is None:
            self.frames.put(None)
            raise Closed
        self._take(f)
        return f

    def _take(self, f):
        r = self.results[f.job]
        if f.type == "DATA":
            r.out[f.aux] += f.payload
            if self.auto_credit:
                self.send("WINDOW", 0, 0, field("BYTES", len(f.payload)))
                self.send("WINDOW", f.aux, f.job, field("BYTES", len(f.payload)))
        elif f.type == "WINDOW":
            self.credit[f.job] += f.fields["BYTES"]
        elif f.type == "GAP":
            r.gaps.append((f.aux, len(r.out[f.aux]), f.fields["BYTES"]))
        elif f.type == "EOF":
            r.eof.add(f.aux)
        elif f.type == "STARTED":
            r.started, r.pid = True, f.fields["PID"]
        elif f.type == "EXIT":
            r.exit = f.fields
        elif f.type == "CHUNK":
            chunk = f.fields
            self.chunks[chunk["COOKIE"]] = chunk
            if self.auto_credit and chunk.get("CHUNK"):
                self.send("WINDOW", 0, 0, field("BYTES", len(chunk["CHUNK"])))
        elif f.type == "PING":
            self.send("PONG", payload=f.payload)

    def wait(self, type_name, job=0, timeout=10):
        end = time.monotonic() + timeout
        while True:
            f = self.recv(max(0.01, end - time.monotonic()))
            if f.type == type_name and f.job == job:
                return f

    def wait_closed(self, timeout=10):
        """The frames that came before the end."""
        seen = []
        try:
            while True:
                seen.append(self.recv(timeout))
        except Closed:
            return seen

    def start(self, go=True, piece=PAYLOAD_MAX, raw=None, attach=(), **kw):
        job = self.sandbox.next_job()
        data = raw if raw is not None else spec(**kw)
        pieces = [data[i:i + piece] for i in range(0, len(data), piece)] or [b""]
        for i, p in enumerate(pieces):
            self.send("START", MORE if i + 1 < len(pieces) else 0, job, p)
        for stream in attach:
            self.send("ATTACH", stream, job, field("BYTES", 0))
        if go:
            self.send("GO", job=job)
        return job

    def feed(self, job, data):
        """All of a job's stdin, by credit: bytes, or pieces of them."""
        self.credit[job] = JOB_WINDOW
        for piece in [data] if isinstance(data, bytes) else data:
            at = 0
            while at < len(piece) and self.results[job].exit is None:
                n = min(self.credit[job], self.credit[0], PAYLOAD_MAX, len(piece) - at)
                if n == 0:
                    self.recv(60)
                    continue
                self.send("DATA", STDIN, job, piece[at:at + n])
                self.credit.subtract({0: n, job: n})
                at += n
        self.send("EOF", STDIN, job)

    def finish(self, job, timeout=20):
        if self.results[job].exit is None:
            self.wait("EXIT", job, timeout)
        return self.results[job]

    def run(self, timeout=20, **kw):
        job = self.start(**kw)
        r = self.finish(job, timeout)
        self.send("FORGET", job=job)
        return r

    def sh(self, script, **kw):
        return self.run(script=script, **kw)

    def ping(self, timeout=5):
        cookie = field("COOKIE", time.monotonic_ns())
        begin = time.monotonic()
        self.send("PING", payload=cookie)
        while self.wait("PONG", timeout=timeout).payload != cookie:
            pass
        return time.monotonic() - begin

    def ask(self, job, offset, wait=False):
        """Sends a READ; its cookie."""
        cookie = next(self.cookies)
        self.send("READ", job=job, payload=field("COOKIE", cookie) + field("OFFSET", offset) + field("WAIT", wait))
        return cookie

    def chunk(self, cookie, timeout=10):
        """The answer to a READ."""
        wait_for(lambda: cookie in self.chunks or self.recv(timeout) is None or cookie in self.chunks, timeout)
        return self.chunks.pop(cookie)

    def read(self, job, offset=0, wait=False, timeout=10):
        return self.chunk(self.ask(job, offset, wait), timeout)

    def list(self):
        self.send("LIST")
        jobs = {}
        while True:
            f = self.recv()
            if f.type == "LIST":
                if f.job == 0:
                    return jobs
                jobs[f.job] = f.fields

    def forget_all(self):
        """Ends whatever runs."""
        for job in self.list():
            self.send("CANCEL", job=job, payload=field("GRACE_MS", 0))
        wait_for(lambda: all(f["STATE"] == 2 for f in self.list().values()), 15)
        for job in self.list():
            self.send("FORGET", job=job)
        assert self.list() == {}

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdout.close()


class Sandbox:
    """An agent as PID 1 of namespaces of its own; with limits it gets cgroups of its own (v1 only).
    `wrap` is a command that becomes the agent."""

    def __init__(self, agent, pids=0, memory=0, rundir="/run", wrap=""):
        self.dir = tempfile.mkdtemp(prefix="berth-agent-", dir=rundir)
        os.chmod(self.dir, 0o755)
        self.binary = os.path.join(self.dir, "berth-agent")
        shutil.copy(agent, self.binary)
        os.chmod(self.binary, 0o111)
        self.cgroups = {}
        self._generations, self._jobs = itertools.count(1), itertools.count(1)
        setup = ["mount -t tmpfs -o mode=1777,size=256m tmpfs /tmp"]
        for kind, file, limit in (("pids", "pids.max", pids), ("memory", "memory.limit_in_bytes", memory)):
            if limit:
                path = f"/sys/fs/cgroup/{kind}/{os.path.basename(self.dir)}"
                os.mkdir(path)
                self.cgroups[kind] = path
                with open(os.path.join(path, file), "w") as f:
                    f.write(str(limit))
                setup += [f"echo 0 >{path}/cgroup.procs", f"mount --bind {path} /sys/fs/cgroup/{kind}"]
        setup.append("exec setpriv --reuid 10001 --regid 10001 --clear-groups --bounding-set -all --no-new-privs "
                     + wrap + " " + self.binary)
        self.process = subprocess.Popen(
            ["unshare", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
             "\n".join(setup)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.pid = self._find_init()

    def _find_init(self):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            kids = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
            if kids and open(f"/proc/{kids[0]}/comm").read() == "berth-agent\n":
                if "berth-agent" in open(f"/proc/{kids[0]}/net/unix").read():
                    return int(kids[0])
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read().decode())
            time.sleep(0.005)
        raise RuntimeError("the agent did not come up")

    def next_generation(self):
        return next(self._generations)

    def next_job(self):
        return next(self._jobs)

    def enter(self, argv, uid, **kw):
        return subprocess.Popen(["nsenter", "-t", str(self.pid), "-p", "-m", "-n", "-i", "setpriv", "--reuid", str(uid),
                                 "--regid", str(uid), "--clear-groups", "--no-new-privs", *argv], **kw)

    def bridge(self, uid=10002, argv=None):
        return self.enter(argv or [self.binary, "bridge"], uid, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def status(self, key):
        return re.search(rf"^{key}:\s*(.*)$", open(f"/proc/{self.pid}/status").read(), re.M).group(1)

    def cpu_s(self):
        """What PID 1 has used so far."""
        words = open(f"/proc/{self.pid}/stat").read().rpartition(") ")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def processes(self):
        """Host pids and names of all but PID 1 that have not ended."""
        ns = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(pid) == self.pid or os.readlink(f"/proc/{pid}/ns/pid") != ns:
                    continue
                status = open(f"/proc/{pid}/status").read()
            except OSError:
                continue
            if not re.search(r"^State:\s*[ZX]", status, re.M):
                found[int(pid)] = re.match(r"Name:\s*(.*)", status).group(1)
        return found

    def processes_of_jobs(self):
        """How many processes there are but PID 1, its bridges and its supervisors."""
        return sum(name not in ("berth-agent", "nsenter") for name in self.processes().values())

    def alive(self):
        return self.process.poll() is None

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)
        self.process.stderr.close()
        for path in self.cgroups.values():
            for _ in range(200):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.02)
        shutil.rmtree(self.dir, ignore_errors=True)
