#!/usr/bin/env bash
# Holds what ptxas said of every kernel against a budget: no stack, no spills, no more registers or shared memory than the table has.
# Usage: budget.sh BUDGET REPORT…          checks
#        budget.sh --write BUDGET REPORT…  writes the table anew
set -euo pipefail
write=0
[ "$1" = --write ] && { write=1; shift; }
budget=$1
shift

# "registers shared stack spills kernel", the most over all architectures.
table() {
  awk '
    /Compiling entry function/ { split($0, q, "\047"); kernel = q[2] }
    /bytes stack frame/ { stack = $1; spills = $5 + $9 }
    /Used [0-9]+ registers/ {
      shared = 0
      for (i = 1; i <= NF; ++i) { if ($i == "Used") registers = $(i + 1); if ($i == "bytes" && $(i + 1) ~ /^smem/) shared = $(i - 1) }
      if (!(kernel in r)) { r[kernel] = s[kernel] = f[kernel] = p[kernel] = 0 }
      if (registers > r[kernel]) r[kernel] = registers
      if (shared > s[kernel]) s[kernel] = shared
      if (stack > f[kernel]) f[kernel] = stack
      if (spills > p[kernel]) p[kernel] = spills
    }
    END { for (kernel in r) print r[kernel], s[kernel], f[kernel], p[kernel], kernel }' "$@" | c++filt |
    sed -E 's/void tutti::cuda::run_kernel<(.*)>\(.*/\1/; s/tutti::(cuda|compress):://g; s/\((BlockFormat|tutti::DType|tutti::Op)\)//g; s/(Reduce<)([0-9]+), ([0-9]+)/\1type \2, op \3/; s/ +$//' | sort -k 5
}

if [ $write = 1 ]; then
  { echo "# registers, bytes of shared memory, kernel; written by tests/cuda/budget.sh --write"; table "$@" | awk '{ $3 = $4 = ""; print }' | tr -s ' '; } > "$budget"
  exit
fi
table "$@" | awk -v budget="$budget" '
  BEGIN {
    while ((getline line < budget) > 0) {
      if (line ~ /^#/) continue
      split(line, w, " "); name = line; sub(/^[0-9]+ [0-9]+ /, "", name)
      registers[name] = w[1]; shared[name] = w[2]
    }
  }
  function complain(what) { print "FAILED: " name ": " what; failed = 1 }
  {
    name = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ [0-9]+ /, "", name)
    ++kernels; seen[name] = 1
    printf "%4d registers %6d shared  %s\n", $1, $2, name
    if (!(name in registers)) { complain("not in " budget "; write the table anew"); next }
    if ($1 > registers[name]) complain($1 " registers, at most " registers[name])
    if ($2 > shared[name]) complain($2 " bytes of shared memory, at most " shared[name])
    if ($3 > 0) complain($3 " bytes of stack: an array that is indexed at run time?")
    if ($4 > 0) complain($4 " bytes of spills")
  }
  END {
    for (name in registers) if (!(name in seen)) complain("in " budget ", but not compiled")
    if (kernels == 0) { print "FAILED: no kernels"; failed = 1 }
    exit failed
  }'
