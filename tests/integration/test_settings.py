"""What the administrator lets into sandboxes by settings, seen from inside and from the engine, on both."""
import os, pathlib, shutil, tempfile

import pytest

from berthd import Berthd, wait_for

MINE = "default-session-token-0123456789"
ENV = "env -0 | sort -z | tr '\\0' '\\n' | grep -v ^_="


@pytest.fixture
def host():
    """A folder of the host's, with files to hand in."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="berth-host-", dir="/var/tmp"))
    top.chmod(0o755)
    (top / "kubeconfig").write_text("of the host\n")
    (top / "certs").mkdir()
    (top / "certs/ca.pem").write_text("a certificate\n")
    yield top
    shutil.rmtree(top)


def start(b, **settings):
    b.settings.update(SANDBOX_TOKEN=MINE, ATLAS_SANDBOX_MEM="256m", **settings)
    return b.start()


def run(b, command, ok=True, **more):
    r = b.call("POST", "/exec", {"command": command, **more}, token=MINE)
    assert r.status == 200, r
    assert not ok or r.json["exit_code"] == 0, r
    return r.json["output"]


def container(b):
    row = b.rows("SELECT container FROM session WHERE state = 'ready' AND workspace_name = 'default'")[0]
    return b.engine.inspect(row["container"])


def refused(engine, said, **settings):
    """It does not start, and says why in one line."""
    b = Berthd(engine, SANDBOX_TOKEN=MINE, **settings)
    try:
        b.start(wait=False)
        assert b.process.wait(30) != 0
        lines = b.log.read_text().splitlines()
        assert len(lines) == 1 and all(s in lines[0] for s in said), lines
    finally:
        b.clean()


# ---- the environment ----

def test_the_environment_is_the_images_and_three_more(own_berthd, engine):
    start(own_berthd, SANDBOX_SHELL="bash")
    image = engine.call("GET", "/images/localhost/berth/sandbox:latest/json")["Config"]["Env"]
    names = {v.split("=")[0] for v in image} | {"HOME", "USER", "LANG", "PATH"}
    seen = dict(line.split("=", 1) for line in run(own_berthd, ENV).splitlines())
    assert set(seen) - {"PWD", "SHLVL", "OLDPWD"} == names  # those three are bash's own
    assert (seen["HOME"], seen["USER"], seen["LANG"]) == ("/home/sandbox", "sandbox", "C.UTF-8")


def test_passed_variables_are_the_default_sessions_alone(own_berthd):
    b = start(own_berthd, SANDBOX_PASS_ENV="BERTH_TEST_A, BERTH_TEST_B,BERTH_TEST_S,BERTH_TEST_UNSET", BERTH_TEST_A="a text",
              BERTH_TEST_B="1\n2", BERTH_TEST_S="a well kept secret", BERTH_TEST_C="not passed")
    assert run(b, 'printf "%s|" "$BERTH_TEST_A" "$BERTH_TEST_B" "${BERTH_TEST_C-unset}" "${BERTH_TEST_UNSET-unset}"') == \
        "a text|1\n2|unset|unset|"
    assert run(b, "echo ${#BERTH_TEST_S}") == "18\n"
    assert run(b, 'echo $BERTH_TEST_A', env={"BERTH_TEST_A": "the request's"}) == "the request's\n"
    assert "a well kept" not in str(container(b)) and "a well kept" not in b.log.read_text()
    assert b"a well kept" not in (b.data / "state/berth.db").read_bytes() + (b.data / "state/berth.db-wal").read_bytes()
    other = b.create(limits={"memory_mb": 64})["id"]
    assert b.sh(other, 'echo ${BERTH_TEST_A-unset}') == "unset\n"


@pytest.mark.parametrize("name", ["SANDBOX_TOKEN", "SANDBOX_ADMIN_TOKEN", "SANDBOX_TOKEN_FILE", "SANDBOX_ADMIN_TOKEN_FILE"])
def test_tokens_are_never_passed_or_set(berthd, session, engine, name):
    refused(engine, ["SANDBOX_PASS_ENV", name, "secrets"], SANDBOX_PASS_ENV=f"HOME,{name}")
    for path, body in (f"/v1/sessions/{session}/exec", {"command": "true"}), ("/v1/sessions", {}):
        r = berthd.call("POST", path, {**body, "env": {"A": "b", name: "x"}})
        assert (r.status, r.json["error"]["code"], r.json["error"]["field"]) == (400, "invalid_argument", f"env.{name}")
    assert name not in berthd.sh(session, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")


# ---- mounts ----

def test_mounts_are_read_only_in_the_default_session(own_berthd, host):
    b = start(own_berthd, SANDBOX_MOUNTS=f"kube={host}/kubeconfig:/home/sandbox/.kube/config:ro, certs={host}/certs:/etc/certs:ro")
    assert run(b, "cat ~/.kube/config /etc/certs/ca.pem") == "of the host\na certificate\n"
    for write in "echo x > ~/.kube/config", "echo x > /etc/certs/ca.pem", "touch /etc/certs/new", "rm -f /etc/certs/ca.pem", \
                 "mv ~/.kube/config ~/x", "chmod 777 /etc/certs/ca.pem":
        r = b.call("POST", "/exec", {"command": write}, token=MINE).json
        assert r["exit_code"] not in (0, None), (write, r)
    assert (host / "kubeconfig").read_text() == "of the host\n" and os.listdir(host / "certs") == ["ca.pem"]
    found = {m["Destination"]: m for m in container(b)["Mounts"]}
    for path in "/home/sandbox/.kube/config", "/etc/certs":
        assert found[path]["RW"] is False and found[path]["Type"] == "bind"
    options = run(b, "awk '$5 == \"/etc/certs\" {print $6}' /proc/self/mountinfo").strip().split(",")
    assert "ro" in options
    if b.engine.kind == "podman":  # Docker's API has no word for it; no_new_privs and the devices' cgroup stand in
        assert {"nosuid", "nodev"} <= set(options)
    # A file that changes on the host is seen; one that is mounted below is not.
    (host / "certs/late").write_text("late\n")
    assert run(b, "cat /etc/certs/late") == "late\n"


def test_other_sessions_get_the_mounts_that_are_named(own_berthd, host):
    b = start(own_berthd, SANDBOX_MOUNTS=f"a={host}/kubeconfig:/etc/a:ro,b={host}/certs:/etc/b:ro")
    plain = b.create(limits={"memory_mb": 64})["id"]
    assert b.exec(plain, "ls /etc/a /etc/b")["exit_code"] == 2
    with_a = b.create(limits={"memory_mb": 64}, mounts=["a"])["id"]
    assert b.sh(with_a, "cat /etc/a; ls /etc/b 2>&1 || true").startswith("of the host\nls: cannot access")
    for mounts in ["c"], ["a", "a"], ["/etc/passwd"]:
        r = b.call("POST", "/v1/sessions", {"mounts": mounts})
        assert (r.status, r.json["error"]["field"]) == (400, "mounts")
    row = b.rows("SELECT detail FROM audit WHERE action = 'session.create' AND session = ? AND outcome = 'accepted'", with_a)
    assert row == [{"detail": f"mount {host}/kubeconfig at /etc/a"}]


def test_what_must_not_be_mounted_stops_the_start(engine, host):
    for value, said in {f"a={host}/none:/etc/a:ro": "No such file", f"a={engine.path}:/etc/a:ro": "neither a file nor a folder",
                        f"a={os.path.dirname(engine.path)}:/etc/a:ro": "socket", "a=/:/etc/a:ro": "socket",
                        f"a={host}/certs:/home/sandbox:ro": "/home/sandbox", f"a={host}/certs:/etc/a:rw": "ro"}.items():
        refused(engine, ["SANDBOX_MOUNTS", said], SANDBOX_MOUNTS=value)


# ---- the project's folder ----

def test_a_folder_of_the_host_is_the_workspace(own_berthd, host):
    project = host / "project"
    project.mkdir()
    (project / "README").write_text("mine\n")
    os.chown(project, 12345, 12346)
    os.chown(project / "README", 12345, 12346)
    b = start(own_berthd, ATLAS_PROJECT_DIR=str(project))
    assert run(b, "pwd; cat README; id -u; id -g; echo made > by; mkdir d; stat -c %u:%g ~ /tmp") == \
        "/workspace\nmine\n12345\n12346\n12345:12346\n12345:12346\n"
    st = (project / "by").stat()
    assert (st.st_uid, st.st_gid) == (12345, 12346) and (project / "by").read_text() == "made\n"
    s = b.sessions()[0]
    assert (s["workspace"]["kind"], s["workspace"]["name"]) == ("host", "default")
    r = b.call("DELETE", f"/v1/sessions/{s['id']}?workspace=delete")
    assert (r.status, r.json["error"]["field"]) == (400, "workspace")
    assert (project / "README").read_text() == "mine\n"
    assert run(b, "cat by README") == "made\nmine\n"
    assert b.create(limits={"memory_mb": 64})["workspace"]["kind"] == "volume"


def test_a_user_may_be_named_for_it(own_berthd, host):
    project = host / "project"
    project.mkdir()
    project.chmod(0o777)
    b = start(own_berthd, ATLAS_PROJECT_DIR=str(project), ATLAS_SANDBOX_UID="23456", ATLAS_SANDBOX_GID="23457")
    assert run(b, "id -u; id -g; echo x > f") == "23456\n23457\n"
    assert ((project / "f").stat().st_uid, (project / "f").stat().st_gid) == (23456, 23457)


def test_a_folder_that_its_user_cannot_write_is_no_workspace(own_berthd, host):
    project = host / "project"
    project.mkdir()
    b = start(own_berthd, ATLAS_PROJECT_DIR=str(project), ATLAS_SANDBOX_UID="23456", ATLAS_SANDBOX_GID="23457")
    r = b.call("POST", "/exec", {"command": "true"}, token=MINE)
    assert r.status == 502 and "/workspace" in r.json["error"]["message"], r
    assert b.engine.remains(b.instance) == []


def test_a_project_of_root_or_none_stops_the_start(engine, host):
    refused(engine, ["ATLAS_PROJECT_DIR", "root"], ATLAS_PROJECT_DIR=str(host))
    refused(engine, ["ATLAS_PROJECT_DIR", "No such file"], ATLAS_PROJECT_DIR=str(host / "none"))
    refused(engine, ["ATLAS_SANDBOX_UID", "ATLAS_PROJECT_DIR"], ATLAS_SANDBOX_UID="1000")


# ---- networks ----

@pytest.fixture
def networks(engine):
    """An internal network and one that leads out."""
    made = {}
    for name, internal in ("closed", True), ("open", False):
        made[name] = f"berth-test-{name}-{os.urandom(4).hex()}"
        engine.call("POST", "/networks/create", {"Name": made[name], "Driver": "bridge", "Internal": internal})
    yield made
    for name in made.values():
        engine.call("DELETE", f"/networks/{name}", ok=(200, 204, 404))


def interfaces(b, session):
    return set(b.sh(session, "ls /sys/class/net").split())


def test_a_session_gets_a_listed_network_that_leads_nowhere(networks, own_berthd):
    b = start(own_berthd, SANDBOX_NETWORKS=f"{networks['closed']},{networks['open']},nowhere")
    s = b.create(limits={"memory_mb": 64}, network=networks["closed"])
    assert s["network"] == networks["closed"] and len(interfaces(b, s["id"])) == 2
    other = b.create(limits={"memory_mb": 64}, network=networks["closed"])["id"]
    address = b.sh(other, "ip -4 -o addr show scope global | awk '{sub(\"/.*\", \"\", $4); print $4}'").strip()
    b.exec(other, "nohup sh -c 'echo hello | nc -l -p 7777 -q 1' >/dev/null 2>&1 &")
    assert b.sh(s["id"], f"for i in $(seq 50); do nc -w 5 {address} 7777 </dev/null && exit; sleep 0.1; done; exit 1") == "hello\n"
    for network, said in (networks["open"], "SANDBOX_LINK_LOCAL"), ("nowhere", "no network"), ("bridge", "SANDBOX_NETWORKS"), \
                         ("host", "SANDBOX_NETWORKS"), ("container:x", "SANDBOX_NETWORKS"):
        r = b.call("POST", "/v1/sessions", {"network": network, "limits": {"memory_mb": 64}})
        assert (r.status, r.json["error"]["field"]) == (400, "network") and said in r.json["error"]["message"], r
    assert interfaces(b, b.create(limits={"memory_mb": 64})["id"]) == {"lo"}
    assert run(b, "ls /sys/class/net") == "lo\n"


def test_the_default_session_has_a_network_of_its_own(networks, own_berthd):
    b = start(own_berthd, SANDBOX_NETWORK=networks["closed"])
    assert len(run(b, "ls /sys/class/net").split()) == 2
    r = b.call("POST", "/v1/sessions", {"network": networks["closed"]})
    assert (r.status, r.json["error"]["field"]) == (400, "network")  # it is not listed for others


def test_a_network_that_leads_out_needs_the_administrators_word(networks, own_berthd):
    b = start(own_berthd, SANDBOX_NETWORK=networks["open"])
    r = b.call("POST", "/exec", {"command": "true"}, token=MINE)
    assert (r.status, r.json["error"]["field"]) == (400, "network")
    b.stop()
    b.settings["SANDBOX_LINK_LOCAL"] = "1"
    b.start()
    assert len(run(b, "ls /sys/class/net").split()) == 2


def test_the_hosts_network_stops_the_start(engine):
    refused(engine, ["SANDBOX_NETWORK", "host"], SANDBOX_NETWORK="host")
    refused(engine, ["SANDBOX_NETWORKS", "host"], SANDBOX_NETWORKS="a,host")
