#!/bin/bash
# run.sh: every test, stage by stage; `make test` is this. Logs: build/test-logs/. A stage that fails does not stop the
# others. The last line is "N passed, N failed"; the status says whether all passed. A stage without counts of its own
# (packages, lint, build) counts as one test.
set -u
cd "$(dirname "$0")/.." || exit 1

logs=build/test-logs
minutes=45 # at most for one stage
passed=0 failed=0 skipped=0 number=0

# NAME | COMMAND. The sanitizers get modes of their own; the suites below tests/ build and start what they need.
stages=(
  'packages      | setup/packages.sh build test'
  'build         | make -j2 all'
  'lint          | make -k lint'
  'unit          | make -j2 unit'
  'unit-asan     | make -j2 unit MODE=asan'
  'unit-tsan     | make -j2 unit MODE=tsan'
  'fuzz-replay   | make -j2 fuzz-replay'
  'cli           | make cli'
  'http          | make http'
  'agent         | make agent'
  'engine        | make engine'
  'integration   | make integration'
)

# counts LOG: "passed failed skipped" from the closing lines: our own last one, else all of pytest's and cmocka's.
counts() {
  local lines
  lines=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
  [[ -n $lines ]] || lines=$(grep -aE '^=* ?[0-9]+ (passed|failed|skipped|error|deselected).* in [0-9.]+s|^\[ +(PASSED|FAILED|SKIPPED) +\] [0-9]+ test' "$1")
  awk -f tests/count.awk <<<"$lines"
}

run_stage() {
  local name=$1 command=$2 log status good bad skips start=$SECONDS
  log=$logs/$(printf '%02d' "$number")-$name.log
  printf '[%d/%d] %-12s ' "$number" "${#stages[@]}" "$name"
  # shellcheck disable=SC2086  # words of the table above
  timeout --kill-after=30 "${minutes}m" $command >"$log" 2>&1 </dev/null
  status=$?
  read -r good bad skips < <(counts "$log")
  if ((good + bad == 0)); then
    ((status == 0)) && good=1 || bad=1
  elif ((status != 0 && bad == 0)); then
    bad=1
  fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
  printf '%5d passed, %d failed%s  (%d s)\n' "$good" "$bad" "$( ((skips)) && echo ", $skips skipped")" $((SECONDS - start))
  if ((bad)); then
    ((status != 124)) || echo "      more than $minutes minutes"
    tail -n 40 "$log" | sed 's/^/      /'
    echo "      all of it: $log"
  fi
}

mkdir -p "$logs"
rm -f "$logs"/*.log
unset MAKEFLAGS MFLAGS MAKELEVEL MODE OUT
for stage in "${stages[@]}"; do
  number=$((number + 1))
  read -r name _ command <<<"$stage"
  run_stage "$name" "$command"
done
((skipped == 0)) || echo "$skipped tests were skipped; their reasons stand in $logs"
echo "$passed passed, $failed failed"
((failed == 0))
