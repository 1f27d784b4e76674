#!/bin/bash
# Runs inside the sandbox image as its user: every tool on the list starts, a C program compiles, the places
# have the right owner and mode, and no file is set-uid or set-gid but those that Debian's base brings. Prints
# one line per fault.
set -uo pipefail
faults=0
fault() {
  echo "fault: $*"
  faults=$((faults + 1))
}

tools=0
while read -r name command; do
  case $name in '' | '#'*) continue ;; esac
  tools=$((tools + 1))
  # shellcheck disable=SC2086  # the command is a list of words
  timeout 20 $command >/dev/null 2>&1 </dev/null || fault "$name does not start ($command)"
done <"${0%/*}/tools.txt"
((tools > 0)) || fault "the list of tools is empty"
[[ $(wc -l <"${0%/*}/versions") == "$tools" ]] || fault "not every tool has said its version"

echo 'int main(void) { return 0; }' >/tmp/check.c
{ gcc -o /tmp/check /tmp/check.c && /tmp/check; } || fault "gcc does not make a program that runs"

[[ $(id -u):$(id -g):$(id -un):$HOME:$PWD:$LANG == 10001:10001:sandbox:/home/sandbox:/workspace:C.UTF-8 ]] ||
  fault "user, home, working directory or LANG is not as it should be: $(id), $HOME, $PWD, $LANG"
for place in /workspace /home/sandbox /conversation_history; do
  [[ $(stat -c '%u:%g:%a' "$place") == 10001:10001:700 ]] || fault "$place is not the user's own: $(stat "$place")"
done
[[ $(stat -c '%u:%g:%a' /.berth) == 0:0:755 ]] || fault "/.berth is not root's: $(stat /.berth)"

expected='chage chfn chsh expiry gpasswd mount newgrp passwd su umount unix_chkpwd'
while read -r path; do
  [[ " $expected " == *" ${path##*/} "* ]] || fault "unexpected set-id file $path"
done < <(find / -xdev -type f -perm /6000 2>/dev/null)
# With a capability of its own a program does not start where that is taken away.
[[ -z $(getcap -r /bin /sbin /usr 2>/dev/null) ]] || fault "file capabilities: $(getcap -r /usr 2>/dev/null | xargs)"

echo "$tools tools checked, $faults faults"
((faults == 0))
