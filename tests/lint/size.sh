#!/bin/bash
# size.sh FILE...: files of at most 600 lines, functions of at most 80 lines and a cyclomatic complexity of at most 15.
set -u
file_max=600 lines_max=80 complexity_max=15
bad=0

command -v pmccabe >/dev/null || {
  echo "size.sh: pmccabe is missing: setup/packages.sh test" >&2
  exit 1
}

for file; do
  lines=$(wc -l <"$file")
  if ((lines > file_max)); then
    echo "$file: $lines lines, at most $file_max"
    bad=1
  fi
done

# pmccabe's columns: modified complexity (a switch counts once), traditional, statements, first line, lines, place, name.
# It takes queue macros in a struct for C++ classes, says so, and reads on.
mapfile -t sources < <(printf '%s\n' "$@" | grep '\.c$')
pmccabe "${sources[@]}" 2>/dev/null | awk -v lines_max="$lines_max" -v complexity_max="$complexity_max" -F '\t' '
  { place = $6; sub(/:.*/, "", place); name = $6; sub(/.*(: |::)/, "", name); sub(/\([0-9]+\)$/, "", place) }
  $5 > lines_max { printf "%s:%d: %s has %d lines, at most %d\n", place, $4, name, $5, lines_max; bad = 1 }
  $1 > complexity_max { printf "%s:%d: %s has complexity %d, at most %d\n", place, $4, name, $1, complexity_max; bad = 1 }
  END { exit bad }' || bad=1
exit "$bad"
