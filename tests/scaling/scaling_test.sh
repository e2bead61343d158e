#!/usr/bin/env bash
# scripts/scaling: rows come once however often a run is cut, other experiments are refused, failures are shown, and Slurm's part works with
# an srun that only stands in for the real one. Usage: scaling_test.sh TUTTI SOURCE BUILD
set -uo pipefail
tutti=$1 source=$2
export TUTTI_BUILD=$3
run=$source/scripts/scaling/run
work=$(mktemp -d)
sleepers=()
trap 'if [ ${#sleepers[@]} -gt 0 ]; then kill -KILL "${sleepers[@]}" 2>/dev/null; fi; rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checked=0
unset SLURM_JOB_ID SLURM_NTASKS

# check TEXT COMMAND…: the command succeeds.
check() {
  local text=$1
  shift
  checked=$((checked + 1))
  "$@" >check.log 2>&1 && return
  failed=$((failed + 1))
  printf 'FAILED: %s: %s\n' "$text" "$*"
  cat check.log
}

# expect STATUS TEXT ARGUMENTS…: a run with these ends so and says so; whatever CSV there is stays as it is.
expect() {
  local wanted=$1 text=$2 status before
  shift 2
  checked=$((checked + 1))
  before=$(cat ./*.csv 2>/dev/null)
  "$run" --tutti "$tutti" "$@" >log 2>&1 </dev/null
  status=$?
  if [ $status = "$wanted" ] && grep -qF -- "$text" log && [ "$before" = "$(cat ./*.csv 2>/dev/null)" ]; then return; fi
  failed=$((failed + 1))
  printf 'FAILED (status %s, expected %s): run %s\n  expected to read: %s\n' "$status" "$wanted" "$*" "$text"
  cat log
}

# await COMMAND…: waits until it succeeds.
await() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "FAILED: not within 30 s: $*"; failed=$((failed + 1)); return 1; }
rows() { grep -v '^#' "$1" | tail -n +2 | cut -d, -f1-4 | sort; }
whole() { [ -z "$(tail -c 1 "$1")" ] && awk -F, '!/^#/ && NF != 16 { bad = 1 } END { exit bad }' "$1"; }

small=(--ranks "1 2" --repeats 2 --kinds "bench-weak train-strong" --sizes "4K 64k" --batches 32 --bench "-n 3" --train "--model none --steps 60")
expected=$(for repeat in 1 2; do for n in 1 2; do
  printf '%s\n' "bench-weak,$n,4096,$repeat" "bench-weak,$n,65536,$repeat" "train-strong,$n,32,$repeat"
done; done | sort)

# A launcher that stands still at one call, then told to go on: the run is killed in that call, at the same place every time.
cat >slow <<TEXT
#!/usr/bin/env bash
calls=\$((\$(cat "$work/calls") + 1))
echo \$calls >"$work/calls"
if [ \$calls = "\$(cat "$work/halt")" ]; then echo \$\$ >"$work/halted"; exec sleep 60; fi
exec "$source/scripts/run-mpi" "\$2" "\${@:3}"
TEXT
chmod +x slow
slow=("$run" --tutti "$tutti" --launcher "$work/slow" --output cut.csv "${small[@]}")
# Calls 1 to 3 ask where the ranks are; then the first row of bench, a second, the training of a row, its gradient's allreduce.
for halt in 4 5 8 9 2; do
  rm -f halted
  echo 0 >calls
  echo $halt >halt
  "${slow[@]}" >cut.log 2>&1 &
  job=$!
  await test -s halted || { cat cut.log; break; }
  sleepers+=("$(cat halted)")
  expect 1 "another run is writing 'cut.csv'" --launcher "$work/slow" --output cut.csv "${small[@]}"
  kill -KILL $job
  wait $job 2>/dev/null
  if [ -f cut.csv ]; then check "only whole rows after a kill in call $halt" whole cut.csv; fi
done
echo 0 >halt
check "a run that goes on" "${slow[@]}"
check "every row once" test "$(rows cut.csv)" = "$expected"
check "whole rows" whole cut.csv
check "nothing is left beside the CSV" test ! -e cut.csv.work
expect 0 "0 rows measured, 12 were there" --launcher "$work/slow" --output cut.csv "${small[@]}"
check "a message grows with the ranks" grep -q '^bench-weak,2,65536,1,.*=0-1,131072,' cut.csv
check "training has all its columns" grep -qE '^train-strong,2,32,1,[^,]*=0-1,2600(,[0-9.]+){6},32(,[0-9.]+){3}$' cut.csv

# Other experiments, and files that somebody spoilt.
same=(--launcher "$work/slow" "${small[@]}")
expect 1 "now:         # bench: -n 4" --output cut.csv "${same[@]}" --bench "-n 4"
expect 1 "in the file: # launcher: $work/slow" --output cut.csv "${small[@]}"
sed 's/mpi_us/other_us/' cut.csv >header.csv
expect 1 "in the file: kind,ranks,size,repeat,hosts,bytes,time_us,p1_us,p99_us,other_us" --output header.csv "${same[@]}"
{ cat cut.csv; printf 'bench-weak,1,4096,3,vm'; } >half.csv
expect 1 "'half.csv' is damaged: line 20: 5 columns where 16 are expected" --output half.csv "${same[@]}"
{ cat cut.csv; sed -n 9p cut.csv; } >twice.csv
expect 1 "line 20: a second row of bench-weak" --output twice.csv "${same[@]}"
sed -E 's/,[^,]*=0-1,/,elsewhere=0;here=1,/' cut.csv >elsewhere.csv
expect 1 "with 2 ranks they were elsewhere=0;here=1, and are $(hostname)=0-1 now" --output elsewhere.csv "${same[@]}" --repeats 3
expect 1 "unknown option '--rank'" --rank 2
expect 1 "--ranks: '0' is not a whole number" --ranks 0
expect 1 "--sizes: 'big' is not a number of bytes" --sizes big
expect 1 "unknown kind 'strong'" --kinds strong

# A tutti that fails is shown, with the command.
one=(--ranks 2 --repeats 1 --sizes 4K --batches 32)
before=$(find . -name '*.csv' -size +0 | wc -l)
check_failure() { # TEXT OPTIONS…
  local text=$1
  shift
  checked=$((checked + 1))
  if "$run" --tutti "$tutti" --output failing.csv "${one[@]}" "$@" >log 2>&1; then echo "FAILED: status 0: $*"; failed=$((failed + 1)); fi
  if ! grep -qF -- "$text" log || ! grep -qE " -n 2 .*tutti (bench|train) " log; then
    failed=$((failed + 1))
    echo "FAILED: expected to read the command and '$text'"
    cat log
  fi
  check "no row of a failure" test -z "$(rows failing.csv)"
  rm -f failing.csv
}
check_failure "MPI has no type for f16" --kinds bench-strong --bench "-d f16"
check_failure "--modle" --kinds train-weak --train "--modle 3"
check_failure "there are only 1437 samples" --kinds train-weak --batches 1000 --train "--model none --steps 4"
check "no other file came" test "$before" = "$(find . -name '*.csv' -size +0 | wc -l)"

# A signal to the run stops training with a checkpoint and without a row.
long=(--ranks 2 --repeats 1 --kinds train-strong --batches 32 --train "--model 512 --steps 1000000")
"$run" --tutti "$tutti" --output long.csv "${long[@]}" >log 2>&1 &
job=$!
await grep -q '"epoch":1' long.csv.work/train/metrics.jsonl
kill -TERM $job
wait $job
check "status of a stopped run" test $? = 75
check "word of the checkpoint" grep -qF "with a checkpoint in 'long.csv.work/train'" log
check "the checkpoint" test -s long.csv.work/train/checkpoint.tutti
check "no row" test -z "$(rows long.csv)"

# Slurm: what its srun would be asked for, and a signal that only the ranks get.
mkdir bin
cat >bin/srun <<TEXT
#!/usr/bin/env bash
echo "\$*" >>"$work/srun.log"
echo \$\$ >"$work/srun.pid"
n=\$2
shift 2
if [ "\$1" = --mpi=pmix ]; then shift; fi
for name in \${!SLURM_*}; do unset "\$name"; done
TUTTI_BUILD="$TUTTI_BUILD"
source "$source/scripts/lib.sh"
mpi_launch "\$n"
exec "\${launch[@]}" "\$@"
TEXT
chmod +x bin/srun
batch() { # OPTIONS…: job.sbatch as Slurm would start it, but for the copy
  env PATH="$work/bin:$PATH" SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_SUBMIT_DIR="$source" CSV="$work/slurm.csv" bash job --tutti "$tutti" --launcher-args "--mpi=pmix" "$@"
}
cp "$source/scripts/scaling/job.sbatch" job
check "syntax" bash -n job
check "directives" test "$(grep -c '^#SBATCH --signal=USR1@60$' job)" = 1
check "a job" batch --repeats 1 --kinds "bench-strong train-weak" --sizes 4K --batches 32 --train "--model none --steps 60"
check "the ranks of the job's tasks" test "$(rows slurm.csv | cut -d, -f2 | sort -u | xargs)" = "1 2"
check "the launcher in the CSV" grep -qx '# launcher: srun --mpi=pmix' slurm.csv
check "srun's words" grep -qxF -- "-n 2 --mpi=pmix $tutti bench -b 4096 -e 4096 --versus mpi --format csv" srun.log
check "srun's words for training" grep -qF -- "-n 2 --mpi=pmix $tutti train --batch 64 --output $work/slurm.csv.work/train " srun.log
check "once each" test "$(grep -c ' bench -b 4096 ' srun.log)" = 2
rm -f slurm.csv
batch "${long[@]}" >log 2>&1 &
job=$!
await grep -q '"epoch":1' slurm.csv.work/train/metrics.jsonl
kill -USR1 "$(cat srun.pid)"
wait $job
check "status of a job whose steps got the signal" test $? = 75
check "no row of it" test -z "$(rows slurm.csv)"

# The table, of numbers whose answer is known: the second repeat of 4 ranks took twice as long, but so did that of 2 ranks.
{
  grep -v '^[bt]' cut.csv
  grep '^kind' cut.csv
  echo "train-strong,2,64,1,h=0-1,400,10,9,11,20,2,1,64,1.0,64000.0,10.0"
  echo "train-strong,2,64,2,h=0-1,400,10,9,11,30,3,1,64,2.0,32000.0,10.0"
  echo "train-strong,4,64,1,h=0-3,400,10,9,11,10,1,1,64,0.8,80000.0,30.0"
  echo "train-strong,4,64,2,h=0-3,400,10,9,11,20,2,1,64,1.25,51200.0,50.0"
  echo "bench-strong,16,4096,1,h=0-15,4096,10,9,11,10,1,1.5,,,,"
  echo "bench-strong,2,4096,1,h=0-1,4096,5,4,6,10,2,1.5,,,,"
} >known.csv
"$source/scripts/scaling/summary" known.csv >table 2>&1
check "speedup and efficiency" grep -qE '^ +4 +2 +1\.025 \(0\.800\.\.1\.250\) +65600 +1\.43 \(1\.25\.\.1\.60\) +71 \(62\.\.80\) +40 +10\.0 \(10\.0\.\.10\.0\) +1\.50 \(1\.00\.\.2\.00\)$' table
check "bench" grep -qE '^ +2 +1 +4096 +5\.00 \(5\.00\.\.5\.00\) +4\.00\.\.6\.00 +10\.00 \(10\.00\.\.10\.00\) +2\.00 \(2\.00\.\.2\.00\) +1\.50$' table
check "ranks in order" test "$(awk '/^bench/ { b = 1 } b && $1 + 0 > 0 { print $1 }' table | xargs)" = "2 16"
check "a table of a real run" "$source/scripts/scaling/summary" cut.csv
for spoilt in header.csv half.csv none.csv; do check "no table of $spoilt" bash -c "! '$source/scripts/scaling/summary' $spoilt"; done

echo "scaling: $checked checked, $failed failed"
[ $failed = 0 ]
