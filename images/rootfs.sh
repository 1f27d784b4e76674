#!/bin/sh
# Runs as root inside the image's file system once all packages are there: makes the user and the places Berth
# mounts over.
set -eu

groupadd --gid 10001 sandbox
useradd --uid 10001 --gid 10001 --home-dir /home/sandbox --no-create-home --shell /bin/bash sandbox
# A tmpfs takes owner and mode of the directory that it covers on some engines, so they are right here too.
install -d -m 0700 -o 10001 -g 10001 /workspace /home/sandbox /conversation_history
install -d -m 0755 /.berth

# A program with a file capability does not even start where the capability is taken away, as in every
# sandbox; ping needs none where net.ipv4.ping_group_range lets it.
ping=$(readlink -f "$(command -v ping)")
[ -z "$(getcap "$ping")" ] || setcap -r "$ping"

# What GET /health tells of the tools: the first number with a dot that each says of itself, else the first number.
while read -r name command; do
  case $name in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086  # the command is a list of words
  said=$(timeout 20 $command 2>&1 </dev/null | head -n 20)
  version=$(printf '%s\n' "$said" | grep -oE '[0-9]+(\.[0-9]+)+[a-z]?' | head -n 1)
  [ -n "$version" ] || version=$(printf '%s\n' "$said" | grep -oE '[0-9]+' | head -n 1)
  [ -z "$version" ] || echo "$name $version"
done </usr/share/berth/tools.txt >/usr/share/berth/versions

# Nothing in a sandbox can install packages; the mirrors of the machine that built it are no one's business.
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
