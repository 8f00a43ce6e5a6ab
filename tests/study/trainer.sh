#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Trainers of the user's: what they are told, what is refused before anything is made, and what redoes trainings. What they hand
# back, whole and broken, is that of tests/study/results.sh.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need sha256sum coreutils

# A trainer that knows nothing of dl2: "accuracy" from the bytes that it reads and the seed, a table of epochs.
cat >train.sh <<'END'
# usage: train.sh DATA SEED OUT
bytes=$(cat $(find "$1/train" -type f | LC_ALL=C sort) | wc -c)
echo 'epoch,loss, top1' >"$3/summary.csv"
for epoch in 1 2 3; do
    echo "$epoch,1.5, $((40 + (bytes / 100 + 7 * $2 + 5 * epoch) % 50)).25" >>"$3/summary.csv"
done
END
trains='sh train.sh %d %s %o' result=summary.csv:top1:percent
of_trainer() { # VARIABLE|GOAL...: a study without dl2-train's settings
    dl2_study run DATASET=data OUT=results CODECS=jpeg QUALITIES=50 SEEDS='1 2' IMAGE_SIZE=8 BATCH=8 JOBS=2 ROUNDS=1 MEASURE=0.05 "$@"
}
refused_of() { # TEXT VARIABLE|GOAL...
    expected=$1
    shift
    expect 2 of_trainer OUT=none TRAIN_WITH="$trains" RESULT="$result" "$@"
    said "$expected"
    [ ! -e none ] || fail "refused after work had begun: $*"
}

# ---- A study
expect 0 of_trainer TRAIN_WITH="$trains" RESULT="$result" train
# Of a metric in any unit the tolerance is a part, unless one is named.
grep -q '"tolerance": "1%"' results/study-plan.json || fail "a trainer's study has no tolerance of 1%"
grep -q '^Trained jpeg-50/train/seed-2: top1 [0-9.]*%$' "$work/out" || fail "not said: $(cat "$work/out")"
folder=results/train/jpeg-50/train/seed-2 report=$folder/experiment_report.json
for text in "\"value\": $(tail -1 $folder/out/summary.csv | sed 's/.*, //')" '"completed": true' '"variant": "jpeg-50"' '"seed": 2' \
    '"arch": "train"' '"unit": "percent"' '"higher_is_better": true' "$(sha256sum train.sh | cut -d' ' -f1)" \
    '"result": "summary.csv:top1:percent"' '"epoch": 3'; do
    grep -qF -- "$text" $report || fail "the report has no $text: $(cat $report)"
done
again() { # TRAININGS VARIABLE...: how many are done again
    number=$1
    shift
    expect 0 of_trainer TRAIN_WITH="$trains" RESULT="$result" "$@" train
    is "$(grep -c '^Trained' "$work/out")" "$number" "trainings of $*"
}
again 0
again 0 TRAIN_WITH="sh  train.sh %d %s '%o'"
again 4 RESULT=summary.csv:top1:best:percent
again 4 # results of another command never mix
echo '# a comment' >>train.sh
again 4
echo 1 >settings.txt
again 4 TRAIN_FILES=settings.txt
again 0 TRAIN_FILES=settings.txt
echo 2 >settings.txt
again 4 TRAIN_FILES=settings.txt

# ---- What it is told, by words and by the environment
cat >told.sh <<'END'
printf '%s\n' "$@" >"${DL2_OUT:?}/words"
env | grep ^DL2_ | grep -Ev '^DL2_(CUDA_PLAN_CACHE|[A-Z0-9]*_PYTHON)=' | LC_ALL=C sort >"$DL2_OUT/environment"
echo "{\"schema\": \"dl2-result/1\", \"metric\": \"loss\", \"value\": 1.$DL2_SEED, \"unit\": \"nats\", \"higher_is_better\": false}" \
    >"$DL2_OUT/result.json" # ${DL2_DATA}
END
expect 0 of_trainer OUT='told % it' EPOCHS=7 DEVICE=mps ARCHS='a b' SEEDS='3 4' TRAINERS=2 \
    TRAIN_WITH='sh told.sh %d %v %r %n %m %s %o %t %e %b %p %g %a "100%% of it"' train
for name in raw jpeg-50; do
    out="$work/told % it/train/$name/b/seed-4/out" place="$work/told % it/variants/jpeg-50"
    [ $name != raw ] || place=$work/data
    printf '%s\n' "$place" "$place" "$work/data" $name b 4 "$out" 1 7 8 8 mps 1 '100% of it' | diff - "$out/words" || fail "words"
    for pair in ARCH=b ATTEMPT=1 BATCH=8 DATA="$place" DEVICE=mps EPOCHS=7 IMAGE_SIZE=8 ORIGINAL="$work/data" OUT="$out" SEED=4 \
        THREADS=1 VAL="$place" VARIANT=$name; do echo "DL2_$pair"; done | diff - "$out/environment" || fail "environment"
done

