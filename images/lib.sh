# shellcheck shell=bash
# What the image scripts share: putting images into an engine through its API, for Docker and Podman alike.

# shellcheck source=setup/lib.sh
source "${BASH_SOURCE[0]%/*}/../setup/lib.sh"

# Replies and archives of this run; the scripts remove it at their end.
work=$(mktemp -d)

encode() { jq -rn --arg v "$1" '$v | @uri'; }

# reply_error FILE: the error in a stream of JSON replies, if any; it comes behind a status 200.
reply_error() { jq -rR 'fromjson? | .error? // empty' <"$1" | head -n 1; }

# image_field NAME FILTER: a field of an image's description; empty when there is no such image.
image_field() { engine_call GET "/images/$1/json" 2>/dev/null | jq -r "$2 // empty" || true; }
image_id() { image_field "$1" .Id; }

# image_stamp REPOSITORY: says which files REPOSITORY:latest was made from.
image_stamp() { image_field "$1:latest" '.Config.Labels["org.berth.image.stamp"]?'; }

# remove_replaced: removes our images that have lost their name to a newer one, but those that a container uses.
remove_replaced() {
  local id filter
  filter=$(encode '{"dangling":["true"],"label":["org.berth.image"]}')
  for id in $(engine_call GET "/images/json?filters=$filter" | jq -r '.[].Id'); do
    engine_call DELETE "/images/$id" >/dev/null 2>&1 || true
  done
}

# import_image TARFILE REPOSITORY [INSTRUCTION...]: makes an image of one layer; the instructions are those of
# a Containerfile. Podman ignores a repository given with the import, so the name comes afterwards, by id.
import_image() {
  local tar=$1 repository=$2 query='fromSrc=-' reply id error instruction
  shift 2
  for instruction in "$@"; do query+="&changes=$(encode "$instruction")"; done
  reply=$work/import
  ENGINE_SECONDS=300 engine_call POST "/images/create?$query" -H 'Content-Type: application/x-tar' -H 'Expect:' \
    -T "$tar" >"$reply" || die "the engine refused the image: $(head -c 300 "$reply")"
  error=$(reply_error "$reply")
  [[ -z $error ]] || die "the engine refused the image: $error"
  id=$(jq -rR 'fromjson? | .status? // empty' <"$reply" | grep -oE '^(sha256:)?[0-9a-f]{64}$' | tail -n 1)
  [[ -n $id ]] || die "the engine did not name the imported image: $(head -c 300 "$reply")"
  engine_call POST "/images/$id/tag?repo=$(encode "$repository")&tag=latest" >/dev/null
}

# build_image CONTEXTTAR REPOSITORY [QUERY]: runs the Containerfile in the context (named Dockerfile), tags
# REPOSITORY:latest.
build_image() {
  local reply=$work/build error
  ENGINE_SECONDS=900 engine_call POST "/build?t=$(encode "$2:latest")&forcerm=1${3:+&$3}" \
    -H 'Content-Type: application/x-tar' -H 'Expect:' -T "$1" >"$reply" ||
    die "the build failed: $(head -c 300 "$reply")"
  error=$(reply_error "$reply")
  [[ -z $error ]] || die "the build failed: $error"
  [[ -n $(image_id "$2:latest") ]] || die "the build ended without an image: $(tail -c 300 "$reply")"
}
