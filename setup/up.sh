#!/usr/bin/env bash
# `make up`: from a clone to a command that has run in a sandbox. Installs what is missing, builds, takes the
# Docker or Podman that runs or starts a Podman of its own, builds the sandbox image, starts berthd on
# loopback. A second run only does what is not done yet. `make down` undoes it.
#
#   BERTH_HOME      the state folder; default /var/lib/berth-up, without root ~/.local/share/berth-up
#   SANDBOX_LISTEN  where berthd listens; default 127.0.0.1:8080. Other SANDBOX_* settings reach berthd as they are
#   SANDBOX_ENGINE  the engine to use; default: DOCKER_HOST, else the first usual socket that answers
set -euo pipefail
# shellcheck source=setup/home.sh
source "${BASH_SOURCE[0]%/*}/home.sh"
steps=6

indent() { sed 's/^/             /'; }

make_home() {
  if [[ -d $dir && ! -e $dir/marker && -n $(ls -A "$dir") ]]; then
    die "$dir holds something else: set BERTH_HOME to a folder of its own"
  fi
  (umask 077 && mkdir -p "$dir"/run "$dir"/data && touch "$dir/marker") 2>/dev/null ||
    die "cannot write $dir: set BERTH_HOME"
  lock_home
}

build() {
  # Called from a Makefile, so the outer make's flags and job slots must not reach this one.
  local log=$dir/build.log
  env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -j"$(nproc)" -C "$top" all >"$log" 2>&1 ||
    die "the build failed: $(grep -m 1 -E 'error|\*\*\*' "$log" || tail -n 1 "$log") (log: $log)"
}

own_podman() {
  ((EUID == 0)) || die "no engine answers and only root can start one: start Docker or Podman, or run make up as root"
  command -v podman >/dev/null || setup/packages.sh run
  engine=$(KEEP=1 setup/podman.sh start "$dir/podman")
  use_engine "$engine"
}

# take_engine: the engine that the administrator names, else that of the last run, where the sessions live, else
# one that answers, else a Podman of our own.
take_engine() {
  local last
  last=$(setting engine)
  if [[ -n $last && -z ${SANDBOX_ENGINE:-}${DOCKER_HOST:-} ]]; then
    engine=$last
    use_engine "$engine"
    if engine_answers; then return; fi
    if [[ $engine == "unix://$dir/podman/"* ]]; then own_podman && return; fi
  fi
  find_engine || own_podman
}

# check_engine: refuses what Berth cannot drive; prints what it is.
check_engine() {
  local version name
  version=$(engine_call GET /version)
  if jq -e '.Components[]? | select(.Name == "Podman Engine")' <<<"$version" >/dev/null; then
    name=Podman
    jq -e '.Version | split(".")[0] | tonumber >= 4' <<<"$version" >/dev/null ||
      die "Podman $(jq -r .Version <<<"$version") at $engine is too old: 4.0 or newer is needed"
  else
    name=Docker
    jq -e '.ApiVersion | split(".") | map(tonumber) >= [1, 40]' <<<"$version" >/dev/null ||
      die "Docker $(jq -r .Version <<<"$version") at $engine is too old: API 1.40 (Docker 19.03) or newer is needed"
  fi
  say "$name $(jq -r .Version <<<"$version") at $engine" | indent
}

build_image() {
  local before
  before=$(engine_call GET /images/localhost/berth/sandbox:latest/json 2>/dev/null | jq -r '.Id // empty' || true)
  SANDBOX_ENGINE=$engine images/build.sh | indent
  [[ -n $before ]] || touch "$dir/image"
}

# port_owner PORT: the program that listens there, as far as ss may see it.
port_owner() {
  ss -Hltnp "sport = :$1" 2>/dev/null |
    sed -n 's/.*users:(("\([^"]*\)",pid=\([0-9]*\).*/ by \1 (pid \2)/p' | head -n 1
}

