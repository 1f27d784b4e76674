"""What Berth costs, against the alternatives, in one run: `make bench`. The aims stand in AIMS; docs/PERFORMANCE.md explains.

The measuring itself is done by the C client beside this file; here is what is measured, and the table.
"""
import concurrent.futures, contextlib, json, os, pathlib, platform, re, shutil, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from berthd import BUILD, IMAGE, TOKEN, TOP, Berthd, Engine, wait_for  # noqa: E402

QUICK = bool(os.environ.get("BENCH_QUICK"))
KIND = os.environ.get("BENCH_ENGINE", "docker")
SESSIONS = 20 if QUICK else 50
CROWD = 500  # commands at once for the manager's peak
BYTES = (20 if QUICK else 200) * 1000 * 1000
MIB = 1024
COMMAND = ["bash", "-c", ":"]


def few(full, quick):
    return quick if QUICK else full


class Series:
    """Of one figure: milliseconds, or a single value of another unit."""

    def __init__(self, values):
        self.values = sorted(values)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def p99(self):
        return self.values[min(len(self.values) - 1, int(len(self.values) * 0.99))]


class Table:
    """Rows as they come, and all of them once more at the end."""

    head = ("what", "berth", "p99", "alternative", "median", "p99", "ratio", "aim", "")
    layout = "{:<46} {:>9} {:>9}   {:<34} {:>9} {:>9} {:>8}  {:<22} {}"

    def __init__(self):
        self.rows = []

    def add(self, what, ours, other=None, theirs=None, aim=None, most=None, unit="ms"):
        """The aim as words, and what it means in the row's unit: ours at most `most`."""
        row = {"what": what, "unit": unit, "berth": ours.median, "berth_p99": ours.p99, "count": len(ours.values)}
        if theirs:
            row |= {"alternative": other, "median": theirs.median, "p99": theirs.p99, "ratio": ours.median / theirs.median}
        if aim:
            row |= {"aim": aim, "most": most, "ok": ours.median <= most}
        self.rows.append(row)
        print(self.line(row), flush=True)

    def line(self, row):
        def number(key):
            return f"{row[key]:.2f}" if row.get(key) is not None else ""
        name = f"{row['what']}, {row['unit']}"
        verdict = {True: "ok", False: "OVER", None: ""}[row.get("ok")]
        ratio = f"{row['ratio']:.3f}" if "ratio" in row else ""
        return self.layout.format(name, number("berth"), number("berth_p99"), row.get("alternative", ""), number("median"),
                                  number("p99"), ratio, row.get("aim", ""), verdict).rstrip()

    def markdown(self):
        """The rows with an alternative or an aim, for docs/PERFORMANCE.md."""
        lines = ["| what | berth (p99) | alternative | its median (p99) | ratio | aim | |", "| --- | --: | --- | --: | --: | --- | --- |"]
        name = ""
        for r in self.rows:
            name = name if r["what"] == "  the same" else r["what"].strip()
            ours, theirs = f"{r['berth']:.2f} {r['unit']} ({r['berth_p99']:.2f})", f"{r['median']:.2f} ({r['p99']:.2f})" if "ratio" in r else ""
            ours = ours if r["count"] > 1 else f"{r['berth']:.2f} {r['unit']}"
            verdict = {True: "ok", False: "**over**", None: ""}[r.get("ok")]
            ratio = f"{r['ratio']:.2f}" if "ratio" in r else ""
            lines.append(f"| {name} | {ours} | {r.get('alternative', '')} | {theirs} | {ratio} | {r.get('aim', '')} | {verdict} |")
        return "\n".join(lines) + "\n"

    def print_all(self):
        head = self.layout.format(*self.head)
        print("\n" + head + "\n" + "-" * len(head))
        for row in self.rows:
            print(self.line(row))


class Client:
    """The C program, with the options that stay the same."""

    def __init__(self, berthd, engine, sessions):
        self.sessions = sessions
        self.container = berthd.container_of(sessions[0])
        self.options = ["--berth", f"127.0.0.1:{berthd.port}", "--token", TOKEN, "--engine", engine.path, "--container",
                        self.container, "--image", IMAGE, "--dir", str(berthd.data / "state")]

    def run(self, *words, sessions=None, command=None, cli=None, size=None, process=None):
        argv = [str(BUILD / "tests/bench/client"), *self.options]
        for s in sessions or self.sessions[:1]:
            argv += ["--session", s]
        argv += ["--command", json.dumps(command)] if command else []
        argv += ["--cli", " ".join(cli)] if cli else []
        argv += ["--bytes", str(size)] if size else []
        argv += ["--process", process] if process else []
        out = subprocess.run(argv + [str(w) for w in words], stdout=subprocess.PIPE, text=True, timeout=200)
        if out.returncode:
            raise SystemExit(f"bench: the client failed at {' '.join(map(str, words))}")
        return {name: Series(int(v) / 1000 for v in values) for name, *values in (line.split() for line in out.stdout.splitlines())}


