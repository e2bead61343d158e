#!/usr/bin/env bash
# SIGTERM to one rank stops all after the same step, with a checkpoint that can be resumed. Usage: stop_signal.sh TUTTI LAUNCH…
set -euo pipefail
tutti=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$@" "$tutti" train --epochs 100000 --model 512 --output run >log 2>&1 &
job=$!
for _ in $(seq 200); do
  grep -q '"epoch":2' run/metrics.jsonl 2>/dev/null && break
  sleep 0.1
done
# The youngest of the ranks, found from the job down (a launcher may start others): the signal must reach the rest through the step.
rank=$job
while child=$(pgrep -P "$rank" | tail -n 1) && [ -n "$child" ]; do rank=$child; done
[ "$(ps -o comm= -p "$rank")" = "$(basename "$tutti")" ] || { echo "no rank is running"; cat log; kill "$job"; exit 1; }
kill -TERM "$rank"
wait $job || { echo "stopped with a non-zero status"; cat log; exit 1; }
grep -q 'stopped by a signal' log || { echo "no word of the signal"; cat log; exit 1; }
[ -s run/checkpoint.tutti ]
step=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' run/metrics.jsonl | tail -n 1)
"$@" "$tutti" train --steps $((step + 3)) --model 512 --resume run/checkpoint.tutti --output again >log 2>&1 || { cat log; exit 1; }
grep -q "going on after step $step" log
echo "stopped after step $step and resumed: all passed"
