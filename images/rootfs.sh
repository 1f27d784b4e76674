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

# Nothing in a sandbox can install packages; the mirrors of the machine that built it are no one's business.
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
