#!/usr/bin/env bash
# Every bad input ends the whole job with a clear message and a non-zero status, without hanging. Usage: bad_input.sh TUTTI SOURCE LAUNCH…
set -uo pipefail
tutti=$1 source=$2
shift 2
launch=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

# expect STATUS-OR-any TEXT ARGUMENTS…: tutti must fail and say TEXT.
expect() {
  local text=$1 status output
  shift
  output=$("${launch[@]}" "$tutti" "$@" 2>&1 </dev/null)
  status=$?
  if [ $status = 0 ] || [ $status = 124 ] || ! grep -qF -- "$text" <<<"$output"; then
    failed=$((failed + 1))
    printf 'FAILED (status %s): tutti %s\n  expected to read: %s\n%s\n' "$status" "$*" "$text" "$output"
  elif [ "$(grep -cF -- "$text" <<<"$output")" != 1 ]; then
    failed=$((failed + 1))
    printf 'FAILED: tutti %s says it more than once:\n%s\n' "$*" "$output"
  else
    passed=$((passed + 1))
  fi
}

cd "$work" || exit 1
head -c 20000 "$source/tools/data/digits.csv.gz" >cut.csv.gz
printf '1,2,0\n2,nan,1\n3,4,1\n' >nan.csv
printf '1,2,0\n2,3,1\n3,4,-7\n' >label.csv
printf '1,2,0\n' >single.csv
printf '1,2,0\n2,3,1\n3,4,1\n4,1,0\n5,6,1\n' >numbers.csv
: >empty.csv
mkdir idx
for part in train t10k; do
  printf '\0\0\010\003\0\0\0\002\0\0\0\001\0\0\0\001ab' >idx/$part-images-idx3-ubyte
  printf '\0\0\010\001\0\0\0\002\001\012' >idx/$part-labels-idx1-ubyte
done
mkdir cut
cp idx/* cut/
printf '\0\0\010\003\0\0\0\005\0\0\0\001\0\0\0\001ab' >cut/train-images-idx3-ubyte
"${launch[@]}" "$tutti" train --steps 5 --output good >/dev/null 2>&1 || { echo "FAILED: a good run"; failed=$((failed + 1)); }
head -c 1000 good/checkpoint.tutti >short.tutti

expect "--epochz" train --epochz 5
expect "--lr" train --lr fast
expect "say which: --algorithm NAME" explain
expect "A subcommand is required" # none
expect "no such file or folder" train --data missing.csv
expect "cut.csv.gz': the compressed data are cut short" train --data cut.csv.gz
expect "line 2 column 2: the value is nan" train --data nan.csv
expect "line 3: label -7 is out of range" train --data label.csv
expect "byte 9: label 10 is out of range" train --data idx
expect "cut/train-images-idx3-ubyte' is cut short" train --data cut
expect "0 samples" train --data empty.csv
expect "1 samples; at least one to train" train --data single.csv
expect "--epochs: expected a whole number" train --epochs -1
expect "--steps: expected a whole number" train --steps=-5
expect "--batch: expected a whole number" train --batch 1e99
expect "test part 0: expected more than 0" train --test-part 0
expect "expected at most" train --epochs 999999999999
expect "global batch is 0" train --batch 0
expect "short.tutti' is cut short" train --resume short.tutti
expect "of another run: its model is" train --resume good/checkpoint.tutti --model 16
expect "lenet needs images of at least 12 × 12 pixels and outputs; there are 8 × 8 and 10" train --model lenet
expect "--model lenet needs images; the samples of numbers.csv are none" train --model lenet --data numbers.csv
TUTTI_DATASETS=nowhere expect "no folder 'nowhere/fashion-mnist'; install Debian's dataset-fashion-mnist" train --data fashion-mnist
expect "cannot open 'none.tutti'" train --resume none.tutti
expect "cannot make the output folder" train --output empty.csv
expect "no allreduce algorithm 'fancy'" train --algorithm fancy --steps 1 --output ""
expect "the loss is nan" train --lr 1e30 --output ""
TUTTI_ALGORITHM=fancy expect "no allreduce algorithm 'fancy'" train --steps 1 --output ""
TUTTI_SEGMENT_BYTES=many expect "TUTTI_SEGMENT_BYTES='many'" train --steps 1 --output ""
# Options of one rank only: every launcher tells the rank by a variable of its own.
if [[ " ${launch[*]} " != *" 1 "* ]]; then
  # shellcheck disable=SC2016  # expanded by each rank
  launch+=(sh -c 'rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; program=$0; if [ "$rank" = 1 ]; then exec "$program" "$@" --batch 32; else exec "$program" "$@"; fi')
  expect "the options differ between ranks: --batch '32' here, --batch '64' on rank 0" train --steps 5 --output ""
fi
echo "bad input: $passed passed, $failed failed"
[ $failed = 0 ]