start_berthd() {
  local listen=${SANDBOX_LISTEN:-127.0.0.1:${SANDBOX_PORT:-8080}} host port wanted
  host=${listen%:*} port=${listen##*:}
  [[ $listen == *:* && $port =~ ^[0-9]+$ ]] || die "SANDBOX_LISTEN '$listen' is not ADDRESS:PORT"
  # From this machine an address that stands for all of them is reached over loopback.
  case $host in 0.0.0.0 | '') host=127.0.0.1 ;; '[::]') host='[::1]' ;; esac

  if [[ -n ${SANDBOX_ADMIN_TOKEN_FILE:-} ]]; then SANDBOX_ADMIN_TOKEN=$(<"$SANDBOX_ADMIN_TOKEN_FILE"); fi
  if [[ ! -s $token_file || -n ${SANDBOX_ADMIN_TOKEN:-} ]]; then
    (umask 077 && printf '%s\n' "${SANDBOX_ADMIN_TOKEN:-$(openssl rand -hex 32)}" >"$token_file")
  fi
  unset SANDBOX_ADMIN_TOKEN
  [[ -s $dir/instance ]] || echo "up-$(openssl rand -hex 4)" >"$dir/instance"
  export SANDBOX_LISTEN=$listen SANDBOX_DATA=$dir/data SANDBOX_ENGINE=$engine SANDBOX_ADMIN_TOKEN_FILE=$token_file
  SANDBOX_INSTANCE=$(<"$dir/instance")
  export SANDBOX_INSTANCE SANDBOX_IMAGE=${SANDBOX_IMAGE:-localhost/berth/sandbox:latest}

  wanted="url=http://$host:$port
engine=$engine
hash=$({ env | grep -E '^(SANDBOX|ATLAS)_' | sort; cat "$token_file" build/berthd; } | sha256sum | cut -d' ' -f1)"
  if running berthd && [[ $wanted == "$(<"$dir/settings")" ]] && healthy; then
    say "berthd runs already" | indent
    return
  fi
  end berthd TERM 30
  if (exec 3<>"/dev/tcp/${host//[\[\]]/}/$port") 2>/dev/null; then
    die "port $port is in use$(port_owner "$port"): stop that, or SANDBOX_LISTEN=$host:$((port + 1)) make up"
  fi
  printf '%s\n' "$wanted" >"$dir/settings"
  [[ ! -e $dir/berthd.log ]] || mv "$dir/berthd.log" "$dir/berthd.log.1"
  spawn berthd "$top/build/berthd"
  wait_for 60 berthd_decided || true
  running berthd || die "berthd did not start: $(tail -n 1 "$dir/berthd.log")"
  healthy || die "berthd does not answer on $host:$port within 60 s: see $dir/berthd.log"
}

berthd_decided() { ! running berthd || healthy; }

# write_config: lets berth find address and token, unless the user has a configuration already.
write_config() {
  local text
  text=$config_mark$'\n'"address = $(setting url)"$'\n'"token = $(<"$token_file")"
  if [[ ! -e $config ]] || [[ $(head -n 1 "$config") == "$config_mark" ]]; then
    (umask 077 && mkdir -p "${config%/*}" && printf '%s\n' "$text" >"$config") || die "cannot write $config"
  fi
}

first_command() {
  say '$ berth run --rm -- sh -c "id; touch /x; uname -sr; echo This ran in a sandbox."' | indent
  BERTH_ADDRESS=$(setting url) BERTH_TOKEN=$(<"$token_file") timeout 120 build/berth run --rm --no-stdin -- \
    sh -c 'id; touch /x; uname -sr; echo This ran in a sandbox.' 2>&1 | indent ||
    die "the first command failed: see above and $dir/berthd.log"
}

cd "$top"
step "looking for packages that are missing"
setup/packages.sh build run image
make_home
step "building berthd, berth and berth-agent"
build
step "looking for an engine"
take_engine
check_engine
step "building the sandbox image"
build_image
step "starting berthd"
start_berthd
write_config
step "running a first command in a sandbox made for it"
first_command

cat <<END

Berth is up after $SECONDS s.
  address  $(setting url)
  token    in $token_file
  log      $dir/berthd.log
END
if [[ $(head -n 1 "$config") == "$config_mark" ]]; then
  say "  berth finds both through $config"
else
  say "  $config is yours and was left alone; for this berthd set:"
  say "    export BERTH_ADDRESS=$(setting url) BERTH_TOKEN=\$(cat $token_file)"
fi
cat <<END
Try:
  build/berth run --rm -- python3 -c 'print(6 * 7)'
  build/berth create --name first && build/berth exec first -- uname -a && build/berth ls
  curl -H "Authorization: Bearer \$(cat $token_file)" $(setting url)/v1/sessions
  make down
END
