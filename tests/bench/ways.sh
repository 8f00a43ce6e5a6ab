#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Four models on two ranks, data parallel, hopping and task parallel: what dl2-load analyze predicts for an epoch, and
# what it takes: bytes that move between ranks, wall time, and processor time of a rank, which other programs disturb
# less. Each process has one thread of one processor.
#
#     ways.sh DATASET [OPTION...]
#
# OPTION... are dl2-train's -a, --image-size and -b. Run it on an idle machine of two cores, with dl2-train and dl2-load
# on the PATH.
set -eu
data=$1
shift
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
for i in 1 2 3 4; do echo "{\"name\": \"model-$i\", \"lr\": 0.0$i}"; done >"$out/configs"
train() { dl2-train --quiet -d "$data" -j 1 --threads 1 -e 2 --checkpoint-every 0 --skip-validation "$@" >/dev/null 2>&1; }
parallel() { for i in 1 2 3 4; do train --lr 0.0$i --ranks 2 --out "$out/data-$i" "$@"; done; }
processors() { times >"$out/times"; tail -n 1 "$out/times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'; }
# measure COMMAND...: seconds of an epoch, of the clock and of a rank's processors.
measure() {
    clock=$(date +%s.%N); processors >"$out/before"
    "$@"
    processors >"$out/after"
    echo "$(date +%s.%N) $clock $(cat "$out/after") $(cat "$out/before")" | awk '{ printf "%.2f s, %.2f s", ($1 - $2) / 2, ($3 - $4) / 4 }'
}
moved() { sed -n 's/.*"bytes_moved": *\([0-9]*\).*/\1/p' "$@" | awk '{ sum += $1 } END { printf "%.3f MB", sum / 2e6 }'; }
train --loader synthetic --out "$out/device" "$@"
taskset -c 0 dl2-load analyze --quiet -j 1 --seconds 3 --device-report "$out/device/experiment_report.json" \
    --device-kind shared --models 4 --ranks 2 "$data" | grep -A 4 '^An epoch of'
echo "measured, for an epoch: wall time, processor time of a rank, bytes moved"
echo "data parallel  $(measure parallel "$@"), $(moved "$out"/data-*/experiment_report.json)"
echo "hopping        $(measure train several --configs "$out/configs" --hop --ranks 2 --out "$out/hop" "$@"), $(moved "$out/hop/visits.jsonl")"
echo "task parallel  $(measure train several --configs "$out/configs" --task --ranks 2 --out "$out/task" "$@"), $(moved "$out/task/visits.jsonl")"
