#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Eight models that hop over two ranks, against the same models one after the other, and against data parallel training
# of one: wall time, processor time, and bytes that move between ranks. Each process has one thread to train and one to
# load. One after the other they have one core, as a rank has, and the two ranks have two.
#
#     hop.sh DATASET [OPTION...]
#
# OPTION... are dl2-train's. Run it on an idle machine of at least two cores, where dl2-train is on the PATH.
set -eu
data=$1
shift
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
for i in 1 2 3 4 5 6 7 8; do echo "{\"name\": \"model-$i\", \"lr\": 0.0$i}"; done >"$out/configs"
train() { taskset -c $cores dl2-train --quiet -d "$data" -j 1 --threads 1 -e 2 --checkpoint-every 0 "$@" >/dev/null 2>&1; }
sequential() { for i in 1 2 3 4 5 6 7 8; do train --lr 0.0$i --out "$out/alone-$i" "$@"; done; }
clock() { date +%s.%N; }
processors() { times >"$out/times"; tail -n 1 "$out/times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'; }
# measure COMMAND...: prints its seconds of wall time and of processors.
measure() {
    wall=$(clock); processors >"$out/before"
    "$@"
    processors >"$out/after"
    echo "$(clock) $wall $(cat "$out/after") $(cat "$out/before")" | awk '{ print $1 - $2, $3 - $4 }'
}
bytes() { sed -n 's/.*"bytes_moved": *\([0-9]*\).*/\1/p' "$@" | awk '{ sum += $1 } END { print sum + 0 }'; }
cores=0
measure sequential "$@" >"$out/sequential"
cores=0-1
measure train several --configs "$out/configs" --hop --ranks 2 --out "$out/hop" "$@" >"$out/hopping"
measure train --lr 0.01 --ranks 2 --out "$out/parallel" "$@" >"$out/parallel.time"
paste "$out/sequential" "$out/hopping" | awk '{
    printf "eight models: one by one %.1f s (%.1f s of processors), hopping %.1f s (%.1f s)\n", $1, $2, $3, $4
    printf "wall time: %.2f times; each rank'\''s processor time: %.2f times\n", $3 / $1, $4 / 2 / $2 }'
echo "$(bytes "$out/hop/visits.jsonl") $(bytes "$out/parallel/experiment_report.json")" | awk '{
    printf "bytes between ranks: hopping %.1f MB a model, data parallel %.1f MB: %.3f times\n", $1 / 8e6, $2 / 1e6, $1 / 8 / $2 }'
