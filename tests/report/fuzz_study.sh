#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays result files, good and damaged, through the report.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
variant "$work/study" jpeg-50 jpeg 50 1000000 32 0.93 900
variant "$work/study" jpeg-25 jpeg 25 800000 31 0.92 900
training "$work/study" jpeg-50 convnet 1 0.81
training "$work/study" jpeg-25 convnet 1 0.81
evaluation "$work/study" jpeg-25 convnet 1 data:0.5 jpeg-25:0.6 jpeg-50:0.7
crops "$work/study" 100 jpeg-50
survey "$work/study"
training "$work/study" raw convnet 1 0.82
expect 0 dl2-report --interim 2,3 --gnuplot "$work/none" -o "$work/study/report/page.html" "$work/study"
mkdir -p "$work/corpus" "$work/study/train/jpeg-10/a/seed-1"
study=$work/study kind=0
resamples=$(awk 'BEGIN { for (i = 0; i < 100; i++) printf "%s0.%d", i ? ", " : "", 50 + i % 7 }')
cat >"$study/train/jpeg-10/a/seed-1/experiment_report.json" <<JSON
{"schema": "dl2-experiment/1", "completed": true, "final": [{"name": "jpeg-10", "value": 0.25, "outcomes": "o.csv",
 "metric": {"name": "mAP", "unit": "fraction", "higher_is_better": true}, "resamples": [$resamples]}]}
JSON
echo '{"key": "train/1", "bytes": 64, "source_bytes": 1024, "width": 12, "height": 8, "source_width": 24, "source_height": 16}' \
    >"$study/variants/jpeg-25/dl2-variant.jsonl"
timeline "$study" a 1 train/raw 1000 100
for file in variants/jpeg-50/dl2-variant.json quality/jpeg-50.json load/jpeg-50.json \
    train/jpeg-50/convnet/seed-1/experiment_report.json \
    train/jpeg-25/convnet/seed-1/evaluation/evaluation_report.json crops/crops.json survey.json \
    train/jpeg-10/a/seed-1/experiment_report.json variants/jpeg-25/dl2-variant.jsonl \
    timelines/dl2-study-a-1.json report/plan.json; do
    first="\\$(printf %03o $kind)"
    { printf "$first"; cat "$study/$file"; } >"$work/corpus/$kind-whole" || fail "no $file"
    # The right schema, and everything else of another type than expected.
    sed -e 's/\("[a-z_0-9]*"\): *-\{0,1\}[0-9][0-9.]*/\1: "text"/g' "$study/$file" >"$work/typed"
    { printf "$first"; cat "$work/typed"; } >"$work/corpus/$kind-text"
    sed -e 's/\[.*\]/7/g' -e 's/: *-\{0,1\}[0-9][0-9.]*/: -1e308/g' "$study/$file" >"$work/typed"
    { printf "$first"; cat "$work/typed"; } >"$work/corpus/$kind-extreme"
    kind=$((kind + 1))
done
DL2_FUZZ_SECONDS=4; export DL2_FUZZ_SECONDS
cd "$work" || exit 99
expect 0 "$builddir/tests/report/fuzz_study" -runs=0 corpus
