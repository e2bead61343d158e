#!/usr/bin/env bash
# Hosts out of network namespaces: each with its own network, host name and shared memory, joined by a bridge, with a rate.
# Usage: hosts.sh up N RATE | run N SLOTS COMMAND… | sent I | down        (RATE in tc's words: 1gbit, 100mbit)
# Needs root, iproute2 and Open MPI. Addresses 10.78.0.I exist inside the namespaces only; names begin with tutti-h.
set -euo pipefail
self=$(readlink -f "$0")
case "${1:-}" in
up)
  n=$2 rate=$3
  ip netns add tutti-hsw
  ip -n tutti-hsw link add br0 type bridge
  ip -n tutti-hsw link set br0 up
  for i in $(seq "$n"); do
    ip netns add "tutti-h$i"
    ip link add v0 netns "tutti-h$i" type veth peer name "p$i" netns tutti-hsw
    ip -n tutti-hsw link set "p$i" master br0 up
    ip -n "tutti-h$i" addr add "10.78.0.$i/24" dev v0
    ip -n "tutti-h$i" link set v0 up
    ip -n "tutti-h$i" link set lo up
    ip netns exec "tutti-h$i" tc qdisc add dev v0 root tbf rate "$rate" burst 128kb latency 50ms
    mkdir -p "/etc/netns/tutti-h$i"
    { echo "127.0.0.1 localhost"; for j in $(seq "$n"); do echo "10.78.0.$j tutti-h$j"; done; } >"/etc/netns/tutti-h$i/hosts"
  done ;;
run)
  n=$2 slots=$3
  shift 3
  file=$(mktemp)
  trap 'rm -f "$file"' EXIT
  for i in $(seq "$n"); do echo "tutti-h$i slots=$slots"; done >"$file"
  "$self" _enter tutti-h1 mpirun.openmpi --allow-run-as-root --hostfile "$file" -n $((n * slots)) --map-by slot --bind-to none \
    --mca plm rsh --mca plm_rsh_agent "$self _agent" --mca btl tcp,vader,self --mca btl_tcp_if_include 10.78.0.0/24 \
    --mca oob_tcp_if_include 10.78.0.0/24 --mca mpi_yield_when_idle 1 "$@" ;;
_agent) # as Open MPI calls it: [options] host command…
  shift
  while [[ "$1" == -* ]]; do shift; done
  host=$1
  shift
  exec "$self" _enter "$host" sh -c "$*" ;;
_enter)
  host=$2
  shift 2
  mkdir -p "${TMPDIR:-/tmp}/$host"
  # shellcheck disable=SC2016  # expanded inside
  exec ip netns exec "$host" unshare --uts --mount env TMPDIR="${TMPDIR:-/tmp}/$host" \
    sh -c 'hostname "$0"; mount -t tmpfs tmpfs /dev/shm; exec "$@"' "$host" "$@" ;;
sent) ip netns exec "tutti-h$2" cat /sys/class/net/v0/statistics/tx_bytes ;;
down)
  for name in $(ip netns list | awk '{print $1}' | grep -E '^tutti-h([0-9]+|sw)$'); do ip netns del "$name"; done
  rm -rf "${TMPDIR:-/tmp}"/tutti-h[0-9]* /etc/netns/tutti-h[0-9]* ;;
*)
  sed -n '3,4p' "$self" >&2
  exit 2 ;;
esac
