# shellcheck shell=bash
# Completion of `berth` for bash: the program itself says what may come next.

_berth() {
  # What follows "--" is the sandbox's business.
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -- ]] && return
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _berth berth
