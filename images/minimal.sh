#!/usr/bin/env bash
# Builds two tiny images for the tests into the engine named by SANDBOX_ENGINE (found as build.sh does):
#   localhost/berth/test-minimal:latest  a static busybox: sh but no bash, no /workspace, no user but root
#   localhost/berth/test-health:latest   the same with a HEALTHCHECK that runs /x and two VOLUMEs
# Does nothing when both were made by this version of the script.
set -euo pipefail
images=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=images/lib.sh
source "$images/lib.sh"
trap 'rm -rf "$work"' EXIT

minimal=localhost/berth/test-minimal
health=localhost/berth/test-health
cache=${BERTH_IMAGE_CACHE:-$images/../build/images}

# The package is unpacked, not installed: it would replace the machine's own busybox.
fetch_busybox() {
  [[ -x $cache/busybox ]] && return
  mkdir -p "$cache"
  cd "$work"
  {
    apt-get download busybox-static || { apt-get update && apt-get download busybox-static; }
  } >"$work/log" 2>&1 ||
    die "cannot download busybox-static: $(tail -n 1 "$work/log")"
  dpkg-deb -x busybox-static_*.deb "$work/deb"
  cp "$work/deb/bin/busybox" "$cache/busybox"
  cd - >/dev/null
}

for program in curl jq; do
  command -v "$program" >/dev/null || die "$program is not installed: run setup/packages.sh image"
done
find_engine || die "no engine answers: start Docker or Podman, or set SANDBOX_ENGINE=unix:///PATH"
stamp=$(sha256sum <"$images/minimal.sh" | cut -c1-16)
if [[ $(image_stamp "$minimal") == "$stamp" && $(image_stamp "$health") == "$stamp" ]]; then
  say "images $minimal and $health in $engine are up to date"
  exit 0
fi

fetch_busybox
root=$work/root
mkdir -p "$root"/{bin,etc,dev,proc,sys,tmp}
chmod 1777 "$root/tmp"
cp "$cache/busybox" "$root/bin/busybox"
"$root/bin/busybox" --list | while read -r applet; do
  [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
tar -C "$root" --owner=0 --group=0 -cf "$work/minimal.tar" .
import_image "$work/minimal.tar" "$minimal" 'ENV PATH=/bin' 'CMD ["/bin/sh"]' \
  'LABEL org.berth.image=test' "LABEL org.berth.image.stamp=$stamp"

# The import interface of Podman takes no HEALTHCHECK, the build interface of both does.
mkdir "$work/health"
printf 'FROM %s:latest\nHEALTHCHECK --interval=1s --timeout=5s CMD ["/x"]\nVOLUME ["/data", "/workspace"]\n' "$minimal" \
  >"$work/health/Dockerfile"
tar -C "$work/health" -cf "$work/health.tar" .
build_image "$work/health.tar" "$health"
remove_replaced
say "built $minimal and $health into $engine"
