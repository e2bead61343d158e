#!/usr/bin/env bash
# scripts/lib.sh gives each MPI's launcher the flags that it needs: launchers that only tell their version stand in for the real ones.
# Usage: launch_test.sh SOURCE
set -euo pipefail
source "$1/scripts/lib.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
checked=0

# expect VERSION RANKS FLAGS…: exactly these flags after "-n RANKS", root's own aside.
expect() {
  local version=$1 ranks=$2
  shift 2
  printf '#!/bin/sh\nprintf "%%s\\n" "%s"\n' "$version" >"$work/mpirun"
  chmod +x "$work/mpirun"
  MPIRUN=$work/mpirun mpi_launch "$ranks"
  local wanted=("$work/mpirun" -n "$ranks")
  if [[ "$version" == *"Open MPI"* ]] && [ "$(id -u)" = 0 ]; then wanted+=(--allow-run-as-root); fi
  wanted+=("$@")
  checked=$((checked + 1))
  if [ "${launch[*]}" != "${wanted[*]}" ]; then
    failed=$((failed + 1))
    printf 'FAILED for %s\n  expected: %s\n  found:    %s\n' "$version" "${wanted[*]}" "${launch[*]}"
  fi
}

jobs=4
expect "mpirun (Open MPI) 4.1.4" 4 --oversubscribe --mca mpi_yield_when_idle 1
expect "mpirun (Open MPI) 4.1.4" 5 --oversubscribe --mca mpi_yield_when_idle 1 --bind-to none
expect "mpirun (Open MPI) 5.0.3" 4 --map-by :oversubscribe --mca mpi_yield_when_idle 1
expect "mpirun (Open MPI) 5.0.3" 5 --map-by :oversubscribe --mca mpi_yield_when_idle 1 --bind-to none
expect "HYDRA build details: Version: 4.0.2" 5
expect "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005" 5
checked=$((checked + 1))
output=$(MPIRUN='' PATH=/nonexistent build=/nonexistent mpi_launch 2 2>&1) && status=0 || status=$?
if [ "$status" = 0 ] || [[ "$output" != *"no mpirun found; scripts/setup installs one"* ]]; then
  echo "FAILED: a machine without mpirun (status $status): $output"
  failed=$((failed + 1))
fi
echo "launch: $checked checked, $failed failed"
[ $failed = 0 ]
