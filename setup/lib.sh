# shellcheck shell=bash
# What Berth's shell scripts share: messages, waits with a deadline, and the engine's HTTP API through curl.
# Source it; it starts nothing.

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# step TEXT: one numbered progress line with the seconds since the script began; `steps` is their number.
step_now=0
steps=0
step() { printf '[%d/%d] %3ds  %s\n' "$((++step_now))" "$steps" "$SECONDS" "$*"; }

# wait_for SECONDS COMMAND...: runs COMMAND until it succeeds; fails when SECONDS have passed.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

# --- daemons: process id in DIR/run/NAME.pid, log in DIR/NAME.log; the script sets `dir` ------------------------

dir=

# start_time PID: when the process began, in ticks since boot; with the id it names a process for good.
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# spawn NAME COMMAND...: starts a daemon that outlives the script.
spawn() {
  local name=$1
  shift
  # 9 is the script's lock: a daemon that inherits it would hold it for ever.
  (cd "$dir" && exec setsid "$@") </dev/null >>"$dir/$name.log" 2>&1 9>&- &
  echo "$! $(start_time $!)" >"$dir/run/$name.pid"
}

# running NAME: whether the daemon lives; an id since given to another program does not count. Sets `pid`.
running() {
  local began
  { read -r pid began <"$dir/run/$1.pid"; } 2>/dev/null || return 1
  [[ -n $began && $(start_time "$pid") == "$began" ]]
}

process_gone() { ! kill -0 "$1" 2>/dev/null; }

# end NAME SIGNAL SECONDS: ends a daemon and waits for it; after SECONDS by SIGKILL.
end() {
  running "$1" || return 0
  kill -"$2" "$pid" 2>/dev/null || return 0
  wait_for "$3" process_gone "$pid" && return
  kill -KILL "$pid" 2>/dev/null || return 0
  wait_for 10 process_gone "$pid" || die "process $pid ($1) does not end: see $dir/$1.log"
}

# --- where things are -------------------------------------------------------------------------------------------

# A service manager or a CI job may start us without HOME.
HOME=${HOME:-$(getent passwd "$EUID" | cut -d: -f6)}

# The folder of what `make up` starts; also where its own Podman lives.
if ((EUID == 0)); then
  berth_home=${BERTH_HOME:-/var/lib/berth-up}
else
  berth_home=${BERTH_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/berth-up}
fi

# --- the engine's API -------------------------------------------------------------------------------------------

# use_engine ADDRESS: prepares engine_call for unix:///PATH or tcp://HOST:PORT. tcp:// uses TLS when
# SANDBOX_ENGINE_TLS, or DOCKER_CERT_PATH as with the docker client, names the folder with ca.pem, cert.pem
# and key.pem.
use_engine() {
  local tls=${SANDBOX_ENGINE_TLS:-${DOCKER_CERT_PATH:-}}
  engine_curl=(curl --silent --show-error --noproxy '*')
  case $1 in
    unix://*) engine_curl+=(--unix-socket "${1#unix://}") engine_url=http://engine ;;
    tcp://*)
      engine_url=http://${1#tcp://}
      if [[ -n $tls ]]; then
        engine_url=https://${1#tcp://}
        engine_curl+=(--cacert "$tls/ca.pem" --cert "$tls/cert.pem" --key "$tls/key.pem")
      fi
      ;;
    *) die "engine address '$1' is neither unix:///PATH nor tcp://HOST:PORT: correct SANDBOX_ENGINE or DOCKER_HOST" ;;
  esac
}

# engine_call METHOD PATH [CURL-ARGUMENT...]: one request; prints the reply's body, fails on a status of 400
# and above. The deadline is ENGINE_SECONDS, by default 60.
engine_call() {
  local method=$1 path=$2
  shift 2
  "${engine_curl[@]}" --fail-with-body --max-time "${ENGINE_SECONDS:-60}" -X "$method" "$@" "$engine_url$path"
}

engine_answers() { [[ $(ENGINE_SECONDS=15 engine_call GET /_ping 2>/dev/null) == OK ]]; }

# find_engine: sets `engine` to the address named by SANDBOX_ENGINE or DOCKER_HOST, else to the first of the
# usual sockets that answers, those that berthd tries and last that of `make up`. Fails when none answers.
find_engine() {
  local runtime=${XDG_RUNTIME_DIR:-/run/user/$EUID} path
  engine=${SANDBOX_ENGINE:-${DOCKER_HOST:-}}
  if [[ -n $engine ]]; then
    use_engine "$engine"
    engine_answers && return
    die "the engine at $engine does not answer: start it, or correct SANDBOX_ENGINE or DOCKER_HOST"
  fi
  for path in /run/docker.sock /run/podman/podman.sock "$runtime/docker.sock" "$runtime/podman/podman.sock" \
    "$berth_home/podman/engine.sock"; do
    engine=unix://$path
    if [[ -S $path ]] && use_engine "$engine" && engine_answers; then return; fi
  done
  engine=
  return 1
}
