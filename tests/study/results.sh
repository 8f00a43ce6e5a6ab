#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What trainers of the user's hand back: files as timm, Lightning, Hugging Face, Ultralytics and Keras write them are read rightly,
# and each broken one is a failure that names the file and what is wrong with it. A case is a "network" of one study.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need sha256sum coreutils

# case_of NAME FILE: the file, which is standard input, is what the training of that case writes; then.sh is run instead.
case_of() {
    mkdir -p "cases/$1/${2%"${2##*/}"}"
    cat >"cases/$1/$2"
}
broken() { # NAME FILE FAILURE
    case_of "$1" "$2"
    printf '%s\t%s\n' "$1" "$3" >>expected
}
cat >hand_back.sh <<'END'
cp -R "cases/$1/." "$2" # DL2_DATA, DL2_SEED
[ ! -e "cases/$1/then.sh" ] || sh "cases/$1/then.sh" "$2"
END
# run_cases RESULT STATUS: a study of the cases, each a training on the original alone
run_cases() {
    expect "$2" dl2_study run DATASET=data OUT=results CODECS=jpeg QUALITIES=50 TRAIN_ON= SEEDS=1 IMAGE_SIZE=8 BATCH=8 JOBS=2 \
        ARCHS="$(ls cases | paste -sd " ")" TRAIN_WITH='sh hand_back.sh %m %o' RESULT="$1" train
}
number=0
# all_fail RESULT: every case is the failure that was expected of it
all_fail() {
    run_cases "$1" 1
    while IFS='	' read -r name failure; do
        grep -F "Training raw/$name/seed-1 failed: " "$work/err" | grep -qF -- "$failure" ||
            fail "RESULT=$1, case $name: no failure with '$failure': $(grep -F "raw/$name/seed-1 failed" "$work/err")"
        [ ! -e "results/train/raw/$name/seed-1/experiment_report.json" ] || fail "case $name: a report of a broken result"
        number=$((number + 1))
    done <expected
    is "$(grep -c 'failed: ' "$work/err")" "$(wc -l <expected)" "failures of RESULT=$1"
    next
}
# reads RESULT VALUE [EPOCHS]: the one case is read so
reads() {
    run_cases "$1" 0
    report=results/train/raw/$(ls cases)/seed-1/experiment_report.json
    sed -n '/"final"/,/"epochs"/s/^ *"value": \([^,]*\).*/\1/p' "$report" |
        awk -v want="$2" '{ n++; d = $1 - want } END { exit !(n == 1 && d < 1e-12 && d > -1e-12) }' || fail "RESULT=$1: $(cat "$report")"
    is "$(grep -c '"epoch":' "$report")" "${3:-1}" "epochs of RESULT=$1"
}
next() { rm -rf cases expected results; }

# ---- As tools write them
printf 'epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\r\n0,0.6026,0.6213,100.0,100.0,0.003125\r\n1,0.3301,0.5563,50.0,100.0,0.0015\r\n' |
    case_of timm run/summary.csv
reads run/summary.csv:eval_top1:percent 50 2
reads run/summary.csv:eval_top1:last:percent 50 2
reads run/summary.csv:eval_top1:best:percent 100 2
grep -q '"best": true' results/train/raw/timm/seed-1/experiment_report.json || fail "best is not said"
reads run/summary.csv:eval_loss:number:lower:best 0.5563 2
grep -q '"higher_is_better": false' results/train/raw/timm/seed-1/experiment_report.json || fail "lower is not said"
next
printf '%s\r\n' epoch,step,train_loss_epoch,train_loss_step,val_acc,val_loss 0,1,,0.7288,, 0,4,,,0.5,0.7077 0,4,0.7279,,, 1,9,,,0.75,0.6848 \
    1,9,0.7017,,, | case_of lightning lightning_logs/version_0/metrics.csv
reads 'lightning_logs/version_*/metrics.csv:val_acc' 0.75 2
next
printf '{\n    "epoch": 2.0,\n    "eval_accuracy": 0.5,\n    "eval_loss": 0.6705981492996216\n}' | case_of hf all_results.json
printf '{"best_metric": null, "log_history": [{"loss": 0.9, "step": 1}, {"eval_accuracy": 0.25, "step": 5}, {"eval_accuracy": 0.5, "step": 10},
    {"train_runtime": 2.8}]}' | case_of hf trainer_state.json
reads all_results.json:eval_accuracy 0.5
reads trainer_state.json:log_history.eval_accuracy 0.5 2
next
printf 'epoch,time,train/loss,metrics/accuracy_top1,metrics/mAP50-95(B)\n1,0.5685,0.71097,0.5,0\n2,1.57,0.6886,0.75,0.125\n' |
    case_of ultralytics run/results.csv
