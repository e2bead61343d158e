#!/usr/bin/env bash
# tutti across hosts made of network namespaces: results are right, replicas agree, and by the interfaces' own counters the bytes crossed,
# as many as they must. Skipped (77) where namespaces cannot be made. Usage: hosts_test.sh TUTTI
set -uo pipefail
tutti=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
if [ "$(id -u)" != 0 ] || ! command -v ip tc mpirun.openmpi >/dev/null; then
  echo "needs root, iproute2 and Open MPI"
  exit 77
fi
"$hosts" down 2>/dev/null
"$hosts" up 3 1gbit 2>/dev/null || { "$hosts" down; echo "network namespaces cannot be made here"; exit 77; }
trap '"$hosts" down' EXIT
failed=0

sent() { local sum=0 i; for i in $(seq "$1"); do sum=$((sum + $("$hosts" sent "$i"))); done; echo $sum; }

# crosses HOSTS SLOTS BYTES FACTOR: an allreduce of BYTES sends FACTOR/100 of them from each host, and at most 7 % more.
crosses() {
  local n=$1 slots=$2 bytes=$3 factor=$4 calls=8 before after output each counted
  before=$(sent "$n")
  output=$(timeout 60 "$hosts" run "$n" "$slots" "$tutti" bench -b "$bytes" -e "$bytes" -n $((calls - 2)) -w 1 -c 1 --format csv 2>&1)
  after=$(sent "$n")
  # Samples out of place and in place, each kind after one that does not count, and a call whose messages are counted.
  counted=$(timeout 60 "$hosts" run "$n" "$slots" "$tutti" bench -b "$bytes" -e "$bytes" -n 1 -w 0 -c 0 --format json 2>&1 |
    sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p')
  each=$(((after - before) / n / (2 * (calls - 1) + 1)))
  echo "$n hosts x $slots ranks, $bytes bytes: each host sent $each a call; ideal $((bytes * factor / 100))"
  grep -q "^$bytes,.*,0,[0-9.]*,,,$" <<<"$output" || { echo "wrong or no result: $output"; failed=1; }
  [ "${counted:-0}" = $((bytes * 2 * (n - 1))) ] ||
    { echo "by tutti's own counter all hosts sent ${counted:-nothing}, ideal $((bytes * 2 * (n - 1)))"; failed=1; }
  [ $((each * 100)) -ge $((bytes * factor)) ] || { echo "too few bytes crossed: did they go another way?"; failed=1; }
  [ $((each * 100)) -le $((bytes * factor * 107 / 100)) ] || { echo "too many bytes crossed"; failed=1; }
}

crosses 2 1 4194304 100
crosses 3 1 4194304 133
crosses 2 2 8388608 100

work=$(mktemp -d)
cd "$work" || exit 1
output=$(timeout 60 "$hosts" run 3 2 "$tutti" train --steps 60 --output "" 2>&1)
grep -q "bit-identical on 6 ranks" <<<"$output" || { echo "training over hosts failed: $output"; failed=1; }
cd / && rm -rf "$work"
[ $failed = 0 ] && echo "hosts: all passed"
exit $failed