# ---- Cards: no two trainings at once have the same
cat >cards.sh <<'END'
# DL2_DATA
mkdir "held/${CUDA_VISIBLE_DEVICES:?}" || exit 1
sleep 0.2
rmdir "held/$CUDA_VISIBLE_DEVICES"
echo "$CUDA_VISIBLE_DEVICES" >>used
echo "{\"schema\": \"dl2-result/1\", \"metric\": \"m\", \"value\": 0.1$DL2_SEED, \"unit\": \"fraction\", \"higher_is_better\": true}" \
    >"$DL2_OUT/result.json"
END
mkdir held
cards() { # WANTED VARIABLE...
    wanted=$1
    shift
    rm -rf used cards
    expect 0 of_trainer OUT=cards SEEDS='1 2 3 4' TRAIN_WITH='sh cards.sh' "$@" train
    is "$(sort -u used | paste -sd ' ') $(wc -l <used)" "$wanted 8" "cards of $*"
}
cards '0 GPU-x' GPUS=0,GPU-x
cards '0 1' GPUS=2
cards '4 7' GPUS=2 CUDA_VISIBLE_DEVICES=4,7,9
cards '0,1 2,3' GPUS=4 GPUS_EACH=2
cards 3 GPUS=3,

# ---- Tables of the network that the command trains
cat >sensitivity.sh <<'END'
# usage: sensitivity.sh DATA OUT NAME
[ -d "$1/train" ] && [ -s "$2/summary.csv" ] && [ "$3 $DL2_VARIANT $DL2_SEED" = '100% raw 1' ] || exit 1
echo '{"schema": "dl2-sensitivity/1", "arch": "own", "weights": "", "data": "", "input": [8, 8], "channels": 3, "images": 1, "lags": 0,
    "covariance": {"luma": [[1]], "cb": [[0.5]], "cr": [[0.25]]}}' >"$2/sensitivity.json"
END
tables() { of_trainer OUT=tables SEEDS='1 2' TABLES=network TRAIN_WITH="$trains" RESULT="$result" "$@" train; }
expect 0 tables SENSITIVITY_WITH='sh sensitivity.sh %d %o 100%%'
is "$(grep -c '^Trained' "$work/out")" 6 "trainings of the original, of libjpeg's tables and of the network's"
grep -q '"arch": "own"' tables/tables/network.json || fail "tables of another network"
cp -p tables/tables/network.json before
expect 0 tables SENSITIVITY_WITH='sh sensitivity.sh %d %o 100%%'
[ ! tables/tables/network.json -nt before ] || fail "fitted again"
echo '# a comment' >>sensitivity.sh
expect 0 tables SENSITIVITY_WITH='sh sensitivity.sh %d %o 100%%'
[ tables/tables/network.json -nt before ] || fail "not fitted again by another script"
expect 1 tables SENSITIVITY_WITH='true %d %o'
said 'tables/train/raw/train/seed-1/out/sensitivity.json could not be made'

# ---- What others read in another way is said, but of scripts that load by dl2
plans() { # TEXT|- VARIABLE...: stderr says it; or nothing of the kind
    expected=$1
    shift
    expect 0 dl2_study plan DATASET=data OUT=others QUALITIES=50 SEEDS=1 IMAGE_SIZE=8 TRAIN_WITH="$trains" RESULT="$result" "$@" train
    if [ "$expected" != - ]; then said "$expected"; elif [ -s "$work/err" ]; then fail "said: $(cat "$work/err")"; fi
}
plans - CODECS=jpeg
plans 'CODECS is "jpeg:turn=yes": images that are wider than high lie on their side' CODECS='jpeg jpeg:turn=yes'
for codec in avif jp2 jxl jxl_lossless; do
    dl2-transcode --list codecs | grep -q "^$codec	" || continue
    plans "CODECS is \"$codec\": Pillow" CODECS="jpeg $codec"
done
plans 'EXTERNAL is "x": only dl2 reads files' CODECS=jpeg EXTERNAL='x=cp %i %o; cp %i %o'
dl2-transcode --quiet copy --container=tar data shards >/dev/null || fail "shards"
plans 'DATASET is "shards": it is of the form "tar", and its variants are folders' CODECS=jpeg DATASET=shards
plans - CODECS=jpeg DATASET=shards TRANSCODE_FLAGS=--container=tar
echo 'from dl2.torch import Loader' >loads.py
plans - CODECS=jpeg:turn=yes TRAIN_FILES=loads.py

# ---- A split that only dl2 knows, and a step as Slurm's jobs do it
mkdir unsplit && cp -R data/train/fine data/train/coarse unsplit/
expect 0 dl2_study plan DATASET=unsplit OUT=plan SEEDS=1 CODECS=jpeg QUALITIES=50 TRAIN_WITH='sh cards.sh' train
said 'unsplit has no splits, such as train and val'
expect 0 dl2_study plan DATASET=data OUT=plan2 SEEDS=1 CODECS=jpeg QUALITIES=50 TRAIN_WITH="$trains" RESULT="$result" train
! grep -q 'no splits' "$work/err" || fail "a dataset with splits has none"
expect 0 dl2-study do plan2 train/raw/train/seed-1
grep -q '^Trained raw/train/seed-1: top1' "$work/out" || fail "a step by itself"