def cli_of(engine, container):
    """The engine's own command line, where there is one: (its name, its argv)."""
    words = {"docker": ["docker", "-H"], "podman": ["podman", "--remote", "--url"]}[engine.kind]
    if not shutil.which(words[0]):
        return None, None
    return f"{words[0]} exec", [*words, engine.address, "exec", container, *COMMAND]


# ---- what is measured ----

def measure_exec(table, client, engine):
    rounds = few(1000, 100)
    name, cli = cli_of(engine, client.container)
    works = ["berth", "spawn", "spawn-and-flush", "flush", "engine/10"] + (["cli/10"] if cli else [])
    got = client.run("rounds", rounds, *works, cli=cli)
    both = got["spawn-and-flush"]
    table.add("exec of bash -c :", got["berth"], "fork+exec + fdatasync", both, "<= 2 x", 2 * both.median)
    table.add("  the same", got["berth"], "fork+exec", got["spawn"])
    table.add("  the same", got["berth"], "engine API: create, start, EOF", got["engine"])
    if cli:
        table.add("  the same", got["berth"], name, got["cli"], "<= 1/30", got["cli"].median / 30)
    table.add("  fdatasync of 4 KiB in the data folder", got["flush"])


def measure_bursts(table, client):
    for lanes, spread, rounds, aim in ((50, 5, few(20, 5), True), (100, 1, few(10, 3), False), (100, 20, few(10, 3), False)):
        got = client.run("burst", rounds, lanes, "berth", "spawn", sessions=client.sessions[:spread])
        ours, theirs = got["berth.all"], got["spawn.all"]
        what = f"{lanes} at once, {spread} session{'s' * (spread > 1)}"
        table.add(f"{what}: all", ours, f"{lanes} x fork+exec at once", theirs, *(("<= 2 x", 2 * theirs.median) if aim else ()))
        table.add(f"{what}: each", got["berth.each"], "the same", got["spawn.each"])


def measure_create(table, client):
    got = client.run("rounds", few(15, 4), "session", "container")
    theirs = got["container"]
    table.add("create to the end of the first exec", got["session"], "engine: create, start, exec", theirs, "<= it + 30 ms", theirs.median + 30)


def measure_stream(table, client, berthd):
    text = "The quick brown fox jumps over the lazy dog"
    berthd.sh(client.sessions[0], f"yes '{text}' | head -c {BYTES} >/tmp/text", timeout_s=120)
    try:
        got = client.run("rounds", few(5, 3), "stream-base64", "stream-utf8", "stream-engine", command=["cat", "/tmp/text"], size=BYTES)
    finally:
        berthd.sh(client.sessions[0], "rm /tmp/text")
    theirs = got["stream-engine"]
    for encoding in ("base64", "utf8"):
        table.add(f"stdout of {BYTES // 1000000} MB, {encoding}", got[f"stream-{encoding}"], "engine's exec stream", theirs, "<= 1 / 0.6 x", theirs.median / 0.6)


# ---- files and processes ----

class Mover:
    """Whole transfers, timed from outside: by curl through Berth, by the engine's own command line without it."""

    def __init__(self, berthd, engine, session, container):
        self.base = f"http://127.0.0.1:{berthd.port}/v1/sessions/{session}"
        self.engine = {"docker": ["docker", "-H", engine.address], "podman": ["podman", "--remote", "--url", engine.address]}[engine.kind]
        self.container = container

    @staticmethod
    def time(argv, given=None, taken=None):
        start = time.monotonic()
        with open(given or os.devnull, "rb") as stdin, open(taken or os.devnull, "wb") as stdout:
            done = subprocess.run(argv, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=300)
        if done.returncode:
            raise SystemExit(f"bench: {' '.join(argv)}: {done.stderr.decode(errors='replace')[-300:]}")
        return (time.monotonic() - start) * 1000

    def get(self, path, taken=None):
        return self.time(["curl", "-sSf", "-H", f"Authorization: Bearer {TOKEN}", self.base + path], taken=taken)

    def put(self, path, file):
        return self.time(["curl", "-sSf", "-H", f"Authorization: Bearer {TOKEN}", "-T", str(file), self.base + path])

    def exec(self, command, given=None, taken=None):
        return self.time([*self.engine, "exec", "-i", self.container, "sh", "-c", command], given, taken)

    def cp(self, *words, given=None, taken=None):
        return self.time([*self.engine, "cp", *words], given, taken)


def turns(count, **ways):
    """Each way in turn, so many times: {name: Series}."""
    got = {name: [] for name in ways}
    for _ in range(count):
        for name, way in ways.items():
            got[name].append(way())
    return {name: Series(values) for name, values in got.items()}


