#!/usr/bin/env bash
# Jobs, of which some lose a rank to SIGKILL at a random point: each ends soon, and nothing of tutti's is left behind: no process, no file
# in /dev/shm or in the folder for temporary files. What the MPI library leaves there is listed apart. Usage: killed.sh TUTTI JOBS KILLED LAUNCH…
set -uo pipefail
tutti=$1 jobs=$2 killed=$3
shift 3
name=$(basename "$tutti")
failed=0
files() { find /dev/shm "${TMPDIR:-/tmp}" -maxdepth 2 2>/dev/null | sort; }
before=$(files)
RANDOM=4711
for i in $(seq "$jobs"); do
  "$@" "$tutti" bench -b 4 -e 256K -f 4 -n 40 --buffer arena >/dev/null 2>&1 &
  job=$!
  if [ "$i" -le "$killed" ]; then
    sleep "0.$((RANDOM % 8 + 1))"
    mapfile -t ranks < <(pgrep -x "$name")
    if [ ${#ranks[@]} -gt 0 ]; then kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}" 2>/dev/null; fi
  fi
  start=$SECONDS
  while kill -0 $job 2>/dev/null && [ $((SECONDS - start)) -lt 20 ]; do sleep 0.05; done
  if kill -0 $job 2>/dev/null; then echo "job $i hangs"; failed=$((failed + 1)); kill -KILL $job; pkill -KILL -x "$name"; fi
  wait $job 2>/dev/null
done
sleep 0.5
if pgrep -x "$name" >/dev/null; then echo "processes are left:"; pgrep -ax "$name"; failed=$((failed + 1)); fi
left=$(comm -13 <(echo "$before") <(files))
if grep -q tutti <<<"$left"; then echo "files are left:"; grep tutti <<<"$left"; failed=$((failed + 1)); fi
echo "left by others: $(grep -vc tutti <<<"$left")"
echo "killed: $jobs jobs, $killed of them killed, $failed failed"
[ $failed = 0 ]
