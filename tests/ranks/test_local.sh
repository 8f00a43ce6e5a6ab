# SPDX-License-Identifier: BSD-2-Clause
# Several ranks on one machine: they are one process with their batches put together; what is validated,
# counted, saved and resumed; and that nobody hangs and nobody is left over, whoever dies.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 25 7 8 # 75 to train on, 21 to validate: neither is even for 2 ranks of 4, nor 3

# numbers REPORT: losses and accuracies of all epochs, one a line.
numbers() { sed -n '/"epochs": \[/,$s/^ *"\(loss\|top1\|images\|lr\)": \([0-9][0-9.e-]*\).*/\1 \2/p' "$1"; }
# images PART REPORT: of "train" or "val", in all epochs, each number once.
images() { sed -n '/"epochs": \[/,$ { /"'"$1"'": [[{]/,/[]}]/s/^ *"images": \([0-9]*\).*/\1/p }' "$2" | sort -u; }
# alike REPORT REPORT WHAT [WITHIN]: the same to 1e-5, or WITHIN.
alike() {
    numbers "$1" >alike.1; numbers "$2" >alike.2
    [ "$(wc -l <alike.1)" -gt 15 ] || fail "$1 has no numbers"
    paste alike.1 alike.2 | awk -v within="${4:-1e-5}" '{ d = $2 - $4; if (d < 0) d = -d
        if ($1 != $3 || d > within * ($2 + 1e-3)) { print; bad = 1 } } END { exit bad }' ||
        fail "$1 and $2 differ: $3"
}

# With batch norm over all, ranks are one large batch. (Slowly learned, and not to the last digits: a rounding that differs
# decides now and then which side of 0 a ReLU's input is on, which depends on the processor, too.)
for ranks in 2 3; do
    expect 0 run -d data -b 4 --lr 0.0002 --out sync$ranks --ranks $ranks --sync-bn
    expect 0 run -d data -b $((4 * ranks)) --lr 0.0002 --out large$ranks
    alike sync$ranks/$REPORT large$ranks/$REPORT "$ranks ranks and one with the same step" 2e-4
done
"${PYTHON3:-python3}" - sync3/$REPORT <<'PY' || fail "the report of three ranks"
import json, sys
report = json.load(open(sys.argv[1]))
world = report["world"]
assert world["ranks"] == 3 and world["transport"] == "local" and world["images_per_step"] == 12, world
assert report["arguments"]["ranks"] == 3 and report["arguments"]["sync-bn"] is True
for epoch in report["epochs"]:
    assert epoch["train"]["images"] == 72, epoch
    assert epoch["val"][0]["images"] == 21, epoch
    assert len(epoch["ranks"]) == 3
    assert max(rank["seconds"] for rank in epoch["ranks"]) == epoch["seconds"]
    # Of each step's gradients each rank has two thirds from the others, before and after they are added up.
    steps, gradients = 6, 4 * report["parameters"]
    assert 1 < epoch["bytes_moved"] / (steps * 2 * (3 - 1) * gradients) < 1.6, epoch["bytes_moved"]
    assert all(rank["images_per_second"] > 0 for rank in epoch["ranks"])
timelines = report["rank_timelines"]
assert len(timelines) == 3 and all(t["rss_bytes"][0] > 0 for t in timelines), timelines
samples = len(timelines[0]["seconds"])
assert timelines[0]["seconds"] == report["timeline"]["seconds"][:samples], timelines
PY
# One rank is the same as none; fewer images to validate than ranks; fewer to train on than a step has.
expect 0 run -d data --out none --mixup 0.2
expect 0 run -d data --out one --mixup 0.2 --ranks 1
expect 0 dl2-train -j 2 --threads 1 -a convnet --image-size 8 -b 8 -e 1 -d data --out left --ranks 2
grep -q 'each epoch leaves out 1 image, others each time' "$work/out" ||
    fail "it isn't said what ranks leave out: $(cat "$work/out")"
