#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Several models on one stream of batches, and on one cache of decoded images, against a run of one: wall time, processor
# time, which other programs disturb less, and what of it is decoding. In turns, the least of ROUNDS counts:
#
#     share_batches.sh DATASET [ROUNDS [OPTION...]]
#
# OPTION... are dl2-train's. Run it where dl2-train is on the PATH.
set -eu
data=$1 rounds=${2:-3}
shift; [ $# -eq 0 ] || shift
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
for models in 1 2 4 8; do
    for i in $(seq $models); do echo "{\"name\": \"model-$i\", \"lr\": 0.0$i, \"seed\": $i}"; done >"$out/$models.jsonl"
done
# processor: seconds of this shell's children so far, from what `times` left in a file.
processor() { tail -n 1 "$out/times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'; }
# run NAME OPTIONS...
run() {
    name=$1; shift
    times >"$out/times"; before=$(processor) clock=$(date +%s.%N)
    dl2-train --quiet -d "$data" --skip-validation --checkpoint-every 0 --restart --out "$out/run" "$@" >/dev/null 2>&1
    echo "$(date +%s.%N) $clock" | awk '{ print $1 - $2 }' >>"$out/$name.wall"
    times >"$out/times"
    echo "$(processor) $before" | awk '{ print $1 - $2 }' >>"$out/$name"
}
for round in $(seq "$rounds"); do
    run synthetic --loader synthetic "$@"
    run alone "$@"
    run cached --cache-decoded 1G "$@"
    for models in 1 2 4 8; do
        run $models several --configs "$out/$models.jsonl" "$@"
        run decode-$models several --configs "$out/$models.jsonl" --share decode --cache-decoded 1G "$@"
    done
done
least() { sort -n "$out/$1" | head -n 1; }
alone=$(least alone) wall=$(least alone.wall)
echo "alone: $wall s, $alone s of processor time, $(least synthetic) s without loading, $(least cached) s with --cache-decoded"
for models in 1 2 4 8; do
    for share in batch decode; do
        name=$models
        [ $share = batch ] || name=decode-$models
        echo "$(least $name.wall) $wall $(least $name) $alone" | awk -v what="$models models, --share $share" '{
            printf "%s: %.2f s, %.2f times; %.2f s of processor time, %.2f times\n", what, $1, $1 / $2, $3, $3 / $4 }'
    done
done
