#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Are the rates that dl2-load analyze predicts those that dl2-train comes to on the cpu device?
#
#     check_prediction.sh [DATASET [ARCH [PIXELS [ROUNDS]]]]
#
# Run it from a build folder. Without a DATASET it cuts the demo dataset (study/demo-dataset.sh). Three variants that
# cost very different times to decode, jpeg-50, webp-50 and png, are made of it. Then, round by round: the device's rate by
# dl2-train --loader synthetic, the predictions, and a training of each variant, so that a machine that others use, too,
# is the same for both. Prints predicted and measured images/s (of epochs 2 and 3) of each round and, in the end, the
# median of the rounds' ratios; exits with 1 where one is off by more than 10%.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dataset=${1:-} arch=${2:-resnet10} pixels=${3:-64} rounds=${4:-7}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
if [ -z "$dataset" ]; then
    dataset=$work/demo
    sh "$here/../../study/demo-dataset.sh" "$dataset"
fi
./dl2-transcode --quiet --codec jpeg,webp,png --q 50 "$dataset" "$work/variants" >/dev/null
images=$(find "$work/variants/png/train" -type f 2>/dev/null | wc -l)
[ "$images" -gt 0 ] || images=$(find "$work/variants/png" -name '*.png' | wc -l)

# epochs REPORT: images/s of all epochs but the first, which makes oneDNN's plans
epochs() { sed -n 's/^ *"images_per_second": *\([0-9.]*\).*/\1/p' "$1/experiment_report.json" | tail -n +2; }
median() { sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
train() { ./dl2-train --quiet --device cpu -a "$arch" --image-size "$pixels" -e 3 --restart "$@" >/dev/null; }

for round in $(seq "$rounds"); do
    train --loader synthetic --images "$images" --out "$work/device"
    ./dl2-load analyze --quiet --seconds 0.6 --device-report "$work/device/experiment_report.json" \
        --json "$work/analysis.json" "$work/variants/jpeg-50" "$work/variants/webp-50" "$work/variants/png" >/dev/null
    for variant in jpeg-50 webp-50 png; do
        train --data "$work/variants/$variant" --skip-validation --out "$work/$variant"
        measured=$(epochs "$work/$variant" | median)
        predicted=$(awk -F'[:,]' -v name="\"$variant\"" '
            /"variant"/ { here = index($2, name) } /"predicted"/ { getline; getline; if (here) print $2 + 0 }' \
            "$work/analysis.json")
        echo "round $round, $variant: device $(epochs "$work/device" | median), predicted $predicted, measured $measured" \
            "images/s"
        echo "$predicted $measured" >>"$work/$variant.rounds"
    done
done
status=0
for variant in jpeg-50 webp-50 png; do
    ratio=$(awk '{ print $1 / $2 }' "$work/$variant.rounds" | median)
    echo "$variant: predicted / measured = $ratio, the median of $rounds rounds"
    awk -v r="$ratio" 'BEGIN { exit !(r < 0.9 || r > 1.1) }' && status=1
done
exit $status
