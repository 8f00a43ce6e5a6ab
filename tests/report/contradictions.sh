#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Results that contradict their folders, each other or themselves are named with what is expected, and not used.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
study=$work/study page=$work/page.html train=$work/study/train
report=experiment_report.json
report() { dl2-report --gnuplot "$work/none" -o "$page" "$study"; }
named() { # TEXT...: these and no others, in the messages and on the page
    expect 1 report
    for text; do
        said "$text"
        says "$page" "$text"
    done
    is "$(grep -c expected "$work/err")" $# "results that are named"
}
edit() { sed "$2" "$1" >"$work/edited" && cat "$work/edited" >"$1" || fail "$1"; }
again() { # a study without faults
    rm -rf "$study"
    two_jpegs "$study"
    trainings "$study" jpeg-10 small 0.602 0.601 0.604
    trainings "$study" jpeg-50 small 0.702 0.701 0.705
}
again
expect 0 report
silent=$(grep -c expected "$work/err")
is "$silent" 0 "faults of a study without any"

# Folders and files.
edit "$train/jpeg-50/small/seed-1/$report" 's/"variant": "jpeg-50"/"variant": "jpeg-10"/'
edit "$train/jpeg-50/small/seed-2/$report" 's/"arch": "small"/"arch": "large"/'
edit "$train/jpeg-50/small/seed-3/$report" 's/"seed": 3/"seed": 2/'
edit "$train/raw/small/seed-3/$report" 's/"variant": "raw"/"variant": "jpeg-50"/'
edit "$study/load/jpeg-10.json" 's/"variant": "jpeg-10"/"variant": "jpeg-50"/'
edit "$study/load/raw.json" 's/"variant": "raw"/"variant": "jpeg-50"/'
edit "$study/quality/jpeg-10.json" 's/"variant": "jpeg-10"/"variant": "jpeg-20"/'
rate "$study" small jpeg-10 1 800
edit "$study/throughput/small/jpeg-10/round-1.json" 's/"arch": "small"/"arch": "large"/'
rate "$study" load jpeg-10 1 800
edit "$study/throughput/load/jpeg-10/round-1.json" 's/"variant": "jpeg-10"/"variant": "jpeg-50"/'
evaluation "$study" jpeg-10 small 1 jpeg-10:0.6
edit "$train/jpeg-10/small/seed-1/evaluation/evaluation_report.json" 's/"seed": 1/"seed": 7/'
other="where the folder's is"
named "$train/jpeg-50/small/seed-1/$report: its variant is jpeg-10, $other jpeg-50: expected the same" \
    "$train/jpeg-50/small/seed-2/$report: its arch is large, $other small: expected the same" \
    "$train/jpeg-50/small/seed-3/$report: its seed is 2, $other 3: expected the same" \
    "$train/raw/small/seed-3/$report: its variant is jpeg-50, $other raw: expected the same" \
    "$study/load/jpeg-10.json: its variant is jpeg-50, $other jpeg-10: expected the same" \
    "$study/load/raw.json: its variant is jpeg-50, $other raw: expected the same" \
    "$study/quality/jpeg-10.json: its variant is jpeg-20, $other jpeg-10: expected the same" \
    "$study/throughput/small/jpeg-10/round-1.json: its arch is large, $other small: expected the same" \
    "$study/throughput/load/jpeg-10/round-1.json: its variant is jpeg-50, $other jpeg-10: expected the same" \
    "$train/jpeg-10/small/seed-1/evaluation/evaluation_report.json: its seed is 7, $other 1: expected the same"
again
edit "$study/variants/jpeg-50/dl2-variant.json" 's/"variant": "jpeg-50"/"variant": "jpeg-60"/'
edit "$study/variants/jpeg-10/dl2-variant.json" 's/"quality": 10/"quality": 90/'
named "$study/variants/jpeg-50/dl2-variant.json: its variant is jpeg-60, $other jpeg-50: expected the same" \
    "$study/variants/jpeg-10/dl2-variant.json: its quality is 90, $other 10: expected the same"

# The original may have the dataset's name in its files.
again
for seed in 1 2 3; do edit "$train/raw/small/seed-$seed/$report" 's/"variant": "raw"/"variant": "photos"/'; done
edit "$study/load/raw.json" 's/"variant": "raw"/"variant": "photos"/'
expect 0 report

# Seeds that are no numbers, and trainings elsewhere.
for name in seed-one seed- seed--1 seed-01 seed-1.5 seed-99999999999999999999 run-4; do
    mkdir "$train/raw/small/$name"
    cp "$train/raw/small/seed-1/$report" "$train/raw/small/$name/"
done
cp "$train/raw/small/seed-1/$report" "$train/raw/small/"
cp "$train/raw/small/seed-1/$report" "$train/raw/"
seed="expected in a folder seed-NUMBER, such as seed-1" place="expected as train/VARIANT/NETWORK/seed-NUMBER/$report"
named "$train/raw/small/seed-one/$report: $seed" "$train/raw/small/seed-/$report: $seed" "$train/raw/small/seed--1/$report: $seed" \
    "$train/raw/small/seed-01/$report: $seed" "$train/raw/small/seed-1.5/$report: $seed" \
    "$train/raw/small/seed-99999999999999999999/$report: $seed" "$train/raw/small/run-4/$report: $place" \
    "$train/raw/small/$report: $place" "$train/raw/$report: $place"

