#!/usr/bin/env bash
# tutti tune writes a profile, sessions find and use it, and say what is wrong with one.
# Usage: tune.sh PROGRAM LAUNCH…
set -euo pipefail
program=$1
shift
launch=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TUTTI_PROFILE
export XDG_CACHE_HOME=$work/cache HOME=$work TUTTI_LOG=warning
failed=0

# expect STATUS PATTERNS… -- ARGUMENTS…: every pattern in the output of tutti with these arguments; !PATTERN: not.
expect() {
  local wanted=$1 output status=0 patterns=()
  shift
  while [ "$1" != -- ]; do
    patterns+=("$1")
    shift
  done
  shift
  output=$("${launch[@]}" "$program" "$@" 2>&1) || status=$?
  local bad=""
  if [ "$wanted" = zero ] && [ "$status" != 0 ]; then bad="status $status"; fi
  if [ "$wanted" = nonzero ] && [ "$status" = 0 ]; then bad="status 0"; fi
  for pattern in "${patterns[@]}"; do
    if [ "${pattern:0:1}" = '!' ]; then
      ! grep -Eq -- "${pattern:1}" <<<"$output" || bad="there is '${pattern:1}'"
    else
      grep -Eq -- "$pattern" <<<"$output" || bad="no '$pattern'"
    fi
  done
  [ -z "$bad" ] && return
  failed=$((failed + 1))
  printf 'FAILED (%s): tutti %s\n%s\n' "$bad" "$*" "$output"
}

expect zero '^profile +none$' -- info
expect zero '^ +allreduce +256 +[a-z]' '^# profile: .*/cache/tutti/profile-[0-9a-f]{16}\.json \([0-9]+ rules\)$' -- tune -e 4K -f 8 --seconds 0.01
profile=$(echo "$XDG_CACHE_HOME"/tutti/profile-*.json)
expect zero "^profile +$profile, hash [0-9a-f]{16}, [0-9]+ rules$" -- info
expect zero "^way +[a-z].*: a rule of profile '$profile'" '^this call +predicted [0-9.]+ (us|ms), measured [0-9]' '^bound ' -- explain --bytes 1K
# Another collective joins those that are there.
before=$(grep -c '"collective": "allreduce"' "$profile")
expect zero '^ +broadcast +4096 ' -- tune --collective broadcast -b 4K -e 4K --seconds 0.01
[ "$(grep -c '"collective": "allreduce"' "$profile")" = "$before" ] || { failed=$((failed + 1)); echo "FAILED: the rules for allreduce are gone"; }
grep -q '"collective": "broadcast"' "$profile" || { failed=$((failed + 1)); echo "FAILED: there are no rules for broadcast"; }
TUTTI_PROFILE=off expect zero '^profile +none$' -- info
# The variable says where it goes, too, and need not be there yet; what is there does not matter to a race.
TUTTI_PROFILE=$work/named.json expect zero "^# profile: $work/named.json " -- tune -b 4 -e 4 --seconds 0.01
TUTTI_PROFILE=$work/named.json expect zero "^# profile: $work/named.json " -- tune -b 4 -e 4 --seconds 0.01
TUTTI_PROFILE=$work/named.json expect zero "^profile +$work/named.json, hash" -- info

# Another machine's is not used, unless it is named; rules that nobody knows are left out.
sed -i 's/"machine": ".*"/"machine": "another"/; s/"use": ".*"/"use": "rung"/' "$profile"
expect zero 'warning: .*rule 1 is left out: .*rung' 'made on another machine .*: not used' '^profile +none$' -- info
TUTTI_PROFILE=$profile expect zero 'used, as it was named' "^profile +$profile, hash [0-9a-f]{16}, 0 rules$" -- info
# What is no profile is a warning where it was found, and an error where it was named.
echo '{' >"$profile"
expect zero 'warning: .* is no profile of tutti: .*; it is not used' -- info
TUTTI_PROFILE=$profile expect nonzero 'error: .* is no profile of tutti' '!terminate called' -- info
TUTTI_PROFILE=$work/missing expect nonzero "error: on rank 0: TUTTI_PROFILE='$work/missing': no such file" -- info
expect nonzero 'cannot write' -- tune -b 4 -e 4 --seconds 0.01 --output /proc/no/profile.json
expect nonzero 'sizes from 4096 to 64 bytes' -- tune -b 4K -e 64
expect nonzero "unknown collective 'scan'" -- tune --collective scan
[ "$failed" = 0 ] && echo "all as expected"
exit "$((failed > 0))"
