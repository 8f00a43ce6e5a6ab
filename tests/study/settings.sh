#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A folder that was used with other settings before: the report is of the study that was asked for alone,
# as if it had been made in a folder of its own.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
command -v flock >/dev/null 2>&1 || skip "flock is not installed (Debian: util-linux)"
compare() { study CODECS=ppm DEVICE=ref IMAGE_SIZE=8 "$@"; }
expect 0 compare OUT=used EPOCHS=1 SEEDS='1 2 3'
grep -q 'left out' "$work/err" && fail "a study leaves out what it made: $(cat "$work/err")"
grep -q '"trainers": 2' used/train/raw/convnet/seed-1/experiment_report.json ||
    fail "a training does not record that two shared the machine"
grep -q '"trainers": 1' used/throughput/convnet/ppm/round-2.json || fail "rates are not of a training alone"
for file in used/train/ppm/convnet/seed-3 used/variants/ppm; do [ -d $file ] || fail "no $file"; done

# Fewer seeds, more epochs; then the original alone.
for settings in "EPOCHS=2|SEEDS=2 1" "EPOCHS=2|SEEDS=1|TRAIN_ON=|TRAINERS=1"; do
    (IFS='|'; set -- $settings; expect 0 compare OUT=used "$@"; cp err used.err; cp used/report/report.html used.html
        expect 0 compare OUT=fresh "$@"; cp err fresh.err) || exit 1
    grep -q 'left out' fresh.err && fail "results of a fresh study are left out"
    grep -q 'dl2-report: left out: raw, convnet, seed 3: not among the trainings of this study' used.err ||
        { cat used.err >&2; fail "what is left out is not named"; }
    for plot in accuracy-bytes-convnet curves-convnet-ppm; do
        [ -e fresh/report/plots/$plot.dat ] || continue
        cmp used/report/plots/$plot.dat fresh/report/plots/$plot.dat ||
            fail "$plot is not that of a study made anew: $settings"
    done
    for page in used.html fresh/report/report.html; do
        grep -o ' [0-9]* trainings\{0,1\}\.' $page
    done >counts
    [ "$(wc -l <counts)" -eq 2 ] || fail "how many trainings there are is not said: $(cat counts)"
    [ "$(sort -u counts | wc -l)" -eq 1 ] || fail "other trainings than those of a study made anew: $(cat counts)"
    rm -r fresh
done
grep -q 'dl2-report: left out: ppm, convnet, seed 1' used.err || fail "trainings outside TRAIN_ON are not left out"

# What has no effect where speed is measured is left out of that command alone.
expect 0 compare OUT=flags EPOCHS=1 SEEDS=1 TRAIN_FLAGS='--validate-every 1 --crop-area 0.5,1 --val-crop=squash --step-log' \
    train throughput
rate=flags/throughput/convnet/raw/round-1.json trained=flags/train/raw/convnet/seed-1
[ -e $rate ] && [ -e $trained/steps.jsonl ] || fail "no rate, or no log of a training's steps"
grep -q '"val-crop": "squash"' $trained/experiment_report.json || fail "TRAIN_FLAGS has no effect on a training"
for file in $rate $trained/experiment_report.json; do
    tr -d ' \n' <$file | grep -q '"crop-area":\[0.5,1.0\]' || fail "TRAIN_FLAGS has no effect on $file"
done

# Folders may be called as a command is.
cp -r data frames
expect 0 dl2_study plan DATASET=frames OUT=answer CODECS=jpeg QUALITIES=50 EPOCHS=1 SEEDS='1 2'
exit 0
