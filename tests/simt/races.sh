#!/usr/bin/env bash
# The thread sanitizer finds no race in the kernels, and finds the planted one: both of its lines.
# Usage: races.sh SIMT_RACES TOYS_HPP
set -uo pipefail
failed=0
line_of() { grep -n "// the planted race: its $1" "$toys" | cut -d: -f1; }
toys=$2
export TSAN_OPTIONS="exitcode=66 halt_on_error=0"

output=$("$1" kernels 2>&1) || { failed=1; echo "FAILED: kernels"; echo "$output"; }
grep -q "ran to the end" <<<"$output" || { failed=1; echo "FAILED: kernels did not run to the end"; }

output=$("$1" planted 2>&1)
status=$?
[ "$status" = 66 ] || { failed=1; echo "FAILED: planted: status $status, expected 66"; }
for line in "$(line_of write)" "$(line_of read)"; do
  grep -qE "#0 .*toys.hpp:$line" <<<"$output" || { failed=1; echo "FAILED: line $line of toys.hpp is not named: $output"; }
done
[ "$failed" = 0 ] && echo "races: all as expected"
exit "$failed"
