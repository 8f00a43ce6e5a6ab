#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study with a trainer of the user's that is killed at random moments: nothing goes on, and it ends with the results of one that
# nobody disturbed. KILLS=20 kills it as often; once in a while the trainer alone is killed, and in a time limit it is ended.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
need sha256sum coreutils
need flock util-linux
need shuf coreutils
env --default-signal=INT,HUP,TERM true 2>/dev/null || skip "env has no --default-signal (Debian: coreutils)"

# Trains for some steps, one file each, and goes on from them where it may; a helper of its own outlives it, and ignores SIGTERM.
cat >train.sh <<'END'
# usage: train.sh DATA SEED OUT ATTEMPT
bytes=$(cat $(find "$1/train" -type f | LC_ALL=C sort) | wc -c)
[ "$4" -gt 1 ] || [ -z "$(ls "$3")" ] || { echo "the folder of attempt $4 is not empty"; exit 1; }
[ "$2" = 2 ] || sh -c 'trap "" TERM; echo $$ >>helpers; exec sleep 1000' &
for step in 1 2 3 4; do
    [ -e "$3/$step" ] && continue
    sleep 0.1
    echo $((step + bytes % 1000 + 100 * $2)) >"$3/.$step" && mv "$3/.$step" "$3/$step"
done
{ echo epoch,loss; for step in 1 2 3 4; do echo "$step,$(cat "$3/$step")"; done; } >"$3/log.csv"
END
run() { # OUT COMMAND: in the place of this shell
    exec env --default-signal=INT,HUP,TERM dl2-study run --dataset data --out "$1" --codecs jpeg --qualities '10 50' --seeds '1 2' --image-size 8 --batch 8 --jobs 2 \
        --train-with "$2" --result log.csv:loss:number:lower train
}
results() { # OUT
    (cd "$1/train" && for report in */*/*/experiment_report.json; do
        echo "$report $(grep '"value":' "$report" | tr -d ' \n')"
    done)
}
# Nothing is left of what trainers have started: a helper of theirs that still runs.
no_orphan() {
    for pid in $(cat helpers); do
        ! kill -0 "$pid" 2>/dev/null || fail "process $pid goes on: $1"
    done
    : >helpers
}
: >helpers
for how in 'sh train.sh %d %s %o %a' 'sh train.sh %d %s %o 1'; do
    rm -rf whole killed
    (expect 0 run whole "$how") || exit 1
    no_orphan "after a study"
    results whole >wanted
    is "$(wc -l <wanted)" 6 "trainings"
    kills=0
    while :; do
        (run killed "$how") >killed.out 2>&1 &
        study=$!
        sleep "$(shuf -i 200-1500 -n 1 | sed 's/...$/.&/; s/^\./0./')"
        [ "$kills" -lt "${KILLS:-3}" ] || break
        kills=$((kills + 1))
        case $((kills % 3)) in 0) signal=TERM ;; 1) signal=KILL ;; *) signal=INT ;; esac
        kill -$signal $study 2>/dev/null
        wait $study
        # Whatever it has started holds the lock of the run.
        [ ! -e killed/.make/at-work ] || flock -w 60 killed/.make/at-work true || fail "something goes on after SIG$signal"
        no_orphan "after SIG$signal"
    done
    wait $study || { cat killed.out >&2; fail "the study that was killed does not end well"; }
    results killed | diff wanted - || fail "results of a study that was killed $kills times with '$how'"
    no_orphan "at the end"
done

# ---- A trainer that fails, hangs or is killed: the others go on, and the end says which and why
cat >fails.sh <<'END'
# DL2_DATA DL2_OUT
case $DL2_VARIANT-$DL2_SEED in
raw-1) echo "out of memory" >&2; exit 3 ;;
raw-2) sleep 1000 & wait ;;
jpeg-10-1) kill -9 $$ ;;
jpeg-10-2) [ -e flaky ] || { touch flaky; exit 1; } ;;
esac
echo "{\"schema\": \"dl2-result/1\", \"metric\": \"m\", \"value\": 0.1$DL2_SEED, \"unit\": \"fraction\", \"higher_is_better\": true}" \
    >"$DL2_OUT/result.json"
END
expect 1 dl2-study run --dataset data --out fails --codecs jpeg --qualities '10 50' --seeds '1 2' --image-size 8 --batch 8 --jobs 2 \
    --train-with 'sh fails.sh' --train-limit 2s --retries 1 train
said 'Training raw/fails/seed-1 failed: it exited with status 3'
said 'out of memory'
said 'Training raw/fails/seed-2 failed: it was ended after TRAIN_LIMIT, 2 s'
said 'Training jpeg-10/fails/seed-1 failed: signal 9 (Killed) ended it'
said '3 steps failed:'
for name in raw/fails/seed-1 raw/fails/seed-2 jpeg-10/fails/seed-1; do
    said "  train/$name, which was to make fails/train/$name/experiment_report.json; see fails/train/$name/log"
    is "$(grep -c "^Training $name again: " "$work/out")" 1 "further attempts of $name"
done
is "$(grep '^Trained' "$work/out" | sort | paste -sd ' ')" \
    'Trained jpeg-10/fails/seed-2: m 12% Trained jpeg-50/fails/seed-1: m 11% Trained jpeg-50/fails/seed-2: m 12%' "trainings beside those that failed"

# ---- Seeds that make no difference are refused with the reason
echo 'echo top1 >"$2/s.csv"; for e in 0.5 0.625 0.75; do echo "$e" >>"$2/s.csv"; done # DL2_DATA, and the seed is %s' >same.sh
expect 1 dl2-study run --dataset data --out same --codecs jpeg --qualities 50 --train-on= --seeds '1 2 3' --image-size 8 --batch 8 --jobs 1 \
    --train-with 'sh same.sh %s %o' --result s.csv:top1 train
said 'its result, top1 75%, is that of seed-1 to the last digit: most likely the command has the seed and the script does not use it'
is "$(grep -c '^Trained' "$work/out")" 1 "trainings without a seed"

# ---- A script that changes while it trains
echo 'echo "# $$" >>changes.sh; echo top1 >"$2/s.csv"; echo "0.1$1" >>"$2/s.csv" # DL2_DATA' >changes.sh
expect 1 dl2-study run --dataset data --out changes --codecs jpeg --qualities 50 --train-on= --seeds '1 2' --image-size 8 --batch 8 --jobs 1 \
    --train-with 'sh changes.sh %s %o' --result s.csv:top1 train
said 'changes.sh is not what it was when the study was planned'
exit 0