same none/$CK one/$CK "a world of one"
make_images tiny 2 4 1 8
expect 0 run -d tiny --out tiny --ranks 3 --sync-bn -b 8
[ "$(images val tiny/$REPORT)" = 2 ] ||
    fail "two images are not validated once each by three ranks"
sed -n '/"arguments"/,/}/s/.*"lr": \(0.0187[0-9]*\).*/\1/p' tiny/$REPORT | grep -q . ||
    fail "the default learning rate doesn't go by the images of a step: $(grep '"lr"' tiny/$REPORT)"

# The same weights in every run, and other random numbers on each rank.
options="-d data --mixup 0.3 --grad-accum 2 -b 4 --ema 0.5 --ranks 2"
expect 0 run $options --out whole
expect 0 run $options --out again -j 1
same whole/$CK again/$CK "two runs"
numbers whole/$REPORT >whole.numbers; numbers again/$REPORT >again.numbers
cmp whole.numbers again.numbers || fail "two runs report other numbers"
# Stopped and resumed, in the middle of an epoch and at its end.
expect 0 run $options --out parts --run-epochs 1.3
expect 0 run $options --out parts --resume --run-epochs 0.7
expect 0 run $options --out parts --resume
same whole/$CK parts/$CK "a run in three parts"
# To the last bits: the losses of an epoch were added up in other parts.
alike whole/$REPORT parts/$REPORT "a resumed run reports other numbers" 1e-12
expect 0 run $options --out parts --resume
grep -q 'finished already' "$work/err" || fail "a finished run is not called so"
expect 0 run $options --out three --run-epochs 1
expect 1 run -d data --mixup 0.3 --grad-accum 2 -b 4 --ema 0.5 --ranks 3 --out three --resume
grep -q 'ranks was 2, and now is 3' "$work/err" || fail "resuming with other ranks: $(cat "$work/err")"
[ "$(wc -l <"$work/err")" = 1 ] || fail "an error of all ranks is not told once"
# Where the order is the machine's, each rank goes on from where it was.
expect 0 run $options --out completion --batching completion -j 3 --run-epochs 0.6
expect 0 run $options --out completion --batching completion -j 3 --resume
[ "$(images train completion/$REPORT)" = 72 ] || fail "completion: not all images"

