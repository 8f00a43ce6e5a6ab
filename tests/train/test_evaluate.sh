#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# evaluate: a trained network validated again predicts what it predicted at the end of its training.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 5 16 5 8
make_images other 5 16 4 8 colour 9
evaluate() { dl2-train --quiet -j 2 --threads 1 evaluate "$@"; }
# predicts A B WHAT: the same files of predictions.
predicts() {
    for k in 0 1; do
        cmp "$1/predictions-$k.npy" "$2/predictions-$k.npy" || fail "$3: predictions of set $k differ"
    done
}
sets="--val other --val data"
expect 0 run -d data $sets --out run --val-resize 10 --export run.safetensors
expect 0 evaluate run/$CK $sets
predicts run run/evaluation "a checkpoint"
EVALUATION=evaluation/evaluation_report.json
grep -q '"schema": "dl2-evaluation/1"' run/$EVALUATION || fail "no report"
is "$(field run/$EVALUATION variant) $(field run/$EVALUATION arch)" "data convnet" "what was trained"
is "$(field run/$EVALUATION val-resize)" 10 "--val-resize is not the run's"
is "$(sed -n '/"val": \[/,/\]/p' run/$EVALUATION)" "$(sed -n '/"final": \[/,/\]/p' run/$REPORT | sed 's/final/val/')" \
    "figures"
expect 0 evaluate run.safetensors $sets --out exported
predicts run exported "exported weights"
expect 0 evaluate run/$CK $sets --out exported # over the earlier one
expect 0 evaluate run/$CK $sets --out ranks --ranks 2
is "$(grep top1 ranks/evaluation_report.json)" "$(grep top1 exported/evaluation_report.json)" "two ranks"
expect 0 evaluate run/$CK $sets --out resized --val-resize 8
cmp -s run/predictions-1.npy resized/predictions-1.npy && fail "--val-resize has no effect"

# Averages are what was validated, and so what is evaluated.
expect 0 run -d data $sets --out ema --ema 0.8
expect 0 evaluate ema/$CK $sets
predicts ema ema/evaluation "averages"

# What does not fit is refused, with the reason.
mkdir -p others/val && for k in 0 1 2 3 4; do cp -r data/val/c$k others/val/d$k; done
expect 1 evaluate run/$CK --val others --out bad
said "run/$CK was trained on other classes than others has: its class 1 is 'c0', not 'd0'"
make_images six 6 4 2 8
expect 1 evaluate run/$CK --val six --out bad
said "was trained on 5 classes, and six has 6"
expect 1 evaluate run/$CK --val six --arch resnet20 --out bad
expect 1 evaluate absent --val data
said "absent: can't be opened"
head -c 5000 run/$CK >cut.safetensors
expect 1 evaluate cut.safetensors --val data --out bad
said "cut.safetensors"
expect 2 evaluate run/$CK
said "evaluate needs --val DIR"
expect 2 evaluate run/$CK --val data --epochs 3
said "--epochs is not an option of the command evaluate"
[ ! -e bad/evaluation_report.json ] || fail "a failed evaluation leaves a report"
