#!/usr/bin/env bash
# scripts/scaling/codecs: a row for each run, medians over repeats, times dense; a slow link makes int8 faster than dense, in fewer bytes; a
# run that fails fails the whole. Usage: codecs_test.sh TUTTI SOURCE BUILD
set -uo pipefail
export TUTTI=$1 TUTTI_BUILD=$3 TUTTI_PROFILE=off
codecs=$2/scripts/scaling/codecs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checked=0

# check TEXT COMMAND…: the command succeeds.
check() {
  local text=$1
  shift
  checked=$((checked + 1))
  "$@" >check.log 2>&1 && return
  failed=$((failed + 1))
  printf 'FAILED: %s: %s\n' "$text" "$*"
  cat check.log
}
shows() { grep -qE -- "$1" "$2" || { cat "$2"; return 1; }; }
fails() { ! "$@"; }

# More steps than auto's race between two plans has at most: 2 * (16 + 32 + 32).
check "runs" "$codecs" --csv runs.csv --ranks 2 --repeats 2 --tail 5 --codecs "dense int8 auto+--order+any" -- --model 32 --steps 180 --link 20mbit
check "a row for each repeat and codec" [ "$(tail -n +2 runs.csv | cut -d';' -f2,3 | tr '\n' ' ')" = "dense;1 int8;1 auto+--order+any;1 dense;2 int8;2 auto+--order+any;2 " ]
check "numbers" [ "$(tail -n +2 runs.csv | cut -d';' -f4-6 | grep -cE '^[0-9.]+;[0-9.]+;[1-9][0-9]*$')" = 6 ]
check "what auto has chosen" [ "$(grep ';auto' runs.csv | cut -d';' -f7 | grep -c dense)" = 2 ]
bytes() { awk -F';' -v codec="$1" '$2 == codec { print $6; exit }' runs.csv; }
check "int8 sends less than half of what dense does" [ $(($(bytes int8) * 2)) -lt "$(bytes dense)" ]

# The table, from numbers that are known.
{
  echo "options;codec;repeat;step_ms;exposed_ms;sent_bytes;chosen"
  printf '%s\n' "a;dense;1;8;1;100;" "a;int8;1;5;1;30;" "a;dense;2;10;1;100;" "a;int8;2;3;1;30;" "a;dense;3;30;1;100;" "b;auto;1;7;1;9;dense,bf16"
} >known.csv
"$codecs" --csv known.csv --table >table 2>&1
check "a median" shows '^\| dense \| 10\.00 \(8\.00\.\.30\.00\) \| 1\.00 \| 100 \|  \|$' table
check "a median of two, and how many times dense" shows '^\| int8 \| 4\.00 \(3\.00\.\.5\.00\) \| 2\.50 \| 30 \|  \|$' table
check "other options apart, without dense" shows '^\| auto \| 7\.00 \(7\.00\.\.7\.00\) \| - \| 9 \| dense,bf16 \|$' table

check "a codec that is not there" fails "$codecs" --csv none.csv --ranks 1 --repeats 1 --codecs nothing -- --steps 4
check "leaves no row" [ "$(wc -l <none.csv)" = 1 ]
check "an option that is not there" fails "$codecs" --rranks 1
check "a table of nothing" fails "$codecs" --csv missing.csv --table

echo "$checked checks, $failed failed"
[ $failed = 0 ]
