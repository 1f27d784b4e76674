#!/usr/bin/env bash
# `make down`: undoes `make up`. Deletes the sessions, stops berthd and the Podman that make up started,
# removes what they left in the engine, the state folder and the berth configuration that make up wrote.
# KEEP=1 keeps the state folder (data, token, our Podman's images and volumes) and the sandbox image.
set -euo pipefail
# shellcheck source=setup/home.sh
source "${BASH_SOURCE[0]%/*}/home.sh"
steps=4

# sessions_gone: deletes every session on the first page; true when there is none. One that the engine cannot
# end at once stays on the list as `stopping`.
sessions_gone() {
  local ids id
  ids=$(api GET '/v1/sessions?limit=100' | jq -r '.sessions[].id') || return 1
  for id in $ids; do api DELETE "/v1/sessions/$id" >/dev/null || true; done
  [[ -z $ids ]]
}

# remove_labelled: what carries our instance's label in the engine, such as sandboxes of a berthd that no
# longer answers.
remove_labelled() {
  local instance filter id
  instance=$(cat "$dir/instance" 2>/dev/null) || return 0
  filter=$(jq -rn --arg l "org.berth.instance=$instance" '{label: [$l]} | tojson | @uri')
  for id in $(engine_call GET "/containers/json?all=true&filters=$filter" | jq -r '.[].Id'); do
    engine_call DELETE "/containers/$id?force=true&v=true" >/dev/null ||
      say "container ${id:0:12} stays in the engine"
  done
  for id in $(engine_call GET "/volumes?filters=$filter" | jq -r '.Volumes[]?.Name'); do
    engine_call DELETE "/volumes/$id?force=true" >/dev/null || say "volume $id stays in the engine"
  done
}

# remove_images: the sandbox image and berthd's own agent images, unless something else uses them.
remove_images() {
  local name
  for name in $(engine_call GET /images/json |
    jq -r '.[].RepoTags[]? | select(test("^localhost/berth/(sandbox|agent):"))'); do
    engine_call DELETE "/images/$name" >/dev/null 2>&1 || say "the image $name is in use and stays"
  done
}

cd "$top"
if [[ ! -e $dir/marker ]]; then
  say "nothing to do: make up has not run in $dir"
  exit 0
fi
lock_home
step "deleting the sessions"
if running berthd && healthy; then
  wait_for 300 sessions_gone || say "some sessions do not end by berthd: they go with the next steps"
else
  say "berthd does not answer: its sessions go with the next steps"
fi
step "stopping berthd"
end berthd TERM 30
step "removing what is left in the engine"
engine=$(setting engine)
if [[ -n $engine ]] && use_engine "$engine" && engine_answers; then
  remove_labelled
  if [[ ${KEEP:-0} != 1 && -e $dir/image ]]; then remove_images; fi
elif [[ -n $engine ]]; then
  say "the engine at $engine does not answer: containers and volumes of Berth may be left in it"
fi
[[ ! -d $dir/podman ]] || KEEP=${KEEP:-0} setup/podman.sh stop "$dir/podman"
step "removing files"
if [[ -e $config && $(head -n 1 "$config") == "$config_mark" ]]; then
  rm "$config"
  rmdir --ignore-fail-on-non-empty "${config%/*}"
fi
if [[ ${KEEP:-0} == 1 ]]; then
  rm -rf "$dir/run" "$dir/settings"
  say "kept: $dir"
else
  rm -rf "$dir"
fi
say "Berth is down."
