#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A network as it is, evaluated once on every variant: by a command of the user's, and one of dl2-train's by its weights.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need sha256sum coreutils

# Right where the image's bytes say so: an outcome for each.
cat >eval.sh <<'END'
# usage: eval.sh DATA OUT
echo key,value >"$2/outcomes.csv"
(cd "$1" && find val -type f | LC_ALL=C sort) | while read -r file; do
    echo "${file%.*},$(($(wc -c <"$1/$file") % 7 > 1))"
done >>"$2/outcomes.csv"
awk -F, 'NR > 1 { n++; sum += $2 } END {
    printf "{\"schema\": \"dl2-result/1\", \"metric\": \"accuracy\", \"value\": %.17g, \"unit\": \"fraction\", ", sum / n
    print "\"higher_is_better\": true, \"outcomes\": \"outcomes.csv\"}" }' "$2/outcomes.csv" >"$2/result.json"
END
infer() { # VARIABLE|GOAL...
    dl2_study run DATASET=data CODECS=jpeg QUALITIES='10 50' IMAGE_SIZE=8 BATCH=8 JOBS=2 ROUNDS=1 MEASURE=0.05 "$@"
}
evaluate='sh eval.sh %v %o'
expect 0 infer OUT=results EVALUATE_WITH="$evaluate" inference
is "$(sed -n 's/^Evaluated \([^:]*\): accuracy [0-9.]*%$/\1/p' "$work/out" | sort | paste -sd ' ')" \
    'jpeg-10/eval/seed-0 jpeg-50/eval/seed-0 raw/eval/seed-0' "what was evaluated"
for name in raw jpeg-10 jpeg-50; do
    folder=results/train/$name/eval/seed-0
    grep -q '"inference": true' $folder/experiment_report.json || fail "$name is no evaluation"
    cmp $folder/outcomes.csv $folder/out/outcomes.csv || fail "outcomes of $name"
done
[ -s results/report/report.html ] || fail "no report"
grep -q '"accuracy": "accuracy"' results/report/answer.json || fail "the answer is not of the metric"
expect 0 infer OUT=results EVALUATE_WITH="$evaluate" inference
! grep -q Evaluated "$work/out" || fail "evaluated again"
echo '# another' >>eval.sh
expect 0 infer OUT=results EVALUATE_WITH="$evaluate" inference
is "$(grep -c Evaluated "$work/out")" 3 "evaluations by another script"
made_again results/report/report.html | grep -qF "EVALUATE_WITH=\"$evaluate\"" || fail "how it is made again: $(made_again results/report/report.html)"
up_to_date "$(made_again results/report/report.html) JOBS=2"

# ---- A network of dl2-train's: its own figures
dl2-train --data data --arch convnet --seed 1 --epochs 1 --image-size 8 --batch 8 --out net --quiet >net.out 2>&1 || fail "$(cat net.out)"
expect 0 infer OUT=weights WEIGHTS=net/checkpoint.safetensors ARCHS=mine inference
dl2-train evaluate net/checkpoint.safetensors --val weights/variants/jpeg-10 --out alone --quiet >net.out 2>&1 || fail "$(cat net.out)"
report=weights/train/jpeg-10/mine/seed-0
for key in top1 loss images; do
    is "$(grep -m1 "\"$key\":" $report/experiment_report.json | tr -d ' ,')" "$(grep -m1 "\"$key\":" alone/evaluation_report.json | tr -d ' ,')" \
        "$key by a study"
done
cmp $report/predictions-0.npy alone/predictions-0.npy || fail "predictions by a study"

# ---- Refused
refused_of() { # TEXT VARIABLE|GOAL...
    expected=$1
    shift
    expect 2 infer OUT=none "$@"
    said "$expected"
    [ ! -e none ] || fail "refused after work had begun: $*"
}
refused_of 'inference needs EVALUATE_WITH' inference
refused_of 'inference needs EVALUATE_WITH' TRAIN_WITH='sh eval.sh %d %s %o' inference
refused_of 'EVALUATE_WITH is "sh eval.sh %v %o": it has an effect on inference only' EVALUATE_WITH="$evaluate" train
refused_of 'it is not told the validation data: put %v' EVALUATE_WITH='sh eval.sh %d %o' inference
refused_of 'a study has one of TRAIN_WITH, EVALUATE_WITH and WEIGHTS' EVALUATE_WITH="$evaluate" WEIGHTS=net/checkpoint.safetensors inference
refused_of 'WEIGHTS is "none": there is no such file' WEIGHTS=none inference
refused_of 'SEEDS is "1 2": EVALUATE_WITH has none' EVALUATE_WITH="$evaluate" SEEDS='1 2' inference
refused_of 'DECIDE is "yes": it adds seeds' EVALUATE_WITH="$evaluate" DECIDE=yes inference
refused_of 'RESULT is "a.csv:b": of WEIGHTS it is known' WEIGHTS=net/checkpoint.safetensors RESULT=a.csv:b inference
exit 0