def measure_small_files(table, client, berthd):
    rounds = few(500, 50)
    started = berthd.call("POST", f"/v1/sessions/{client.sessions[0]}/processes", {"command": "echo hello; sleep 600"}).json
    berthd.call("POST", f"/v1/sessions/{client.sessions[0]}/files/upload", {"files": [{"path": "small", "content_b64": ""}]})
    got = client.run("rounds", rounds, "file-write", "file-read", "poll/1", "spawn", "flush", process=started["id"])
    table.add("write of a 4 KiB file", got["file-write"], "fork+exec", got["spawn"], "<= 3 ms", 3)
    table.add("read of a 4 KiB file", got["file-read"], "fork+exec", got["spawn"], "<= 3 ms", 3)
    reset_peak(berthd.process.pid)
    polls = client.run("rounds", few(1000, 100), "poll", process=started["id"])["poll"]
    table.add("poll of a process, 1,000 in a row", polls, "fork+exec", got["spawn"])
    table.add("  manager: peak RSS meanwhile", mib(status_kib(berthd.process.pid, "VmHWM")), unit="MiB")
    berthd.call("DELETE", f"/v1/sessions/{client.sessions[0]}/processes/{started['id']}?grace_s=0")


def measure_large_file(table, mover, berthd, folder):
    """Up is to the disk, down from the page cache, on both sides."""
    size, name = (100 if QUICK else 1000) * 1000 * 1000, "100 MB" if QUICK else "1 GB"
    (folder / "large").write_bytes(os.urandom(1 << 20) * (size >> 20))
    reset_peak(berthd.process.pid)
    got = turns(few(3, 2), up=lambda: mover.put("/files/content?path=large", folder / "large"),
                up_engine=lambda: mover.exec("cat >/workspace/other && sync -d /workspace/other", folder / "large"),
                down=lambda: mover.get("/files/content?path=large"), down_engine=lambda: mover.exec("cat /workspace/other"))
    for way in ("up", "down"):
        theirs = got[f"{way}_engine"]
        table.add(f"{name} {way}", got[way], "engine's exec -i, cat", theirs, "<= 1 / 0.6 x", theirs.median / 0.6)
    table.add("  manager: peak RSS meanwhile", mib(status_kib(berthd.process.pid, "VmHWM")), unit="MiB")
    mover.exec("rm -f /workspace/large /workspace/other")


def measure_archive(table, mover, berthd, folder):
    count = few(20000, 2000)
    berthd.sh(mover.base.rsplit("/", 1)[1], f"mkdir -p repo && cd repo && for d in $(seq 100); do mkdir -p d$d; done && "
              f"seq {count} | while read -r n; do echo line $n >d$((n % 100 + 1))/f$n; done", timeout_s=300)
    reset_peak(berthd.process.pid)
    pack = turns(few(3, 2), berth=lambda: mover.get("/files/archive?path=repo", taken=folder / "repo.tar.gz"),
                 tar=lambda: mover.exec("tar cz -C /workspace/repo .", taken=folder / "other.tar.gz"),
                 cp=lambda: mover.cp(f"{mover.container}:/workspace/repo", "-", taken=folder / "repo.tar"))
    unpack = turns(few(3, 2), berth=lambda: mover.put("/files/archive?path=new", folder / "repo.tar.gz"),
                   tar=lambda: mover.exec("mkdir -p /workspace/old && tar xz -C /workspace/old", folder / "other.tar.gz"),
                   cp=lambda: mover.cp("-", f"{mover.container}:/workspace", given=folder / "repo.tar"))
    for what, got in ((f"archive of {count} files out", pack), ("  the same in", unpack)):
        table.add(what, got["berth"], "tar in the engine's exec", got["tar"])
        table.add("  the same", got["berth"], "the engine's cp (not packed)", got["cp"])
    table.add("  manager: peak RSS meanwhile", mib(status_kib(berthd.process.pid, "VmHWM")), unit="MiB")
    mover.exec("rm -rf /workspace/repo /workspace/new /workspace/old")


def measure_files(table, client, berthd, engine):
    measure_small_files(table, client, berthd)
    if not cli_of(engine, client.container)[1]:
        return print("no command line of the engine: large files and archives are not compared")
    mover = Mover(berthd, engine, client.sessions[0], client.container)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="berth-bench-") as folder:
        measure_large_file(table, mover, berthd, pathlib.Path(folder))
        measure_archive(table, mover, berthd, pathlib.Path(folder))


# ---- memory ----

