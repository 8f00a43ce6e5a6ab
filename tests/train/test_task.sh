# SPDX-License-Identifier: BSD-2-Clause
# Task parallel training: each rank trains whole models on all images, with the weights of their own runs, bit for
# bit, also where a rank is killed or all are stopped.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
models="a b c"
make_images data 3 25 7 8
cat >configs <<'EOF'
{"name": "a"}
{"name": "b", "lr": 0.02, "seed": 5, "mixup": 0.3, "clip-grad": 1}
{"name": "c", "optimizer": "adamw", "weight-decay": 0, "ema": 0.9, "grad-accum": 3}
EOF
# alone OPTION...: each model's own run.
alone() {
    rm -rf a b c
    expect 0 run -d data --out a --seed 1 "$@"
    expect 0 run -d data --out b --seed 5 --data-seed 1 --lr 0.02 --mixup 0.3 --clip-grad 1 "$@"
    expect 0 run -d data --out c --seed 1 --optimizer adamw --weight-decay 0 --ema 0.9 --grad-accum 3 "$@"
}
task="-d data --seed 1 several --configs configs --task"
alone -e 2.6
expect 0 run $task -e 2.6 --ranks 2 --out task
all_same task "models on ranks of their own"
is "$(wc -l <task/visits.jsonl)" 3 "number of visits"
is "$(grep -c '"bytes_moved":0,' task/visits.jsonl)" 3 "visits without a move"
expect 1 run $task -e 2.6 --ranks 2 --out task
said 'is there already: continue it with --resume'

# A rank that is killed is started again; a signal stops all, and --resume goes on, with another number of ranks.
long="-e 12 --checkpoint-every 0.3"
alone $long
begun() { [ -s "$1/a/$CK" ] || [ -s "$1/b/$CK" ] || [ -s "$1/c/$CK" ]; }
(exec dl2-train $smallest $task $long --ranks 2 --out killed) >/dev/null 2>err.killed &
pid=$!
await "no checkpoint" begun killed
kill -KILL $(cut -d ' ' -f 1 /proc/$pid/task/$pid/children)
wait $pid || { cat err.killed >&2; fail "a killed rank ended the others"; }
grep -q 'was killed, and goes on$' err.killed || fail "it does not tell of the killed rank: $(cat err.killed)"
all_same killed "a rank that was killed"
(exec dl2-train $smallest $task $long --ranks 2 --out stopped) >/dev/null 2>err.stopped &
pid=$!
await "no checkpoint" begun stopped
kill -TERM $pid
wait $pid
expect 0 run $task $long --ranks 3 --out stopped --resume
all_same stopped "resumed on three ranks"

# wrong TEXT OPTION...
wrong() {
    text=$1
    shift
    expect 2 run several -d data --out wrong "$@"
    said "$text"
}
wrong '--task needs several ranks' --configs configs --task
wrong 'several needs --configs FILE' --task --ranks 2
wrong '--task excludes --hop' --configs configs --task --hop --ranks 2
wrong '--share has no use with --task' --configs configs --task --ranks 2 --share batch
wrong '--hop-order needs --hop' --configs configs --task --ranks 2 --hop-order fixed
wrong '--balanced has no use with --hop and --task' --configs configs --task --ranks 2 --balanced
wrong '--run-epochs has no use with --hop and --task' --configs configs --task --ranks 2 --run-epochs 1
wrong 'needs --hop or --task' --configs configs --ranks 2

# Models that a rank trains one at a time may differ in batches and images, too: the weights are those of their own runs.
cat >own <<'END'
{"name": "own-a"}
{"name": "own-b", "batch": 4, "image-size": 16}
{"name": "own-c", "augment": "randaugment", "cutmix": 1}
END
expect 0 run -d data -e 2 --out own-a
expect 0 run -d data -e 2 -b 4 --image-size 16 --out own-b
expect 0 run -d data -e 2 --augment randaugment --cutmix 1 --out own-c
expect 0 run -d data -e 2 several --configs own --task --ranks 2 --out own-task
for model in own-a own-b own-c; do same $model/$CK own-task/$model/$CK "$model, with batches and images of its own"; done
expect 0 run -d data -e 1 -b 4 --image-size 16 --partition 2/2 --out own-hand
expect 0 run -d data -e 1 -b 4 --image-size 16 --partition 1/2 --out own-hand --resume
expect 0 run -d data -e 1 several --configs own --hop --hop-order fixed --ranks 2 --out own-hop
same own-hand/$CK own-hop/own-b/$CK "a model that hops, with batches and images of its own"
expect 2 run -d data several --configs own --out wrong-out
said 'own:2: "batch": it is the same for all models, as --batch on the command line; with --hop and --task they may differ in it'
