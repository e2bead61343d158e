#!/usr/bin/env bash
# Runs a command and holds its exit status and its output against what is expected.
# Usage: expect.sh zero|nonzero [PATTERN | !PATTERN | 1PATTERN]… -- COMMAND…
# Extended regular expressions over lines; with ! no line may match, with 1 exactly one must.
set -uo pipefail
kind=$1
shift
patterns=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do patterns+=("$1"); shift; done
[ $# -ge 2 ] || { echo "expect.sh: no command after --" >&2; exit 2; }
shift
output=$("$@" 2>&1 </dev/null)
status=$?
failed=0
complain() { echo "EXPECTED $1"; failed=1; }
case "$kind:$status" in
  zero:0) ;;
  nonzero:0) complain "a non-zero exit status, found 0" ;;
  nonzero:124 | nonzero:137) complain "an end of its own, but it ran into the time limit" ;;
  nonzero:*) ;;
  *) complain "exit status $kind, found $status" ;;
esac
for pattern in "${patterns[@]}"; do
  if [[ "$pattern" == '!'* ]]; then
    if grep -qE -- "${pattern#!}" <<<"$output"; then complain "not to read: ${pattern#!}"; fi
  elif [[ "$pattern" == 1* ]]; then
    count=$(grep -cE -- "${pattern#1}" <<<"$output")
    [ "$count" = 1 ] || complain "one line of: ${pattern#1}, found $count"
  elif ! grep -qE -- "$pattern" <<<"$output"; then
    complain "to read: $pattern"
  fi
done
if [ $failed != 0 ]; then printf '%s\n---- output (exit status %s):\n%s\n' "$*" "$status" "$output"; fi
exit $failed
