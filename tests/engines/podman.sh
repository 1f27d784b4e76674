#!/usr/bin/env bash
# A private Podman for the tests: setup/podman.sh, which says how it is used, in its default folder.
exec "${BASH_SOURCE[0]%/*}/../../setup/podman.sh" "$@"