# ---- The whole study, of a script that knows nothing of dl2
expect 0 of_trainer OUT=whole QUALITIES='10 50' SEEDS='1 2 3' TRAIN_WITH="$trains" RESULT="$result" study
grep -q '"accuracy": "top1"' whole/report/answer.json || fail "the answer is of another metric: $(head -5 whole/report/answer.json)"
! ls whole/throughput | grep -q train || fail "a speed of training by another trainer"
[ -s whole/throughput/load/raw/round-1.json ] || fail "loading is not measured"
expect 0 of_trainer OUT=decided SEEDS='1 2 3' DECIDE=yes BUDGET=1h TRAIN_WITH="$trains" RESULT="$result" study
grep -q ' trainings so far, ' "$work/out" || fail "DECIDE does not decide"

# ---- Refused, before anything is made
refused_of 'GPUS is "2": CUDA_VISIBLE_DEVICES has fewer: 5' GPUS=2 CUDA_VISIBLE_DEVICES=5
refused_of 'GPUS is "0,,1": a card' GPUS=0,,1
refused_of 'GPUS is "0,0": card 0 is there twice' GPUS=0,0 GPUS_EACH=2
refused_of 'GPUS is "1": these are fewer cards than GPUS_EACH, 2' GPUS=1 GPUS_EACH=2
refused_of 'TRAINERS is "3": GPUS has cards for 2 at once' GPUS=0,1 TRAINERS=3
refused_of 'GPUS is "0": it has no effect with DEVICE=cpu' GPUS=0 DEVICE=cpu
refused_of 'Slurm chooses the cards' GPUS=0,1 ENGINE=slurm
refused_of 'it is not told the training data: put %d into it, or read DL2_DATA' TRAIN_WITH='sh train.sh %s %o'
refused_of 'it is not told the seed: put %s into it' TRAIN_WITH='sh train.sh %d %o'
refused_of 'it is not told the folder for results: put %o' TRAIN_WITH='sh train.sh %d %s'
refused_of 'there is no %x; --help' TRAIN_WITH="$trains %x"
refused_of 'there is no % ' TRAIN_WITH="$trains '% '"
refused_of 'there is no %; --help' TRAIN_WITH="$trains %"
refused_of 'there is no program no-such-program' TRAIN_WITH='no-such-program %d %s %o'
refused_of 'there is no program ./data' TRAIN_WITH='./data %d %s %o'
refused_of 'a quote does not end' TRAIN_WITH='sh "train.sh %d %s %o'
refused_of 'TRAIN_FLAGS is "--lr 1": these are options of dl2-train' TRAIN_FLAGS='--lr 1'
refused_of 'TRAIN_FILES is "none": none is neither a file nor a folder' TRAIN_FILES=none
refused_of 'ARCHS is "a b": TRAIN_WITH is not told the network' ARCHS='a b'
refused_of "ARCHS is \"a/b\": a/b can't be a folder's name" ARCHS=a/b
refused_of 'FORECAST is "yes"' DECIDE=yes FORECAST=yes
refused_of 'TABLES is "network": network tables of what TRAIN_WITH trains need SENSITIVITY_WITH' TABLES=network
refused_of 'need SENSITIVITY_WITH' TABLES=network SENSITIVITY_WITH=' '
refused_of 'it has an effect with TRAIN_WITH and network among TABLES only' SENSITIVITY_WITH='sh train.sh %d %o'
refused_of 'it has an effect with TRAIN_WITH and network' TRAIN_WITH= RESULT= SENSITIVITY_WITH='sh train.sh %d %o'
refused_of 'SENSITIVITY_WITH is "sh train.sh %d": it is not told the folder for results' TABLES=network SENSITIVITY_WITH='sh train.sh %d'
refused_of 'RETRIES is "x"' RETRIES=x
refused_of 'TRAIN_LIMIT is "9"' TRAIN_LIMIT=9
for goal in study-time study-bytes study-regimens matrix forecast analyze; do
    refused_of "TRAIN_WITH is \"$trains\": it cannot work with $goal, wh" $goal
done
for given in summary.csv :top1 summary.csv: percent; do
    refused_of 'it is FILE:FIELD' RESULT=$given
done
refused_of 'is not a path from the folder for results' RESULT=/etc/summary.csv:top1
refused_of 'is not a path from the folder for results' RESULT=../summary.csv:top1
refused_of 'has a name that pages cannot show' RESULT='summary.csv:top1<b>'
refused_of 'summary.pt is of no known form' RESULT=summary.pt:top1
refused_of 'RESULT is "summary.csv:top1:percent": it has an effect with TRAIN_WITH or EVALUATE_WITH only' TRAIN_WITH=
refused_of 'TRAIN_FILES is "train.sh": it has an effect with TRAIN_WITH or EVALUATE_WITH only' TRAIN_WITH= RESULT= TRAIN_FILES=train.sh
exit 0
