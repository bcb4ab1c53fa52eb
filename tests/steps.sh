#!/usr/bin/env bash
# steps.sh PHASE...: runs make targets, and ends with a table of their minutes and tests.
#
# A phase is one target, or lanes of targets that run beside each other: "a,b/c" runs a and then b,
# and c meanwhile, whose output is shown when a target has ended; until then it is in
# target/steps/TARGET.log. The first phase that fails is the last one.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=target/steps
rm -rf $logs
mkdir -p $logs

# tests LOG: how many tests it says have passed. The summaries of cargo, pytest and node.
tests() {
  sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p; s/^([0-9]+) passed.*/\1/p; s/^(#|ℹ) pass ([0-9]+)$/\2/p' "$1" |
    awk '{ n += $1 } END { print n + 0 }'
}

# step TARGET: runs it and adds a row to the table. It is shown while it runs if nothing is beside it.
step() {
  local begin=$SECONDS status=0 row
  if [ "$alone" = yes ]; then
    ${MAKE:-make} --no-print-directory "$1" 2>&1 | tee "$logs/$1.log" || status=$?
  else
    ${MAKE:-make} --no-print-directory "$1" >"$logs/$1.log" 2>&1 || status=$?
    (flock 9; echo "== $1"; cat "$logs/$1.log") 9>$logs/lock
  fi
  row=$(printf '%-14s %5.1f min  %5d tests' "$1" "$(minutes $((SECONDS - begin)))" "$(tests "$logs/$1.log")")
  [ $status = 0 ] || row="$row  FAILED"
  echo "$row" >>$logs/table
  return $status
}

minutes() { awk -v seconds="$1" 'BEGIN { print seconds / 60 }'; }

# lane TARGET...: one after the other, until one fails.
lane() {
  local target
  for target; do
    step "$target" || return
  done
}

status=0
for phase; do
  pids=()
  IFS=/ read -ra lanes <<<"$phase"
  alone=$([ ${#lanes[@]} = 1 ] && echo yes)
  for targets in "${lanes[@]}"; do
    IFS=, read -ra targets <<<"$targets"
    lane "${targets[@]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || status=1
  done
  [ $status = 0 ] || break
done
echo
cat $logs/table
awk '{ n += $4 } END { print n + 0, "tests passed" }' $logs/table
printf 'all %.1f min; target/ has %s\n' "$(minutes $SECONDS)" "$(du -sh target | cut -f 1)"
[ $status = 0 ]
