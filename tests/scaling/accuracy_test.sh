#!/usr/bin/env bash
# scripts/accuracy: a run that is there is not repeated, differences are paired by seed, a codec that diverges is said so, and a run that
# fails for another reason fails the whole. Usage: accuracy_test.sh TUTTI SOURCE BUILD
set -uo pipefail
export TUTTI=$1 TUTTI_BUILD=$3
accuracy=$2/scripts/accuracy
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
lacks() { ! shows "$@" >/dev/null; }
fails() { ! "$@"; }

short=(--csv runs.csv --ranks 2 --seeds "1 2" --codecs "dense int8 dgc:warmup=4+--momentum+0" -- --data digits --model none --steps 40)
check "runs" "$accuracy" "${short[@]}"
check "a row for each seed and codec" [ "$(tail -n +2 runs.csv | cut -d';' -f3,4 | sort | tr '\n' ' ')" = "1;dense 1;dgc:warmup=4+--momentum+0 1;int8 2;dense 2;dgc:warmup=4+--momentum+0 2;int8 " ]
check "accuracies and seconds" [ "$(tail -n +2 runs.csv | grep -cE ';0\.[0-9]+;[0-9.]+$')" = 6 ]
sed -i '/;2;int8;/d' runs.csv
cp runs.csv before.csv
"$accuracy" "${short[@]}" >log 2>&1
check "only what is missing runs again" [ "$(diff before.csv runs.csv | grep -c '^[<>]')" = 1 ]
check "the same accuracy from the same seed" [ "$(grep -c ';2;int8;0\.' runs.csv)" = 1 ]

# The table, from numbers that are known.
{
  echo "options;ranks;seed;codec;accuracy;seconds"
  printf '%s\n' "-;2;1;dense;0.90;1" "-;2;1;int8;0.89;1" "-;2;1;ternary;diverged;0" "-;2;2;dense;0.80;1" "-;2;2;int8;0.82;1" "-;2;2;ternary;0.70;1" \
    "-;2;2;natural;diverged;0" "-;3;1;dense;0.10;1" "x;2;1;dense;0.10;1"
} >known.csv
"$accuracy" --csv known.csv --ranks 2 --table -- - >table 2>&1
check "the mean" shows '^dense +2 +85\.00 % +\+0\.00 +\+0\.00$' table
check "the difference and the worst" shows '^int8 +2 +85\.50 % +\+0\.50 +-1\.00$' table
check "what diverged is left out and said" shows '^ternary +2 +70\.00 % +-10\.00 +-10\.00 +\(1 diverged\)$' table
check "what diverged each time" shows '^natural +1 +diverged$' table
check "runs of other options and ranks" lacks '10\.00 %' table

check "a run that diverges is a row" "$accuracy" --csv wild.csv --ranks 1 --seeds 1 --codecs dense -- --data digits --loss squared --lr 1e30 --steps 40
check "and is named so" shows ';1;dense;diverged;0$' wild.csv
check "a codec that is not there" fails "$accuracy" --csv none.csv --ranks 1 --seeds 1 --codecs nothing -- --data digits --steps 4
check "leaves no row" [ "$(wc -l <none.csv)" = 1 ]
check "an option that is not there" fails "$accuracy" --sseeds 1

echo "$checked checks, $failed failed"
[ $failed = 0 ]
