# shellcheck shell=bash
# What `make up` and `make down` share: the state folder, BERTH_HOME, and the berthd that runs from it.
#
#   marker       says that the folder is ours to remove     admin-token  0600
#   settings     what the running berthd was started with    data/        berthd's own folder (SANDBOX_DATA)
#   berthd.log   podman/  our own Podman, if there is one    run/         process ids
#   image        there if we built the sandbox image         instance     the label of what is ours in the engine

# shellcheck disable=SC2034  # the scripts that source this use all of it
# shellcheck source=setup/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

top=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
dir=$(realpath -m "$berth_home")
token_file=$dir/admin-token
config=${XDG_CONFIG_HOME:-$HOME/.config}/berth/config
config_mark='# Written by make up; make down removes it.'

# lock_home: one `make up` or `make down` at a time.
lock_home() {
  exec 9>"$dir/lock"
  flock -w 5 9 || die "another make up or make down works in $dir: wait for it"
}

# setting NAME: what the running berthd was started with.
setting() { sed -n "s/^$1=//p" "$dir/settings" 2>/dev/null || true; }

# api METHOD PATH [CURL-ARGUMENT...]: a request to our berthd. The token goes in by a descriptor, not the
# command line.
api() {
  local method=$1 path=$2
  shift 2
  curl --silent --show-error --fail --noproxy '*' --max-time "${API_SECONDS:-40}" -X "$method" \
    -H @<(printf 'Authorization: Bearer %s' "$(<"$token_file")") "$@" "$(setting url)$path"
}

healthy() { API_SECONDS=5 api GET /health >/dev/null 2>&1; }
