#!/usr/bin/env bash
# Compiles for CUDA and keeps what ptxas says of every kernel. Usage: nvcc.sh REPORT NVCC ARGUMENTS…
set -uo pipefail
report=$1
shift
if "$@" 2> "$report"; then
  grep -vE '^(ptxas info|    [0-9]+ bytes stack frame)' "$report" >&2
  exit 0
fi
cat "$report" >&2
rm -f "$report"
exit 1
