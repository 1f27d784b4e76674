#!/usr/bin/env bash
# A private Docker for the tests: its own daemon, containerd, data and socket, without any network of its own,
# beside whatever Docker the machine has.
#
#   docker.sh start [DIR]     starts it (does nothing when it answers); prints its address
#   docker.sh stop [DIR]      removes its containers and volumes, ends it, checks that nothing is left; keeps images
#   docker.sh restart [DIR]   ends and starts dockerd alone, as systemctl restart does; containers live on
#   docker.sh kill [DIR]      SIGKILL to dockerd alone; `start` brings it back with everything as it was
#   docker.sh socket [DIR]    prints the address
#
# DIR is by default /var/tmp/berth-test-engines/docker (BERTH_TEST_ENGINES names the parent). Logs: DIR/*.log.
# LIVE_RESTORE=0 starts or restarts dockerd without live-restore: then containers end with it.
set -euo pipefail
# shellcheck source=setup/engine.sh
source "${BASH_SOURCE[0]%/*}/../../setup/engine.sh"

programs=(dockerd containerd containerd-shim containerd-shim-runc-v2 runc)

# Debian's containerd would also serve Kubernetes and probe file systems that are not there; only what Docker
# uses is left.
start_containerd() {
  running containerd && return
  cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd"
state = "$dir/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$dir/run/containerd.sock"
[ttrpc]
  address = "$dir/run/containerd.sock.ttrpc"
END
  spawn containerd containerd --config "$dir/containerd.toml" --log-level warn
  wait_for 60 test -S "$dir/run/containerd.sock" || die "containerd did not start: $(tail -n 1 "$dir/containerd.log")"
}

# overlay2 where the kernel mounts an overlay over this file system, else vfs, which copies every layer. The
# first answer is kept: images belong to the driver they were stored with.
storage_driver() {
  local try=$dir/overlay-try
  if [[ ! -s $dir/driver ]]; then
    mkdir -p "$try"/{lower,upper,work,merged}
    if mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" \
      "$try/merged" 2>/dev/null; then
      umount "$try/merged"
      echo overlay2 >"$dir/driver"
    else
      echo vfs >"$dir/driver"
    fi
    rm -rf "$try"
  fi
  cat "$dir/driver"
}

# The configuration stands in a file of our own, since dockerd merges the machine's /etc/docker/daemon.json
# otherwise. cgroup-parent is our own, so that stop can tell our cgroups from those of another Docker.
start_dockerd() {
  local live=true
  [[ ${LIVE_RESTORE:-1} == 1 ]] || live=false
  cat >"$dir/daemon.json" <<END
{
  "hosts": ["unix://$socket"],
  "containerd": "$dir/run/containerd.sock",
  "data-root": "$dir/data",
  "exec-root": "$dir/run/docker",
  "pidfile": "$dir/run/docker.pid",
  "storage-driver": "$(storage_driver)",
  "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "cgroup-parent": "/$cgroup",
  "live-restore": $live,
  "shutdown-timeout": 5,
  "bridge": "none",
  "iptables": false,
  "ip-forward": false,
  "ip-masq": false,
  "userland-proxy": false
}
END
  # A pid file left by SIGKILL stops dockerd when its number lives again as another process.
  rm -f "$dir/run/docker.pid"
  spawn dockerd dockerd --config-file "$dir/daemon.json" --log-level warn
  await dockerd
}

start() {
  local cold=0
  command -v dockerd >/dev/null || die "dockerd is not installed: run setup/packages.sh test"
  if new_run_state; then cold=1; fi
  if running dockerd && engine_answers; then return; fi
  end dockerd TERM 20
  start_containerd
  start_dockerd
  # After a stop there is nothing; after a machine that died in mid test there may be.
  if ((cold)); then sweep; fi
}

# A dockerd that was killed is started once more, to remove what it made; what then still lives is ended by
# force.
stop() {
  if [[ -d $dir/run ]] && (start); then sweep; fi
  end dockerd TERM 20
  remove_cgroups "$cgroup"
  end containerd TERM 10
  end_own_processes "${programs[@]}"
  remove_cgroups "$cgroup"
  umount_all
  rm -rf "$dir/run" "$socket"
}

open_engine docker "$@"
cgroup=berth-test-$(cksum <<<"$dir" | cut -d' ' -f1)
case $verb in
  start) start && echo "unix://$socket" ;;
  stop) stop ;;
  restart) end dockerd TERM 20 && start_dockerd && echo "unix://$socket" ;;
  kill) end dockerd KILL 10 ;;
  socket) echo "unix://$socket" ;;
  *) usage ;;
esac
