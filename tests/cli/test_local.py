"""What needs no server: help, unknown words, the config file, the bash completion."""

import os
import subprocess

import pytest
from conftest import PROGRAM, ROOT

COMMANDS = ["run", "exec", "create", "ls", "show", "rm", "start", "ps", "logs", "stop", "cp", "cat", "ls-files", "archive", "health", "version", "help"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(lone, command):
    done = lone(command, "--help")
    assert done.returncode == 0 and done.err == ""
    assert done.out.startswith(f"Usage: berth {command}") and "Example:\n  " in done.out and "--address" in done.out
    assert lone("help", command).out == done.out
    assert max(map(len, done.out.splitlines())) <= 110


def test_help_names_every_command(lone):
    done = lone("help")
    assert done.returncode == 0 and lone("--help").out == done.out
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("  ")] == COMMANDS


def test_no_command_is_misuse(lone):
    done = lone()
    assert done.returncode == 2 and done.out == "" and "Usage:" in done.err


WORDS = {
    "a letter too few": (["rn"], "did you mean run?"),
    "letters swapped": (["craete"], "did you mean create?"),
    "a beginning": (["heal"], "did you mean health?"),
    "nothing near": (["frobnicate"], "berth help"),
    "options first": (["--json", "ls"], "options come after the command"),
    "an option mistyped": (["ls", "--jsno"], "did you mean --json?"),
    "an option of another command": (["ls", "--memory", "1g"], "unknown option --memory"),
    "a flag with a value": (["ls", "--json=yes"], "takes no value"),
    "an option without its value": (["ls", "--state"], "--state STATE"),
    "too many words": (["ls", "what"], "\"what\" is too much"),
    "help of an unknown command": (["help", "nope"], "berth help lists them"),
}


@pytest.mark.parametrize("words, text", WORDS.values(), ids=WORDS.keys())
def test_misuse_says_what_to_do(lone, words, text):
    done = lone(*words)
    assert done.returncode == 2 and done.out == ""
    assert text in done.err and done.err.count("\n") == 1


# ---- the config file ----


@pytest.fixture
def config(home):
    """Writes the file and returns its path."""
    def write(text, mode=0o600):
        path = home / ".config" / "berth" / "config"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path
    return write


def test_no_token_says_where_to_put_it(lone, home):
    done = lone("ls")
    assert done.returncode == 3 and "BERTH_TOKEN" in done.err and f"{home}/.config/berth/config" in done.err


def test_config_file_is_read(lone, config, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200 if h.headers["Authorization"] == "Bearer file-token" else 500,
                                                    {"sessions": [], "next": None}))
    config(f"# mine\n\n address =  {fake.address}/ \ntoken=file-token\n")
    assert lone("ls", "-q").returncode == 0


def test_flags_win_over_environment_over_file(lone, config, fake):
    said = []
    fake.on("GET", "/v1/sessions", lambda h: (said.append(h.headers["Authorization"]),
                                              h.reply(200, {"sessions": [], "next": None})))
    config("address = 127.0.0.1:1\ntoken = file\n")
    lone("ls", env={"BERTH_ADDRESS": fake.address})
    lone("ls", env={"BERTH_ADDRESS": fake.address, "BERTH_TOKEN": "env"})
    lone("ls", "--address", fake.address, "--token", "flag", env={"BERTH_ADDRESS": "127.0.0.1:1", "BERTH_TOKEN": "env"})
    assert said == ["Bearer file", "Bearer env", "Bearer flag"]


def test_xdg_config_home_is_honoured(lone, home, fake):
    fake.on("GET", "/v1/sessions", lambda h: h.reply(200, {"sessions": [], "next": None}))
    path = home / "elsewhere" / "berth" / "config"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    path.write_text(f"address = {fake.address}\ntoken = t\n")
    assert lone("ls", env={"XDG_CONFIG_HOME": str(home / "elsewhere")}).returncode == 0


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_config_file_that_others_may_read_is_refused(lone, config, mode):
    path = config("token = t\n", mode)
    done = lone("ls")
    assert done.returncode == 3 and f"chmod 600 {path}" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_config_file_of_another_user_is_refused(lone, config):
    os.chown(config("token = t\n"), 12345, 12345)
    done = lone("ls")
    assert done.returncode == 3 and "another user" in done.err


FILES = {
    "an unknown key": ("token = t\nadress = x\n", "config:2: unknown key"),
    "no equals sign": ("token\n", "config:1: must be"),
    "no value": ("token =\n", "config:1: token has no value"),
    "an address of another kind": ("address = ftp://x\ntoken = t\n", "http://"),
    "an address with a user": ("address = http://a@b\ntoken = t\n", "http(s)://host"),
    "a token with a blank": ("token = a b\n", "the token has blanks"),
    "too much": ("#" * 70000, "larger than 64 KiB"),
}


@pytest.mark.parametrize("text, message", FILES.values(), ids=FILES.keys())
def test_config_file_that_is_wrong_is_told(lone, config, text, message):
    config(text)
    done = lone("ls")
    assert done.returncode == 2 and message in done.err and done.err.count("\n") == 1


def test_config_file_that_is_a_fifo_does_not_hang(lone, config):
    path = config("")
    path.unlink()
    os.mkfifo(path, 0o600)
    assert lone("ls", timeout=10).returncode == 3


# ---- completion ----


@pytest.mark.parametrize("line, want", [("berth ru", ["run"]), ("berth rm --a", ["--all", "--address"]),
                                        ("berth run -- ls --a", [])], ids=["a command", "an option", "after dashes"])
def test_bash_completion(home, line, want):
    words = line.split(" ")
    script = f"""
        source {ROOT}/cli/berth.bash
        COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1}
        _berth
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    env = {"PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}", "HOME": str(home)}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, timeout=20, check=True)
    assert done.stdout.decode().split() == want