reads run/results.csv:metrics/accuracy_top1 0.75 2
reads 'run/results.csv:metrics/mAP50-95(B)' 0.125 2
next
printf '                  epoch,         train/loss,  metrics/accuracy_top1\n                      1,            0.71097,                   0.5\n' |
    case_of old_ultralytics run/results.csv # of versions before 8.3
reads run/results.csv:metrics/accuracy_top1 0.5
next
printf 'epoch,accuracy,loss,val_accuracy,val_loss\r\n0,0.5,0.677,0.5,0.6602\r\n1,0.75,0.653,1.0,0.6265909671783447\r\n' | case_of keras log.csv
reads log.csv:val_accuracy 1 2
reads log.csv:val_loss:number:lower 0.6265909671783447 2
next
printf '{"train_lr": 0.1, "test_acc1": 42.5, "epoch": 0}\n{"train_lr": 0.1, "epoch": 1}\n\n{"test_acc1": 43.25, "epoch": 2}\n' |
    case_of lines log.txt # as DeiT and MAE do
reads log.txt:test_acc1:percent 43.25 2
next
printf '{"val": {"metrics.top1": {"mean": 1e-1}}, "a:b": 3}' | case_of nested out.json
reads out.json:val.metrics.top1.mean 0.1
reads out.json:a:b:number 3
next
printf '\357\273\277"top 1"\ttop5\n"0.5"\t0.9\n' | case_of tabs t.tsv
reads 't.tsv:top 1' 0.5
next

# ---- Broken tables
head='epoch,loss,top1'
printf '' | broken empty s.csv 's.csv: it is empty'
printf '\n\n' | broken blank s.csv 's.csv: it is empty'
printf '%s\n' $head | broken heading_alone s.csv 's.csv: it has no value of top1'
printf '%s\n' $head 1,2, 2,3, | broken no_value s.csv 's.csv: it has no value of top1'
printf '%s\n1,0.5,0.7\n2,0.4,0.7' $head | broken cut_off s.csv 's.csv: line 3: it has no end: the file is cut off'
printf '%s\n1,0.5,0.7\n2,0.4\n' $head | broken few_fields s.csv 's.csv: line 3: it has 2 fields, where the heading has 3'
printf '%s\n1,0.5,0.7,9\n' $head | broken many_fields s.csv 's.csv: line 2: it has 4 fields'
printf 'epoch,loss,eval_top1\n1,0.5,0.7\n' | broken no_column s.csv 'it has no column top1, but epoch, loss, eval_top1'
printf 'top1,loss,top1\n1,0.5,0.7\n' | broken twice s.csv 'the heading: it has top1 twice'
printf '%s\n1,0.5,nan\n' $head | broken nan s.csv 's.csv: line 2, top1: nan is no finite number'
printf '%s\n1,0.5,-inf\n' $head | broken infinite s.csv 's.csv: line 2, top1: -inf is no finite number'
printf '%s\n1,0.5,1e999\n' $head | broken too_large s.csv 'inf is no finite number'
printf '%s\n1,0.5,tensor(0.7)\n' $head | broken tensor s.csv 'line 2, top1: "tensor(0.7)" is not a number'
printf '%s\n1,0.5,0x1\n' $head | broken hexadecimal s.csv '"0x1" is not a number'
printf '%s\n1,0.5,0.7%%\n' $head | broken percent_sign s.csv '"0.7%" is not a number'
printf '%s\n1,0.5,73.1\n' $head | broken percent s.csv '73.1 is no fraction, which is from 0 to 1: if it is percent, say so'
printf '%s\n1,0.5,-0.1\n' $head | broken negative s.csv '-0.1 is no fraction'
printf '%s\n1,0.5,0.7\n%s\n1,0.5,0.8\n' $head $head | broken two_logs s.csv 'line 3, top1: "top1" is not a number'
printf '%s\n1,"0.5,0.7\n' $head | broken quote s.csv 'line 2: a quoted field does not end'
printf 'seed,top1\n2,0.5\n' | broken another_seed s.csv 'line 2: it is of seed 2, where %s is 1'
printf '%s\n1,0.5,0\0007\n' $head | broken zero_byte s.csv 's.csv: '
printf 'x' | broken no_file other.csv 'there is no s.csv; the folder has other.csv'
printf 'mkdir "$1/s.csv"' | broken folder then.sh 's.csv: it is no file'
printf 'echo top1,x >"$1/s.csv"; echo 0.5,1 >>"$1/s.csv"; touch -d 2020-01-01 "$1/s.csv"' |
    broken old then.sh 's.csv: it is older than the training, which has not written it'
