#!/usr/bin/env bash
# Builds the sandbox image, localhost/berth/sandbox:latest, into the engine named by SANDBOX_ENGINE (else
# DOCKER_HOST, else the first usual socket that answers). Only the engine's HTTP API is used, so neither
# docker nor podman need be installed.
#
# The base is pulled by digest where a registry answers; then the packages are installed by the engine's own
# builder. Where none answers, base and packages are bootstrapped from the distribution mirrors that this
# machine's apt uses, and imported. That archive is kept in build/images, so the next engine takes seconds.
#
# Does nothing when the image in the engine was made from the same files. FORCE=1 builds anew (with today's
# packages). BERTH_BASE names another base by digest; BERTH_BASE=bootstrap skips the registry.
set -euo pipefail
images=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=images/lib.sh
source "$images/lib.sh"

repository=localhost/berth/sandbox
release=bookworm
steps=5
inputs=(base.txt packages.txt image.conf rootfs.sh tools.txt check.sh)
base=${BERTH_BASE:-$(grep -v '^#' "$images/base.txt")}
packages=$(grep -Ev '^(#|$)' "$images/packages.txt" | xargs)
mapfile -t config < <(grep -Ev '^(#|$)' "$images/image.conf")
stamp=$(cd "$images" && cat "${inputs[@]}" | sha256sum | cut -c1-16)
config+=("LABEL org.berth.image.stamp=$stamp")

cache=${BERTH_IMAGE_CACHE:-$images/../build/images}
rootfs=$cache/rootfs-$stamp-$(uname -m).tar

# pull_base: true when the engine has the base afterwards. A registry that sends nothing for 15 s does not
# answer.
pull_base() {
  local reply=$work/pull
  [[ $base == *@sha256:* ]] || return 1
  ENGINE_SECONDS=300 engine_call POST "/images/create?fromImage=$(encode "${base%@*}")&tag=$(encode "${base#*@}")" \
    --speed-limit 1 --speed-time 15 >"$reply" 2>&1 && [[ -z $(reply_error "$reply") ]]
}

build_on_base() {
  local context=$work/context
  mkdir "$context"
  (cd "$images" && cp rootfs.sh tools.txt check.sh "$context")
  {
    echo "FROM $base"
    echo "COPY tools.txt check.sh /usr/share/berth/"
    echo "COPY rootfs.sh /usr/share/berth/rootfs.sh"
    echo "RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages" \
      "&& sh /usr/share/berth/rootfs.sh && rm /usr/share/berth/rootfs.sh"
    printf '%s\n' "${config[@]}"
  } >"$context/Dockerfile"
  tar -C "$context" -cf "$work/context.tar" .
  build_image "$work/context.tar" "$repository" "networkmode=host"
}

# The mirrors that serve this release, as apt itself sees them.
mirrors() {
  apt-get indextargets --format "deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' 'Origin: Debian' |
    grep -E " $release(-updates|-security)? main\$" || true
}

bootstrap() {
  local options=() option
  command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed: run setup/packages.sh image"
  mirrors >"$work/sources.list"
  [[ -s $work/sources.list ]] ||
    die "no registry answers and apt knows no mirror of Debian $release: add one to /etc/apt and run apt-get update"
  # How apt is told to fetch on this machine (proxies, checks) holds for the bootstrap too.
  while read -r option; do options+=(--aptopt="$option"); done < <(
    apt-config dump | grep -E '^Acquire::(https?::(Proxy|CAInfo|Verify)|Check-|ForceIPv)' || true)
  for option in doc man info locale; do options+=(--dpkgopt="path-exclude=/usr/share/$option/*"); done

  rm -f "$cache"/rootfs-*.tar "$cache"/rootfs-*.tar.part
  # "$1" in the hooks is the new root; mmdebstrap expands it.
  # shellcheck disable=SC2016
  mmdebstrap --quiet --variant=minbase --format=tar --include="${packages// /,}" "${options[@]}" \
    --customize-hook='mkdir "$1/usr/share/berth"' \
    --customize-hook="copy-in '$images/tools.txt' '$images/check.sh' '$images/rootfs.sh' /usr/share/berth" \
    --customize-hook='chroot "$1" sh /usr/share/berth/rootfs.sh && rm "$1/usr/share/berth/rootfs.sh"' \
    "$release" "$rootfs.part" - <"$work/sources.list" >"$cache/bootstrap.log" 2>&1 ||
    die "bootstrapping failed: $(grep -E '^E:' "$cache/bootstrap.log" | head -n 1) (log: build/images/bootstrap.log)"
  mv "$rootfs.part" "$rootfs"
}

# check_image: runs images/check.sh in a container of the image, hardened as a session's. Both ulimits are
# named because Podman asks for more than it may give on a machine that withholds CAP_SYS_RESOURCE.
check_image() {
  local status reply
  container=$(engine_call POST /containers/create -H 'Content-Type: application/json' -d @- <<END | jq -r .Id
{ "Image": "$repository:latest", "Cmd": ["/bin/bash", "/usr/share/berth/check.sh"], "Tty": true,
  "HostConfig": { "NetworkMode": "none", "ReadonlyRootfs": true, "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"], "PidsLimit": 256,
    "Ulimits": [{"Name": "nofile", "Soft": 1024, "Hard": 1024}, {"Name": "nproc", "Soft": 4096, "Hard": 4096}],
    "Tmpfs": {"/tmp": "rw,exec,nosuid,nodev,size=64m,mode=1777"}, "LogConfig": {"Type": "json-file"} } }
END
  )
  reply=$(engine_call POST "/containers/$container/start" 2>&1) || die "the image does not start: $reply"
  status=$(ENGINE_SECONDS=120 engine_call POST "/containers/$container/wait" | jq -r .StatusCode)
  engine_call GET "/containers/$container/logs?stdout=1&stderr=1" | tr -d '\r' | sed 's/^/           /'
  [[ $status == 0 ]] || die "the image has faults: see above"
}

container=
clean() {
  [[ -z $container ]] || engine_call DELETE "/containers/$container?force=true&v=true" >/dev/null 2>&1 || true
  rm -rf "$work"
}

for program in curl jq; do
  command -v "$program" >/dev/null || die "$program is not installed: run setup/packages.sh image"
done
find_engine || die "no engine answers: start Docker or Podman, or set SANDBOX_ENGINE=unix:///PATH"
if [[ ${FORCE:-0} != 1 && $(image_stamp "$repository") == "$stamp" ]]; then
  say "image $repository:latest in $engine is up to date"
  exit 0
fi
trap clean EXIT

# Two builds at once would bootstrap twice, into the same file.
mkdir -p "$cache"
exec 8>"$cache/lock"
flock -w 600 8 || die "another build holds $cache/lock for 10 minutes: end it"

step "building $repository:latest into $engine"
if [[ -s $rootfs && ${FORCE:-0} != 1 ]]; then
  step "taking the kept archive $(basename "$rootfs")"
  step "importing it"
  import_image "$rootfs" "$repository" "${config[@]}"
elif step "asking the registry for the base ${base:0:50}" && pull_base; then
  step "installing the tools on it"
  build_on_base
else
  step "no registry answers: bootstrapping base and tools from distribution packages"
  steps=6
  bootstrap
  step "importing the archive ($(($(stat -c %s "$rootfs") / 1000000)) MB)"
  import_image "$rootfs" "$repository" "${config[@]}"
fi
step "checking that every tool starts"
check_image
remove_replaced
step "done: $repository:latest, $(image_field "$repository:latest" '.Size / 1e6 | floor') MB"
