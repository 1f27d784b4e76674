#!/usr/bin/env bash
# run.sh PROGRAM ADDRESS...: every operation of runtime/engine on each engine, over its socket and, for the first, over
# TLS too. PROGRAM is built from this folder. Needs tar, openssl, python3; as root, for the owners in the image.
set -euo pipefail
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
program=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work"/{root/vol,root/work,tls,foreign}
"${CC:-cc}" -static -Os -s -o "$work/root/inside" "$here/inside.c"
touch "$work/root/vol/host"
chmod 0700 "$work/root/work"
chown 10001:10001 "$work/root/work"
tar -C "$work/root" --numeric-owner -cf "$work/root.tar" .

status=0
check() {
  echo "== $1"
  timeout --kill-after=5 300 "$program" "$@" || status=1
}

for address; do check "$address" "$work/root.tar"; done

# TLS: a second set of certificates, from another CA, must be refused.
exec {hold}<> <(:)
python3 "$here/tls_relay.py" "$work/foreign" /nonexistent </dev/null >/dev/null
python3 "$here/tls_relay.py" "$work/tls" "${1#unix://}" <&"$hold" >"$work/port" &
relay=$!
trap 'kill "$relay"; rm -rf "$work"' EXIT
for ((i = 0; i < 100; i++)); do [[ ! -s $work/port ]] || break; sleep 0.1; done
check "tcp://127.0.0.1:$(<"$work/port")" "$work/root.tar" "$work/tls" "$work/foreign"
exit "$status"
