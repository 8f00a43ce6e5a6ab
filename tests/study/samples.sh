#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Studies of clips, and of images with masks: what trainings are told of clips, loading is too, and accuracy is the mean
# IoU of masks.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
tiny="QUALITIES=50 EPOCHS=1 SEEDS=1 IMAGE_SIZE=16"

"$builddir/tests/train/make_clips" clips 4 2 10 18 || exit 99
expect 0 study $tiny DATASET=clips OUT=of-clips ARCHS=convcolumn TRAIN_FLAGS='--frames 8 --frame-sampling=uniform --no-flip'
for file in load/jpeg-50.json throughput/load/jpeg-50/round-2.json; do
    grep -q '"frames": 8' of-clips/$file || fail "not of clips: $(cat of-clips/$file)"
    grep -q '"frame-sampling": "uniform"' of-clips/$file || fail "of other frames: $(cat of-clips/$file)"
done
grep -q 'accuracy": "top-1"' of-clips/report/answer.json || fail "$(cat of-clips/report/answer.json)"
grep -q 'trained on [0-9]* clips, validated on' of-clips/report/report.html || fail "clips are called something else"
grep -q 'LOAD_FLAGS' of-clips/report/report.html && fail "the command has flags that were not given"
refused 'LOAD_FLAGS is "--frames 0' DATASET=clips LOAD_FLAGS='--frames 0'

"$builddir/tests/train/make_masks" masks 8 4 20 || exit 99
expect 0 study $tiny DATASET=masks OUT=of-masks ARCHS=unet TRAIN_FLAGS='--mask mask.pgm --classes 3'
grep -q 'Trained jpeg-50/unet/seed-1: mIoU ' "$work/out" || fail "no mean IoU: $(cat "$work/out")"
grep -q '^  *mean IoU  *loading,$' "$work/out" && grep -q '^original  100%  ' "$work/out" || fail "no table: $(cat "$work/out")"
grep -q '"accuracy": "mIoU"' of-masks/report/answer.json || fail "$(cat of-masks/report/answer.json)"
"$PYTHON3" - <<'END' || fail "the accuracy is not the mean IoU"
import json
miou = json.load(open("of-masks/train/jpeg-50/unet/seed-1/experiment_report.json"))["final"][0]["miou"]
told = json.load(open("of-masks/report/answer.json"))["networks"]["unet"]["variants"]["jpeg-50"]
assert abs(told["accuracy"] - 100 * miou) < 1e-9 and told["top5"] is None, (told, miou)
END
grep -q 'Tolerance: 1 point of accuracy, which is the mean over classes of the intersection' of-masks/report/report.html ||
    fail "the report does not say what accuracy is"

grep -q 'not of the choice of the 4 for validation' of-masks/report/report.html || fail "no word of chance"

# A network for classes beside one for masks is no variant of it.
expect 0 dl2-train --quiet -d data -a vit_tiny --epochs 1 --image-size 8 --seed 1 --out of-masks/train/raw/vit_tiny/seed-1
expect 0 dl2-report of-masks
said 'left out: raw, vit_tiny, seed 1: its accuracy is top-1, that of the trainings before it mIoU'
exit 0
