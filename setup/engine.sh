# shellcheck shell=bash
# What the scripts of the private engines share: the lock, and the removal of what an engine left behind.

# shellcheck source=setup/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

usage() { die "usage: ${0##*/} start|stop|restart|kill|socket [DIR]"; }

# open_engine KIND VERB [DIR]: checks the arguments, makes the folder and takes its lock, so that two callers
# take turns.
open_engine() {
  verb=${2:-}
  dir=$(realpath -m "${3:-${BERTH_TEST_ENGINES:-/var/tmp/berth-test-engines}/$1}")
  socket=$dir/engine.sock
  ((${#socket} < 100)) || die "'$socket' is too long for a unix socket: choose a shorter DIR"
  [[ $verb == socket ]] && return
  ((EUID == 0)) || die "must run as root: an engine needs it"
  mkdir -p "$dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || die "'$dir' is locked by another start or stop for 120 s: see 'fuser $dir/lock'"
  use_engine "unix://$socket"
}

# await NAME: waits until the engine answers; gives up at once when the daemon NAME has died.
await() {
  local end=$((SECONDS + 60))
  until engine_answers; do
    running "$1" || die "$1 did not start: $(tail -n 1 "$dir/$1.log")"
    ((SECONDS < end)) || die "$1 does not answer within 60 s: see $dir/$1.log"
    sleep 0.05
  done
}

# new_run_state: makes the folder of the run state if it is missing or from an earlier boot, else fails:
# engines take what they find there for living containers.
new_run_state() {
  [[ $(cat "$dir/run/boot" 2>/dev/null) == "$(</proc/sys/kernel/random/boot_id)" ]] && return 1
  umount_all
  rm -rf "$dir/run"
  mkdir -p "$dir/run"
  cat /proc/sys/kernel/random/boot_id >"$dir/run/boot"
}

# sweep: removes every container and volume of the engine, through its API. Images stay.
sweep() {
  local id name
  for id in $(engine_call GET '/containers/json?all=true' | jq -r '.[].Id'); do
    engine_call DELETE "/containers/$id?force=true&v=true" >/dev/null || true
  done
  for name in $(engine_call GET /volumes | jq -r '.Volumes[]?.Name'); do
    engine_call DELETE "/volumes/$name?force=true" >/dev/null || true
  done
}

# own_processes PROGRAM...: ids of processes of these programs with this folder in their command line.
own_processes() {
  local file pid program
  grep -lsF -- "$dir/" /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
    pid=${file#/proc/} pid=${pid%/cmdline}
    program=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
    case " $* " in *" ${program##*/} "*) echo "$pid" ;; esac
  done || true
}

no_own_processes() { [[ -z $(own_processes "$@") ]]; }

# end_own_processes PROGRAM...: kills what is left of the engine (shims, monitors) and waits until it is gone.
end_own_processes() {
  local pids
  mapfile -t pids < <(own_processes "$@")
  ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null || true
  wait_for 10 no_own_processes "$@" || die "processes of $dir do not end: $(own_processes "$@" | xargs)"
}

# cgroups_below NAME: the cgroups of that name and those below them, in every hierarchy, deepest first.
cgroups_below() { find /sys/fs/cgroup -depth -type d \( -path "*/$1" -o -path "*/$1/*" \) 2>/dev/null || true; }

# remove_cgroups NAME: ends what runs in the cgroups of that name, in every hierarchy, and removes them.
remove_cgroups() {
  local cgroup end=$((SECONDS + 15)) left
  while :; do
    left=0
    while read -r cgroup; do
      # A frozen process takes a SIGKILL only once it is thawed.
      echo THAWED 2>/dev/null >"$cgroup/freezer.state" || true
      echo 0 2>/dev/null >"$cgroup/cgroup.freeze" || true
      xargs -r kill -KILL 2>/dev/null <"$cgroup/cgroup.procs" || true
      rmdir "$cgroup" 2>/dev/null || left=1
    done < <(cgroups_below "$1")
    ((left)) || return 0
    ((SECONDS < end)) || die "cgroups do not go away: $(cgroups_below "$1" | xargs)"
    sleep 0.05
  done
}

mounts_below() { awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r; }

# umount_all: takes down every mount below the folder (overlays, tmpfs volumes, namespaces), deepest first.
umount_all() {
  local mount
  while read -r mount; do
    umount "$mount" 2>/dev/null || umount -l "$mount" || true
  done < <(mounts_below)
  [[ -z $(mounts_below) ]] || die "mounts stay below $dir: $(mounts_below | xargs)"
}
