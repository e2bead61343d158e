#!/usr/bin/env bash
# scripts/scaling over two hosts made of network namespaces, with a hostfile: rows of one host and of two, cut and gone on with, and by the
# interfaces' counters the bytes crossed. Skipped (77) where namespaces cannot be made. Usage: hosts_test.sh TUTTI SOURCE BUILD
set -uo pipefail
tutti=$(readlink -f "$1") source=$2
export TUTTI_BUILD=$3
hosts=$source/tests/hosts/hosts.sh
if [ "$(id -u)" != 0 ] || ! command -v ip tc mpirun.openmpi >/dev/null; then
  echo "needs root, iproute2 and Open MPI"
  exit 77
fi
"$hosts" down 2>/dev/null
"$hosts" up 2 1gbit 2>/dev/null || { "$hosts" down; echo "network namespaces cannot be made here"; exit 77; }
work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
cd "$work" || exit 1
printf 'tutti-h1 slots=1\ntutti-h2 slots=1\n' >hostfile
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$hosts _agent" OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_tcp_if_include=10.78.0.0/24 \
  OMPI_MCA_oob_tcp_if_include=10.78.0.0/24

scaling() { # OPTIONS…
  timeout 100 "$hosts" _enter tutti-h1 "$source/scripts/scaling/run" --tutti "$tutti" --launcher-args "--hostfile $work/hostfile" --ranks "1 2" \
    --kinds "bench-strong train-weak" --sizes 1M --batches 32 --bench "-n 5" --train "--model none --steps 40" "$@"
}
failed=0
before=$("$hosts" sent 2)
scaling --repeats 1 || failed=1
crossed=$(($("$hosts" sent 2) - before))
scaling --repeats 2 >log 2>&1 || failed=1
grep -qF "scaling.csv: 4 rows measured, 4 were there" log || { echo "it did not go on: $(cat log)"; failed=1; }
cat scaling.csv
[ "$(cut -d, -f1-5 scaling.csv | grep -cE '^(bench-strong,1,1048576|train-weak,1,32),[12],tutti-h1=0$')" = 4 ] || { echo "not four rows of one host"; failed=1; }
[ "$(cut -d, -f1-5 scaling.csv | grep -cE '^(bench-strong,2,1048576|train-weak,2,32),[12],tutti-h1=0;tutti-h2=1$')" = 4 ] || { echo "not four rows of two hosts"; failed=1; }
# Ten calls of ours and ten of MPI's, 1 MiB from each host at least.
[ "$crossed" -ge $((20 * 1048576)) ] || { echo "only $crossed bytes crossed"; failed=1; }
echo 'tutti-h1 slots=2' >hostfile
if scaling --repeats 3 >log 2>&1 || ! grep -qF "is of other hosts" log; then
  echo "other hosts are not refused: $(cat log)"
  failed=1
fi
"$source/scripts/scaling/summary" scaling.csv || failed=1
[ $failed = 0 ] && echo "scaling over hosts: all passed"
exit $failed