# An original of another name, and a variant without a size.
again
mv "$train/raw" "$train/original"
for seed in 1 2 3; do edit "$train/original/small/seed-$seed/$report" 's/"variant": "raw"/"variant": "original"/'; done
named "$train/raw/small: expected trainings on the original, with which all others are compared; if that is original, rename $train/original to raw" \
    "original: its size is not known, so it cannot be recommended: expected \"bytes\" in $study/variants/original/dl2-variant.json or $study/quality/original.json"
again
rm -r "$study/variants/jpeg-50" "$study/quality/jpeg-50.json"
named "jpeg-50: its size is not known, so it cannot be recommended: expected \"bytes\" in $study/variants/jpeg-50/dl2-variant.json or $study/quality/jpeg-50.json"
again # An original that is left out, or is trained on now, is no fault.
expect 0 dl2-report --variants "jpeg-10 jpeg-50" --gnuplot "$work/none" -o "$page" "$study"
said "left out: raw: not among the variants of this study"
for seed in 1 2 3; do training "$study" raw small $seed 0.7 false; done
expect 0 report
said "$train/raw/small/seed-1/$report: cut short, left out"
again # a file that is broken is named once
echo '{' >"$study/variants/jpeg-50/dl2-variant.json"
rm "$study/quality/jpeg-50.json"
expect 1 report
! grep -q "its size" "$work/err" || fail "a broken file is named twice"
said "variants/jpeg-50/dl2-variant.json:2:0: not valid JSON"

# Three seeds with one and the same outcome are one training: nothing is shown by it.
again
for name in raw:0.75 jpeg-50:0.73; do
    for n in 1 2 3; do
        training "$study" ${name%:*} small $n ${name#*:}
        edit "$train/${name%:*}/small/seed-$n/$report" 's/"loss": 1\.[0-9]/"loss": 1.1/g'
    done
done
same() { echo "$train/$1/small/seed-$2/$report: its accuracy and its loss are those of seed 1 ($3): expected another, as trainings from other seeds have; train it with --seed $2"; }
named "$(same raw 2 0.75)" "$(same raw 3 0.75)" "$(same jpeg-50 2 0.73)" "$(same jpeg-50 3 0.73)"
! grep -q "^Use " "$work/out" || fail "one training that comes three times shows something"
# The same accuracy with other losses may be.
again
for n in 1 2 3; do training "$study" jpeg-50 small $n 0.7; done
expect 0 report
# Without losses: two may be alike by chance, three are not, nor are whole curves.
no_loss() { for n; do edit "$train/jpeg-50/small/seed-$n/$report" 's/"loss": [0-9.]*, //g; s/"top1": 0.25, "top5": 0.5/"top1": '"${first:-0.7}, \"top5\": 1/"; done; }
no_loss 1 2 3
same() { echo "$train/jpeg-50/small/seed-$1/$report: its accuracy is that of seed 1 (0.7): expected another, as trainings from other seeds have; train it with --seed $1"; }
named "$(same 2)" "$(same 3)"
training "$study" jpeg-50 small 3 0.71
expect 0 report
first=0.25
for n in 1 2; do training "$study" jpeg-50 small $n 0.7; done
no_loss 1 2
named "$(same 2)"

# Settings that only one of two has. A flag that was not given may be missing: earlier versions lack newer ones.
again
comparable='{"epochs": 2, "lr": 0.5, "mixup": 0.2}'
trainings "$study" raw small 0.701 0.702 0.703
comparable='{"epochs": 2, "lr": 0.5, "ema": 0.9, "crop": null, "drop-bands": false}'
trainings "$study" jpeg-50 small 0.702 0.701 0.705
comparable='{"epochs": 2, "lr": 0.5, "mixup": 0.2, "crop": null, "drop-bands": false}'
trainings "$study" jpeg-10 small 0.602 0.601 0.604
unset comparable
expect 0 report
for n in 1 2 3; do
    said "left out: jpeg-50, small, seed $n: unlike the trainings that are shown, ema is 0.9, not missing; mixup is missing, not 0.2"
done
is "$(grep -c 'left out' "$work/err")" 3 "trainings that are left out"

# Predictions that contradict themselves.
if [ -n "${PYTHON3:-}" ]; then
    for row in "k:3:3:1 -- top1=0" "k:3:4:1 -- top1=1" "k:3:3:0" "k:3:3:1:-0.5"; do
        again
        val_images=1 predictions=predictions-0.npy training "$study" raw small 1 0.5
        "$PYTHON3" "$srcdir/tests/report/predictions.py" "$train/raw/small/seed-1/predictions-0.npy" $row || fail "no predictions"
        expect 1 report
        said "seed-1/predictions-0.npy: row 0 contradicts itself: target 3, predicted "
        said "expected top1 1 where predicted is the target, else 0, top5 1 where top1 is, and a loss of 0 or more"
    done
    # A network whose output is NaN finds nothing.
    again
    val_images=1 predictions=predictions-0.npy training "$study" raw small 1 0
    "$PYTHON3" "$srcdir/tests/report/predictions.py" "$train/raw/small/seed-1/predictions-0.npy" k:3:3:0:nan -- top1=0
    dl2-report --gnuplot "$work/none" -o "$page" "$study" >"$work/out" 2>"$work/err"
    ! grep -q contradicts "$work/err" || fail "a NaN contradicts itself"
fi
exit 0
