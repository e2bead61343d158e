#!/usr/bin/env bash
# A signal stops all ranks after the same step, with a checkpoint that can be resumed: SIGTERM to one rank, and SIGTERM to scripts/run-mpi;
# a second one ends a rank at once, even one that waits for a peer. Usage: stop_signal.sh TUTTI SOURCE LAUNCH…
set -euo pipefail
tutti=$1 source=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# start COMMAND…: a run that would last for ever; sets job, and rank, the youngest of its processes (a launcher may start others).
start() {
  rm -rf run
  "$@" "$tutti" train --epochs 100000 --model 512 --output run >log 2>&1 &
  job=$!
  for _ in $(seq 200); do
    grep -q '"epoch":2' run/metrics.jsonl 2>/dev/null && break
    sleep 0.1
  done
  rank=$job
  while child=$(pgrep -P "$rank" | tail -n 1) && [ -n "$child" ]; do rank=$child; done
  [ "$(ps -o comm= -p "$rank")" = "$(basename "$tutti")" ] || { echo "no rank is running"; cat log; kill "$job"; exit 1; }
}

# stopped COMMAND…: the run has ended well, and its checkpoint can be resumed.
stopped() {
  wait $job || { echo "stopped with a non-zero status"; cat log; exit 1; }
  grep -q 'stopped by a signal' log || { echo "no word of the signal"; cat log; exit 1; }
  [ -s run/checkpoint.tutti ]
  step=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' run/metrics.jsonl | tail -n 1)
  "$@" "$tutti" train --steps $((step + 3)) --model 512 --resume run/checkpoint.tutti --output again >log 2>&1 || { cat log; exit 1; }
  grep -q "going on after step $step" log
  echo "stopped after step $step and resumed"
}

start "$@"
kill -TERM "$rank"
stopped "$@"

start "$source/scripts/run-mpi" 3
kill -TERM "$job"
stopped "$@"

# The others are halted, so that this one waits for them.
start "$@"
others=$(pgrep -x "$(basename "$tutti")" | grep -vx "$rank" || true)
for other in $others; do kill -STOP "$other" 2>/dev/null || true; done
sleep 1
kill -TERM "$rank"
sleep 1
kill -0 "$rank" 2>/dev/null || { echo "the first signal ended a rank that waits"; exit 1; }
kill -TERM "$rank"
for _ in $(seq 30); do kill -0 "$rank" 2>/dev/null || break; sleep 0.1; done
if kill -0 "$rank" 2>/dev/null && [ "$(ps -o stat= -p "$rank" | cut -c1)" != Z ]; then echo "the second signal did not end it"; exit 1; fi
for other in $others; do kill -CONT "$other" 2>/dev/null || true; done
wait $job && { echo "a job with a killed rank ended with status 0"; exit 1; }
echo "all passed"