printf 'echo top1 >shared.csv; ln -s "$PWD/shared.csv" "$1/s.csv"' | broken link then.sh "it is a link to $work/shared.csv"
printf 'echo top1 >shared.csv; ln "$PWD/shared.csv" "$1/s.csv"' | broken hard_link then.sh 'it has another name elsewhere'
all_fail s.csv:top1
printf 'echo top1 >"$1/s-1.csv"; echo top1 >"$1/s-2.csv"' | broken two_files then.sh 's-*.csv matches 2 files, such as s-1.csv and s-2.csv'
all_fail 's-*.csv:top1'

# ---- Broken JSON
printf '{"top1": 0.5' | broken cut_off r.json 'r.json: it is not JSON'
printf '{"top1": NaN}' | broken nan r.json 'r.json: top1: it is null, or NaN, and not a number'
printf '{"top1": "0.5"}' | broken text r.json 'top1: it is a text, and not a number'
printf '{"top1": true}' | broken boolean r.json 'top1: it is not a number'
printf '{"top1": {"mean": 0.5}}' | broken object r.json 'top1: it is not a number'
printf '{"top1": 0.5, "top1": 0.6}' | broken twice r.json 'r.json: it is not JSON: duplicate object key'
printf '{"top2": 0.5}' | broken missing r.json 'r.json: it has no value of top1'
printf '{"top1": 0.5, "seed": 7}' | broken another_seed r.json 'it is of seed 7, where %s is 1'
all_fail r.json:top1
printf '{"top1": 0.5}\n{"top1": 0.' | broken cut_off_line r.jsonl 'r.jsonl: line 2: it is not JSON'
all_fail r.jsonl:top1

# ---- Broken results of dl2's own form
result() { # MEMBERS...: those that are needed, with changes
    metric='"metric": "top1"' value='"value": 0.5' unit='"unit": "fraction"' higher='"higher_is_better": true' more=
    for member; do
        case $member in
        metric*) metric="\"metric\": ${member#*=}" ;; value*) value="\"value\": ${member#*=}" ;;
        unit*) unit="\"unit\": ${member#*=}" ;; higher*) higher="\"higher_is_better\": ${member#*=}" ;;
        *) more=", \"${member%%=*}\": ${member#*=}" ;;
        esac
    done
    printf '{"schema": "dl2-result/1", %s, %s, %s, %s%s}\n' "$metric" "$value" "$unit" "$higher" "$more"
}
result | sed 's/dl2-result/dl2-rate/' | broken schema result.json 'result.json: schema: it is not dl2-result/1'
result value=1.5 | broken range result.json 'result.json: value: 1.5 is no fraction'
result value='"0.5"' | broken text result.json 'value: it is not a number'
result value=NaN | broken nan result.json 'value: it is null, or NaN, and not a number'
result value=101 unit='"percent"' | broken percent result.json '101 is no percent, which is from 0 to 100'
result metric=7 | broken metric result.json 'metric: it is not a text'
result metric='""' | broken no_name result.json 'metric: it is empty'
result metric='"a\nb"' | broken odd_name result.json 'metric: it is longer than 64 bytes, or has a control character'
result | sed 's/, "unit": "fraction"//' | broken no_unit result.json 'unit: it is missing'
result higher='"yes"' | broken higher result.json 'higher_is_better: it is neither true nor false'
result outcome='"o.csv"' | broken misspelled result.json 'outcome: there is no such field; did you mean outcomes?'
result seed=2 | broken another_seed result.json 'seed: it is of another training: %s is 1'
result settings=3 | broken settings result.json 'settings: it is not an object'
result epochs='[{"value": 2}]' | broken epoch result.json 'epochs[0].value: 2 is no fraction'
result epochs='[{"value": 0.2, "seconds": -1}]' | broken seconds result.json 'epochs[0].seconds: it is not a number of 0 or more'
result outcomes='"none.csv"' | broken no_outcomes result.json 'there is no none.csv'
result outcomes='"../o.csv"' | broken outside result.json 'outcomes: it is not the name of a file beside it'
result outcomes='"o.txt"' | broken form result.json 'outcomes: it is neither a .csv nor a .npy file'
result resamples='[0.5]' | broken resamples result.json 'resamples: it is not a list of 100 to 100000 numbers'
result resamples="[$(seq -s, 1 100 | sed 's/[0-9]\{1,\}/0.5/g; s/0.5$/7/')]" | broken resample result.json 'resamples[99]: 7 is no fraction'
result original='{"value": -1}' | broken original result.json 'original.value: -1 is no fraction'
result | tr -d '}' | broken cut_off result.json 'result.json: line 2: it is not JSON'
all_fail result.json
is "$number" 58 "broken results"
exit 0
