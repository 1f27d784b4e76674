#!/usr/bin/env bash
# Installs the Debian packages that a purpose needs and the machine lacks. Quick, and needs no root, when
# nothing is missing.
#
#   packages.sh build|run|image|test...
#
#   build  to compile Berth
#   run    to run it; an engine (Podman) only where none answers
#   image  to build the sandbox image
#   test   all of these and both engines, since the tests run on a real Docker and a real Podman
set -euo pipefail
# shellcheck source=setup/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

build=(gcc libc6-dev make pkg-config libarchive-dev libcurl4-openssl-dev libjansson-dev libmicrohttpd-dev
  libsqlite3-dev libssl-dev libzstd-dev zlib1g-dev)
run=(ca-certificates curl jq openssl procps)
engine_packages=(podman runc)
image=(curl jq mmdebstrap)
test=("${build[@]}" "${run[@]}" "${image[@]}" "${engine_packages[@]}" docker.io
  clang clang-format clang-tidy cppcheck git libclang-rt-14-dev libcmocka-dev lsof psmisc python3-pytest
  pmccabe python3-jsonschema python3-prometheus-client python3-requests shellcheck strace util-linux zstd)

# Node's own packages bring npm with them, and Debian's npm does not go with those.
command -v npm >/dev/null || test+=(nodejs npm)

(($# > 0)) || die "usage: packages.sh build|run|image|test..."
wanted=()
for purpose in "$@"; do
  case $purpose in
    build) wanted+=("${build[@]}") ;;
    run)
      wanted+=("${run[@]}")
      # It is curl that finds the engine; without curl none is looked for, and Podman does no harm.
      if ! command -v curl >/dev/null || ! find_engine; then wanted+=("${engine_packages[@]}"); fi
      ;;
    image) wanted+=("${image[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    *) die "unknown purpose '$purpose': use build, run, image or test" ;;
  esac
done

command -v dpkg-query >/dev/null || die "this is no Debian system: install by hand what stands for: ${wanted[*]}"
installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null |
  sed -n 's/^ii  //p' || true)
missing=$(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(sort -u <<<"$installed") | xargs)
[[ -n $missing ]] || exit 0

((EUID == 0)) || die "not root, so install what is missing yourself: apt-get install $missing"
command -v apt-get >/dev/null || die "there is no apt-get: install by hand: $missing"
say "installing: $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
  local options=(-o DPkg::Lock::Timeout=120 -o Acquire::Retries=2)
  # shellcheck disable=SC2086  # a list of names
  apt-get "${options[@]}" update && apt-get "${options[@]}" install -y --no-install-recommends $missing
}
install >"$log" 2>&1 ||
  die "apt-get failed ($(grep -E '^E: ' "$log" | head -n 1)): mend that, then: apt-get install $missing"
