#!/usr/bin/env bash
# A private Podman: its API service with its own storage, configuration and socket, beside whatever Podman the
# machine has.
#
#   podman.sh start [DIR]     starts it (does nothing when it answers); prints its address
#   podman.sh stop [DIR]      removes its containers and volumes, ends it, checks that nothing is left; keeps images
#   podman.sh restart [DIR]   ends and starts the service alone, as systemctl restart does; containers live on
#   podman.sh kill [DIR]      SIGKILL to the service alone; `start` brings it back with everything as it was
#   podman.sh socket [DIR]    prints the address
#
# DIR is by default /var/tmp/berth-test-engines/podman (BERTH_TEST_ENGINES names the parent). Logs: DIR/*.log.
# KEEP=1 lets stop end the containers without removing them or their volumes, and start find them again.
set -euo pipefail
shopt -s nullglob
# shellcheck source=setup/engine.sh
source "${BASH_SOURCE[0]%/*}/engine.sh"

programs=(podman conmon runc crun)

# Both files replace the machine's own configuration. Podman's first choice of runtime, crun, refuses cgroup
# v1 and the hybrid of both; runc takes all. Without tmp_dir all Podmans of a machine share their run state.
configure() {
  cat >"$dir/containers.conf" <<END
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$dir/run/libpod"
[network]
network_config_dir = "$dir/networks"
END
  cat >"$dir/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$dir/data"
runroot = "$dir/run/storage"
END
  export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf
}

podman_here() { timeout 60 podman --root "$dir/data" --runroot "$dir/run/storage" "$@"; }

start_service() {
  spawn podman podman --root "$dir/data" --runroot "$dir/run/storage" --log-level warn \
    system service --time 0 "unix://$socket"
  await podman
}

start() {
  local cold=0 program
  for program in podman runc; do
    command -v "$program" >/dev/null || die "$program is not installed: apt-get install podman runc"
  done
  if new_run_state; then cold=1; fi
  if running podman && engine_answers; then return; fi
  end podman TERM 20
  start_service
  # After a stop there is nothing; after a machine that died in mid test there may be.
  if ((cold)) && [[ ${KEEP:-0} != 1 ]]; then sweep; fi
}

# Podman needs no service to remove containers, so a service that was killed does not matter here.
stop() {
  local path
  local containers=("$dir"/data/overlay-containers/*/)
  end podman TERM 20
  # Should this fail, what is left is ended by force below.
  if [[ ${KEEP:-0} == 1 ]]; then
    podman_here stop --all --time 0 >/dev/null || true
  else
    podman_here rm --all --force --time 0 >/dev/null || true
    podman_here volume rm --all --force >/dev/null || true
  fi
  # Podman keeps two monitors for each exec for five minutes after its end.
  end_own_processes "${programs[@]}"
  for path in "${containers[@]}"; do
    path=${path%/}
    remove_cgroups "libpod_parent/libpod-${path##*/}"
  done
  # These two are shared by all Podmans of the machine, so they go only when empty.
  cgroups_below libpod_parent | xargs -r rmdir 2>/dev/null || true
  umount_all
  rm -rf "$dir/run" "$socket"
}

open_engine podman "$@"
case $verb in
  start) configure && start && echo "unix://$socket" ;;
  stop) configure && stop ;;
  restart) configure && end podman TERM 20 && start_service && echo "unix://$socket" ;;
  kill) end podman KILL 10 ;;
  socket) echo "unix://$socket" ;;
  *) usage ;;
esac
