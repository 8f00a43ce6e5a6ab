#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A training script that knows nothing of dl2, own_script.py, in a study: a whole report by one command; and with three more
# lines its images' outcomes, too.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/python/module.sh"
need_python torch python3-torch
need_python torchvision python3-torchvision
. "$srcdir/tests/study/study_lib.sh"
need sha256sum coreutils
script=$srcdir/tests/study/own_script.py
[ "$(wc -l <"$script")" -le 60 ] || fail "own_script.py has more than 60 lines"
! grep -q dl2 "$script" || [ "$(grep -c dl2 "$script")" = 1 ] || fail "own_script.py knows dl2"
study() { # OUT SCRIPT VARIABLE...
    out=$1 its=$2
    shift 2
    dl2_study run DATASET=data OUT="$out" CODECS=jpeg QUALITIES=20 SEEDS='1 2' EPOCHS=6 IMAGE_SIZE=16 BATCH=8 JOBS=2 ROUNDS=1 MEASURE=0.05 \
        TRAIN_WITH="$PYTHON3 $its --data %d/train --val %v/val --seed %s --out %o --epochs %e --size %p --batch %b" "$@"
}

# ---- As it is: the column of its log
expect 0 study plain "$script" RESULT=log.csv:val_acc
[ -s plain/report/report.html ] || fail "no report"
is "$(grep -c '"value"' plain/train/raw/own_script/seed-1/experiment_report.json)" 7 "values of six epochs, and the last one"
! grep -q outcomes plain/train/raw/own_script/seed-1/experiment_report.json || fail "outcomes that nobody handed over"

# ---- With three lines: the same accuracies, and an outcome for each validation image, by the same keys for each variant
sed -e 's/^import torch$/import dl2.study\n&/' -e 's/^    return sum(right)/    dl2.study.outcomes([path for path, _ in val_set.samples], right)\n&/' \
    -e '$a dl2.study.finish("top1")' "$script" >three.py
is "$(diff "$script" three.py | grep -c '^[<>]')" 3 "lines added"
expect 0 study three three.py
for name in raw jpeg-20; do
    for seed in 1 2; do
        folder=train/$name/three/seed-$seed
        is "$(cat three/$folder/out/log.csv)" "$(cat plain/train/$name/own_script/seed-$seed/out/log.csv)" "log of the script with three lines"
        cut -d, -f1 three/$folder/outcomes.csv | sort >keys
        { echo key; find data/val -type f | sed 's|^data/||; s|\.[a-z]*$||'; } | sort | diff - keys || fail "keys of $folder"
        value=$(sed -n 's/^ *"value": \([0-9.e-]*\).*/\1/p' three/$folder/experiment_report.json | tail -1)
        "$PYTHON3" -c 'import csv, sys
values = [float(row["value"]) for row in csv.DictReader(open(sys.argv[1]))]
sys.exit(abs(sum(values) / len(values) - float(sys.argv[2])) > 1e-9)' three/$folder/outcomes.csv "$value" || fail "$folder: $value is no mean of its outcomes"
    done
done
[ -s three/report/report.html ] || fail "no report"
exit 0
