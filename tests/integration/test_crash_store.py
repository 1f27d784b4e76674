"""The disk of the store is full, read-only, or takes too long: no command runs whose row is not stored, and sessions can still be deleted."""
import contextlib, os, pathlib, shutil, subprocess, tempfile, time

import pytest

from berthd import Berthd, wait_for
from crash import GATED, await_end, is_gone, later, nothing_left, store_stands, workspace


class Disk:
    """A small file system of its own below `data`."""

    def __init__(self, data):
        self.dir = pathlib.Path(data) / "state"
        self.image = pathlib.Path(data) / "disk"
        self.dir.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(64 << 20)
        self.run("mkfs.ext4", "-q", self.image)
        self.mount()

    def run(self, *argv, ok=(0,)):
        r = subprocess.run([str(a) for a in argv], timeout=60, capture_output=True, text=True)
        assert r.returncode in ok, (argv, r)
        return r.stdout.strip()

    def mount(self):
        self.run("mount", "-o", "loop,errors=remount-ro", self.image, self.dir)

    def umount(self):
        self.run("umount", self.dir)

    def repair(self):
        """As after a reboot: unmounted, checked, mounted."""
        self.umount()
        # a container that is being made has it for a moment longer, in its copy of the mounts
        wait_for(lambda: not self.run("losetup", "-j", self.image))
        self.run("fsck.ext4", "-y", self.image, ok=(0, 1))
        self.mount()

    def fill(self):
        with open(self.dir / "ballast", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(b"x" * 4096)

    def free(self):
        (self.dir / "ballast").unlink()

    def break_(self):
        """The kernel makes it read-only, as after an error of the medium."""
        device = self.run("findmnt", "-no", "SOURCE", self.dir)
        with contextlib.suppress(OSError):
            pathlib.Path(f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error").write_text("1")


@pytest.fixture
def on_disk(engine):
    data = tempfile.mkdtemp(prefix="berthd-", dir="/var/tmp")
    disk = Disk(data)
    b = Berthd(engine, data=data)
    b.disk = disk
    try:
        b.start()
        yield b
        b.destroy()
    finally:
        b.stop()
        disk.umount()
        shutil.rmtree(data, ignore_errors=True)


def refuses(berthd, session):
    """New commands and sessions are 503, and nothing of them happens; what only reads works."""
    before = berthd.engine.remains(berthd.instance)
    for path, body in ((f"/v1/sessions/{session}/exec", {"command": "touch ran"}), ("/v1/sessions", {}),
                       (f"/v1/sessions/{session}/exec/stream", {"command": "touch ran"})):
        r = berthd.call("POST", path, body)
        assert (r.status, r.json["error"]["code"]) == (503, "store_unavailable"), r
    assert session in [s["id"] for s in berthd.sessions()]
    assert berthd.call("GET", f"/v1/sessions/{session}").json["state"] == "ready"
    assert berthd.call("GET", "/health", token=None).status == 503
    assert not workspace(berthd, session).has("ran")
    assert berthd.engine.remains(berthd.instance) == before


def still_deletes(berthd, session):
    assert berthd.call("DELETE", f"/v1/sessions/{session}").status == 200
    assert berthd.call("GET", f"/v1/sessions/{session}").json["state"] == "gone"
    assert berthd.call("DELETE", f"/v1/sessions/{session}").status == 404
    r = berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "true"})
    assert (r.status, r.json["error"]["code"]) == (410, "session_gone"), r


def start_gated(berthd, session):
    reply = later(berthd.call, "POST", f"/v1/sessions/{session}/exec", {"command": GATED})
    files = workspace(berthd, session)
    files.await_file("started")
    return reply, files


def test_a_full_disk_refuses_what_is_new_and_goes_on_when_it_has_room(on_disk):
    kept, deleted = on_disk.create()["id"], on_disk.create()["id"]
    running, files = start_gated(on_disk, kept)
    on_disk.disk.fill()
    refuses(on_disk, kept)
    files.touch("go")  # what runs ends, and says so
    reply = running.result(30).json
    assert (reply["output"], reply["exit_code"]) == ("before\nafter\n", 7)
    still_deletes(on_disk, deleted)
    on_disk.disk.free()
    wait_for(lambda: on_disk.call("GET", "/health", token=None).status == 200)
    assert on_disk.sh(kept, "ls") == "count\ngo\nstarted\n"
    wait_for(lambda: on_disk.rows("SELECT reason FROM exec WHERE id = ?", reply["id"])[0]["reason"] == "exited")
    assert on_disk.rows("SELECT state, reason FROM session WHERE id = ?", deleted)[0] == {"state": "gone", "reason": "deleted"}
    assert on_disk.call("DELETE", f"/v1/sessions/{kept}").status == 200
    nothing_left(on_disk)


def test_a_read_only_disk_refuses_what_is_new_and_still_deletes(on_disk):
    kept, deleted = on_disk.create()["id"], on_disk.create()["id"]
    running, files = start_gated(on_disk, kept)
    on_disk.disk.break_()
    refuses(on_disk, kept)
    files.touch("go")
    assert running.result(30).json["exit_code"] == 7
    still_deletes(on_disk, deleted)
    on_disk.stop()
    on_disk.disk.repair()
    on_disk.start()
    assert on_disk.sh(kept, "cat count") == "x\n"
    assert await_end(on_disk, kept, running.result().json["id"])["output"] == "before\nafter\n"
    assert is_gone(on_disk, deleted)["reason"]  # the store has not heard of its deletion
    assert on_disk.call("DELETE", f"/v1/sessions/{kept}").status == 200
    nothing_left(on_disk)


def test_a_store_that_cannot_write_in_time_refuses_the_command(own_berthd):
    session = own_berthd.start().create()["id"]
    own_berthd.sh(session, "true")
    with store_stands(own_berthd):
        began = time.monotonic()
        r = own_berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "touch ran"}, headers={"Idempotency-Key": "k"})
        assert (r.status, r.json["error"]["code"]) == (503, "store_unavailable"), r
        assert time.monotonic() - began < 20
    assert own_berthd.sh(session, "ls") == ""
    wait_for(lambda: not own_berthd.rows("SELECT id FROM exec WHERE ended_ms = 0"))
    r = own_berthd.call("POST", f"/v1/sessions/{session}/exec", {"command": "touch ran"}, headers={"Idempotency-Key": "k"})
    assert (r.status, r.json["exit_code"]) == (200, 0), r  # what never ran does not use up its key
    assert own_berthd.sh(session, "ls") == "ran\n"
