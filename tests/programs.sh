#!/bin/bash
# programs.sh PROGRAM...: runs test programs, each with a deadline, and sums what they report.
# A cmocka program prints its own results; a fuzz target is given the corpus of its name. Output is shown
# only of a program that failed. The last line is "N passed, N failed"; the status says whether all passed.
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=${TEST_SECONDS:-180}
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

run() {
  local name=${1##*/}
  local args=()
  [[ $name != fuzz_* ]] || args=("tests/fuzz/corpus/${name#fuzz_}")
  # ThreadSanitizer of gcc 12 does not start where the kernel spreads addresses wider than it knows.
  timeout --kill-after=5 "$seconds" setarch -R "$1" "${args[@]}" >"$log" 2>&1
}

for program; do
  run "$program"
  status=$?
  read -r good bad _ < <(awk -f tests/count.awk "$log")
  ((status == 0 || bad > 0)) || bad=1 # it died, or a sanitizer spoke at the end
  ((status != 0 || good + bad > 0)) || bad=1 # a program that tests nothing is no success
  passed=$((passed + good)) failed=$((failed + bad))
  if ((bad)); then
    printf '%s: status %d\n' "$program" "$status"
    grep -av '^\[ RUN  \|^\[       OK ' "$log" | tail -n 60
  else
    printf '%-40s %4d passed\n' "$program" "$good"
  fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0 && passed > 0))