# What any rank can't read is named, once.
make_images bad 3 25 7 8
for file in $(ls bad/train/c0/* | head -3) $(ls bad/val/c1/* | tail -1); do echo junk >"$file"; done
expect 0 run -d bad --out bad-out --ranks 2 -b 4
[ "$(grep -c 'bad/.*/c' "$work/err")" = 4 ] || { cat "$work/err" >&2; fail "not four bad samples are named"; }
[ "$(images val bad-out/$REPORT)" = 20 ] || fail "bad ones count"
make_images share 3 8 1 8 # validation: one for each of three ranks
echo junk >"$(ls share/val/c2/*)"
expect 0 run -d share --out share-out --ranks 3 -b 4
[ "$(images val share-out/$REPORT)" = 2 ] || fail "a rank whose share is all bad"
for file in share/val/*/*; do echo junk >"$file"; done
expect 1 run -d share --out share-bad --ranks 3 -b 4
grep -q 'none of the 3 validation images' "$work/err" || { cat "$work/err" >&2; fail "nothing to validate"; }
expect 1 run -d bad --out bad-stop --ranks 2 -b 4 --on-bad stop
grep -q 'bad/train/c0/' "$work/err" || { cat "$work/err" >&2; fail "--on-bad stop names no file"; }

# Wrong usage.
expect 2 run -d data --ranks 2 --gpus 2
expect 2 run -d data --ranks 0
expect 2 run -d data --world pigeons
expect 2 run -d data --world local
expect 2 run -d data --world mpi --ranks 2
expect 2 run -d data --gpus 2 --device ref
expect 1 run -d nowhere --ranks 3
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err" >&2; fail "a missing dataset is not told once"; }

# A budget is rank 0's to decide.
expect 0 run -d data --ranks 2 -b 4 --time-budget 2s --out budget --lr 0.01
[ "$(field budget/$REPORT completed)" = true ] || fail "the budget's run is not completed"

# -- deaths: who is left, and how they end --

# ranks_of PID: its ranks' processes.
ranks_of() { cat /proc/"$1"/task/"$1"/children 2>/dev/null; }
# A long run on the slow device: $pid, and its $count ranks in $ranks, all at work.
begin() {
    rm -rf deaths
    (exec dl2-train $smallest -d data -b 4 --device ref --out deaths -e 1000 --checkpoint-every 0.5 "$@") >out.deaths 2>err.deaths &
    pid=$!
    until_checkpoint deaths err.deaths
    ranks=$(ranks_of $pid)
}
# All go, if only after a while on a busy machine.
ended() { for process in $pid $ranks; do await "process $process is left over: $1" gone "$process"; done; }
for victim in 1 2 3; do # rank 0 comes first
    begin --ranks 3
    [ "$(echo $ranks | wc -w)" = 3 ] || fail "not three ranks: $ranks"
    kill -KILL $(echo $ranks | cut -d ' ' -f $victim)
    wait $pid; status=$?
    [ $status = 1 ] || fail "status $status after rank $((victim - 1)) was killed"
    ended "rank $((victim - 1)) was killed"
    grep -q "rank $((victim - 1)) of 3 .*killed by signal 9" err.deaths || { cat err.deaths >&2; fail "who was killed?"; }
    [ $victim = 1 ] || grep -q -e "--resume goes on from deaths/$CK" err.deaths || { cat err.deaths >&2; fail "how to go on?"; }
done
begin --ranks 2
kill -KILL $pid
wait $pid 2>/dev/null
ended "the starter was killed"
# A second run into a folder where one is at work is refused, and changes nothing there.
begin --ranks 2
expect 1 run -d data -b 4 --out deaths -e 1
grep -q 'deaths: another dl2-train is at work there' "$work/err" || { cat "$work/err" >&2; fail "two runs in one folder"; }
kill -INT $pid
wait $pid
grep -q 'stopped at epoch' err.deaths || { cat err.deaths >&2; fail "the first of two runs ended otherwise"; }
expect 1 run -d data -b 4 --export data --out export -e 1
{ grep -q 'data: is a folder' "$work/err" && [ ! -e export/$CK ]; } || { cat "$work/err" >&2; fail "trained before it looked where to export"; }
# A signal to the starter, or to any rank, ends all after the same step; the checkpoint resumes.
begin --ranks 2
kill -TERM $pid
wait $pid; status=$?
[ $status = 1 ] || fail "status $status after SIGTERM"
ended "SIGTERM"
grep -q 'stopped at epoch' err.deaths || { cat err.deaths >&2; fail "SIGTERM stopped nothing"; }
[ "$(field deaths/$REPORT completed)" = false ] || fail "completed after SIGTERM"
expect 0 run -d data -b 4 --device ref --out deaths -e 1000 --resume --run-epochs 0.5 --ranks 2
begin --ranks 2
kill -INT $(echo $ranks | cut -d ' ' -f 2)
wait $pid; status=$?
[ $status = 1 ] || fail "status $status after SIGINT to a rank"
ended "SIGINT to a rank"
grep -q 'stopped at epoch' err.deaths || fail "SIGINT to rank 1 stopped nothing"
# Ranks that don't answer: stopped by SIGSTOP, and then one is killed.
begin --ranks 3
kill -STOP $(echo $ranks | cut -d ' ' -f 2)
kill -KILL $(echo $ranks | cut -d ' ' -f 3)
wait $pid
ended "a rank hung"