def status_kib(pid, name):
    return int(re.search(rf"{name}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def mib(kib):
    return Series([kib / MIB])


def reset_peak(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def measure_peak(table, client, berthd):
    """All of them run at the same time: each waits longer than it takes to start them."""
    reset_peak(berthd.process.pid)
    client.run("burst", 1, CROWD, "berth", sessions=client.sessions, command=["sleep", "4"])
    table.add(f"manager: peak RSS, {CROWD} execs at once", mib(status_kib(berthd.process.pid, "VmHWM")), aim="<= 64 MiB", most=64, unit="MiB")


def measure_agent(table, client, berthd, engine):
    def pid_of(session):
        return engine.inspect(berthd.container_of(session))["State"]["Pid"]
    idle, busy = pid_of(client.sessions[-1]), client.sessions[-2]
    table.add("agent: RSS idle", mib(status_kib(idle, "VmRSS")), aim="<= 1 MiB", most=1, unit="MiB")
    table.add("  of it private", mib(status_kib(idle, "RssAnon")), unit="MiB")
    client.run("burst", 1, 64, "berth", sessions=[busy], command=["sleep", "2"])
    table.add("agent: peak RSS, 64 jobs", mib(status_kib(pid_of(busy), "VmHWM")), aim="<= 1 MiB", most=1, unit="MiB")
    table.add("agent: binary", mib((BUILD / "berth-agent").stat().st_size / 1024), aim="<= 1.5 MiB", most=1.5, unit="MiB")


def measure_restart(table, client, berthd, exec_ms):
    """kill -9 and start: until one session answers, and until all do."""
    at_once = client.run("burst", few(3, 1), SESSIONS, "engine")["engine.all"]
    berthd.kill()
    start = time.monotonic()
    berthd.start()
    berthd.exec(client.sessions[-1], COMMAND)
    first = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda s: berthd.exec(s, COMMAND), client.sessions))
    last = time.monotonic()
    allowed = SESSIONS * exec_ms / 4
    table.add(f"start with {SESSIONS} sessions: one answers", Series([(first - start) * 1000]), aim="<= 1 s", most=1000)
    every = Series([(last - start) * 1000])
    table.add(f"start with {SESSIONS} sessions: all answer", every, f"{SESSIONS} engine execs / 4", Series([allowed]), "<= 1 x", allowed)
    table.add("  the same", every, f"{SESSIONS} engine execs at once", at_once)


# ---- the run ----

def create_sessions(berthd):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [s["id"] for s in pool.map(lambda _: berthd.create(), range(SESSIONS))]


def measure_all(table, berthd, engine):
    rss = status_kib(berthd.process.pid, "VmRSS")
    table.add("manager: RSS without sessions", mib(rss), unit="MiB")
    sessions = create_sessions(berthd)
    client = Client(berthd, engine, sessions)
    table.add(f"manager: RSS, {SESSIONS} idle sessions", mib(status_kib(berthd.process.pid, "VmRSS")), aim="<= 25 MiB", most=25, unit="MiB")
    measure_exec(table, client, engine)
    measure_bursts(table, client)
    measure_create(table, client)
    measure_stream(table, client, berthd)
    measure_files(table, client, berthd, engine)
    measure_peak(table, client, berthd)
    measure_agent(table, client, berthd, engine)
    engine_exec = next(r["median"] for r in table.rows if r.get("alternative", "").startswith("engine API"))
    measure_restart(table, client, berthd, engine_exec)


def start_engine():
    script = TOP / "tests/engines" / f"{KIND}.sh"
    out = subprocess.run([str(script), "start"], check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
    address = next(w for w in out.split() if w.startswith("unix://"))
    subprocess.run(["make", "-s", "image"], cwd=TOP, check=True, timeout=1200, env={**os.environ, "SANDBOX_ENGINE": address})
    return Engine(KIND, address, script)


def machine(engine):
    version = engine.call("GET", "/version")
    return {"engine": f"{KIND} {version['Version']}", "kernel": platform.release(), "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1), "quick": QUICK, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def main():
    if KIND not in ("docker", "podman"):
        raise SystemExit("bench: BENCH_ENGINE is docker or podman")
    start = time.monotonic()
    engine, table = start_engine(), Table()
    about = machine(engine)
    print(", ".join(f"{k} {v}" for k, v in about.items()))
    if about["load"] > about["cpus"] / 2:
        print("the machine is busy: the ratios hold better than the times, and neither holds well")
    with contextlib.ExitStack() as stack:
        berthd = Berthd(engine, SANDBOX_MAX_CONCURRENCY=100)
        stack.callback(berthd.destroy)
        berthd.start()
        measure_all(table, berthd, engine)
    table.print_all()
    over = sum(row.get("ok") is False for row in table.rows)
    (TOP / "build/bench.json").write_text(json.dumps({"machine": about, "rows": table.rows}, indent=1) + "\n")
    (TOP / "build/bench.md").write_text(table.markdown())
    print(f"\n{over} over their aim; {time.monotonic() - start:.0f} s; build/bench.json, build/bench.md")


if __name__ == "__main__":
    main()
