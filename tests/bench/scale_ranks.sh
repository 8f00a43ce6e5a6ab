#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Several ranks on the processors of one machine against one process, each with one thread, in turns, so that all see the
# same machine:
#
#     scale_ranks.sh [RANKS [ROUNDS [ARCH [PIXELS [BATCH]]]]]
#
# Prints the best rate of each (on a machine that others use too, the round that was least disturbed) and the processor
# time for an image, which others disturb less. Run it where dl2-train is on the PATH.
set -eu
ranks=${1:-2} rounds=${2:-5} arch=${3:-resnet10} pixels=${4:-64} batch=${5:-64} steps=20
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
# processor: seconds of this shell's children so far, from what `times` left in a file.
processor() { tail -n 1 "$out/times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'; }
# run NAME IMAGES OPTIONS...: its second epoch's rate, and processor milliseconds an image over both.
run() {
    name=$1 images=$2; shift 2
    times >"$out/times"; before=$(processor)
    dl2-train --quiet --loader synthetic -a "$arch" --image-size "$pixels" -b "$batch" --threads 1 -e 2 \
        --images "$images" --restart --checkpoint-every 0 --out "$out/run" "$@" >/dev/null
    times >"$out/times"
    rate=$(sed -n 's/^      "images_per_second": \([0-9.]*\).*/\1/p' "$out/run/experiment_report.json" | tail -n 1)
    echo "$rate $(processor) $before $images" | awk '{ print $1, ($2 - $3) * 1000 / (2 * $4) }' >>"$out/$name"
}
for round in $(seq "$rounds"); do
    run alone $((batch * steps))
    run ranks $((batch * steps * ranks)) --ranks "$ranks"
    run sync $((batch * steps * ranks)) --ranks "$ranks" --sync-bn
done
for name in alone ranks sync; do
    awk -v name=$name '{ if ($1 > rate) rate = $1; if (NR == 1 || $2 < time) time = $2 } END { print name, rate, time }' "$out/$name"
done | awk -v n="$ranks" '
    { rate[$1] = $2; time[$1] = $3 }
    END {
        printf "one process: %.0f img/s, %.2f ms of processor time an image\n", rate["alone"], time["alone"]
        printf "%d ranks: %.0f img/s (%.2f times), %.2f ms\n", n, rate["ranks"], rate["ranks"] / rate["alone"], time["ranks"]
        printf "%d ranks with --sync-bn: %.0f img/s (%.2f times), %.2f ms\n", n, rate["sync"], rate["sync"] / rate["alone"], time["sync"]
    }'
