#!/usr/bin/env bash
# Builds localhost/berth/standalone:latest into the engine named by SANDBOX_ENGINE (found as build.sh does): the
# sandbox image with berthd and its agent in it, so that one `docker run` is a sandbox with its API, without any
# engine for it to drive (docs/STANDALONE.md). A thin layer: the sandbox image itself stays as it is, and the
# sessions of other berthds have no berthd in them.
#
# Does nothing when the image in the engine was made from the same programs and the same sandbox image.
set -euo pipefail
images=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=images/lib.sh
source "$images/lib.sh"

sandbox=localhost/berth/sandbox
repository=localhost/berth/standalone
build=${BERTH_BUILD:-$images/../build}
cache=${BERTH_IMAGE_CACHE:-$images/../build/images}
libraries=(libmicrohttpd12) # what berthd needs and no tool of the sandbox image brings
container=
clean() {
  [[ -z $container ]] || engine_call DELETE "/containers/$container?force=true&v=true" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT

# The package is unpacked, not installed: nothing has to run in the new layer.
fetch_library() {
  local deb
  if [[ ! -d $cache/libs/$1 ]]; then
    (cd "$work" && { apt-get download "$1" || { apt-get update && apt-get download "$1"; }; } >log 2>&1) ||
      die "cannot download $1: $(tail -n 1 "$work/log")"
    mkdir -p "$cache/libs"
    deb=("$work/$1"_*.deb)
    dpkg-deb -x "${deb[0]}" "$cache/libs/$1.part"
    rm -rf "$cache/libs/$1.part/usr/share"
    mv "$cache/libs/$1.part" "$cache/libs/$1"
  fi
  cp -a "$cache/libs/$1/." "$work/context/root"
}

# check_image: berthd starts in it, as its user, and is the one that was put there.
check_image() {
  local reply status
  container=$(engine_call POST /containers/create -H 'Content-Type: application/json' -d @- <<END | jq -r .Id
{ "Image": "$repository:latest", "Cmd": ["--version"], "Tty": true,
  "HostConfig": { "NetworkMode": "none", "ReadonlyRootfs": true, "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"], "PidsLimit": 64,
    "Ulimits": [{"Name": "nofile", "Soft": 1024, "Hard": 1024}, {"Name": "nproc", "Soft": 4096, "Hard": 4096}],
    "LogConfig": {"Type": "json-file"} } }
END
  )
  reply=$(engine_call POST "/containers/$container/start" 2>&1) || die "the image does not start: $reply"
  status=$(ENGINE_SECONDS=60 engine_call POST "/containers/$container/wait" | jq -r .StatusCode)
  reply=$(engine_call GET "/containers/$container/logs?stdout=1&stderr=1" | tr -d '\r')
  [[ $status == 0 && $reply == "$("$build/berthd" --version)" ]] ||
    die "berthd does not run in the image (was it built on another release than the image's?): $reply"
}

for program in curl jq dpkg-deb; do
  command -v "$program" >/dev/null || die "$program is not installed: run setup/packages.sh image"
done
[[ -x $build/berthd && -x $build/berth-agent ]] || die "there is no berthd in $build: run make"
find_engine || die "no engine answers: start Docker or Podman, or set SANDBOX_ENGINE=unix:///PATH"
"$images/build.sh"
base=$(image_id "$sandbox:latest")
stamp=$({ cat "$images/standalone.sh" "$build/berthd" "$build/berth-agent" && echo "$base"; } | sha256sum | cut -c1-16)
if [[ ${FORCE:-0} != 1 && $(image_stamp "$repository") == "$stamp" ]]; then
  say "image $repository:latest in $engine is up to date"
  exit 0
fi

# Mode 0111: what can be executed and not read is not dumpable from execve on, so no command can trace it.
root=$work/context/root
mkdir -p "$root/usr/lib/berth"
for library in "${libraries[@]}"; do fetch_library "$library"; done
install -m 0111 "$build/berthd" "$build/berth-agent" "$root/usr/lib/berth"
cat >"$work/context/Dockerfile" <<END
FROM $sandbox:latest
USER 0:0
COPY root/ /
LABEL org.berth.image=standalone org.berth.image.stamp=$stamp
USER 10001:10001
VOLUME ["/workspace", "/home/sandbox", "/conversation_history"]
EXPOSE 8080
ENTRYPOINT ["/usr/lib/berth/berthd", "--runtime", "local"]
CMD []
END
find "$root" -type d -exec chmod 0755 {} +
tar -C "$work/context" --owner=0 --group=0 -cf "$work/context.tar" .
build_image "$work/context.tar" "$repository" "networkmode=none"
check_image
remove_replaced
say "image $repository:latest in $engine is built"
