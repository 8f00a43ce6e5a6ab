# SPDX-License-Identifier: BSD-2-Clause
# Several models on one stream of batches: each has the weights of its own run, bit for bit, wherever they
# are stopped; one that diverges ends alone; what is wrong with a line is named.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 15 4 8
cat >configs <<'END'
{"name": "a"}
{"name": "b", "lr": 0.02, "seed": 5, "mixup": 0.3, "clip-grad": 1}

{"name": "c", "optimizer": "adamw", "epochs": 1.6, "weight-decay": 0, "ema": 0.9}
{"name": "d", "grad-accum": 2, "nesterov": true, "label-smoothing": 0, "freeze": false}
END
together() { run -d data --seed 1 several --configs configs "$@"; }
expect 0 run -d data --out a --seed 1
expect 0 run -d data --out b --seed 5 --data-seed 1 --lr 0.02 --mixup 0.3 --clip-grad 1
expect 0 run -d data --out c --seed 1 --optimizer adamw -e 1.6 --weight-decay 0 --ema 0.9
expect 0 run -d data --out d --seed 1 --grad-accum 2 --nesterov --label-smoothing 0
differ a/$CK b/$CK
models="a b c d"
expect 0 together --out together --share batch
all_same together "four models"
# A report is of the model alone, but for who shared the machine; its losses are those of its own run.
for model in a b c d; do
    for report in $model together/$model; do sed -n 's/^ *"loss": //p' $report/$REPORT >losses.${report%%/*}; done
    cmp losses.$model losses.together || fail "the report of $model has other losses"
done
is "$(sed -n 's/^ *"trainers": //p' together/a/$REPORT | tr -d '\n')" 1,4,4,3, "who shared the machine"

# Stopped in the middle of an epoch, and at places that differ; then one model behind the others.
expect 0 together --out parts --run-epochs 0.7
expect 0 together --out parts --resume --run-epochs 0.5
expect 0 together --out parts --resume
all_same parts "in three parts"
expect 1 together --out parts
said 'there already'
expect 0 together --out parts --resume
said 'a: this run is finished already'
expect 0 together --out behind --run-epochs 1.4
rm behind/b/$CK
expect 0 together --out behind --resume
all_same behind "one model that begins anew"
expect 0 together --out killed --run-epochs 1
dl2-train $smallest -d data --seed 1 several --configs configs --out killed --resume --checkpoint-every 0.2 >/dev/null 2>&1 &
process=$!
await "no second part" grep -q '"position": 2' killed/a/$REPORT
kill -9 $process 2>/dev/null
wait $process 2>/dev/null
expect 0 together --out killed --resume
all_same killed "after kill -9"

# One that diverges ends alone.
cat >wild <<'END'
{"name": "wild", "lr": 1e6, "warmup": 0, "momentum": 0.99, "epochs": 30}
{"name": "a"}
END
expect 1 run -d data --seed 1 several --configs wild --out wild-out
said 'wild: training diverged'
said 'lower --lr'
same a/$CK wild-out/a/$CK "beside one that diverged"
[ "$(field wild-out/wild/$REPORT completed)" = false ] || fail "a run that diverged calls itself completed"

# Memory is counted before any is taken.
expect 1 together --out large --memory 100K
said 'the networks of 4 models take'
said '--memory allows 0.1 MiB'
expect 1 together --out large --memory 100M --cache-decoded 1G
said ', and --cache and --cache-decoded 1024.0 MiB; --memory allows 100.0 MiB'
expect 1 together --out large --memory 100K --cache 1G
said ', and --cache and --cache-decoded 0.0 MiB' # no more than there are images
[ ! -e large/a/$CK ] || fail "a model was trained that has no room"

# wrong LINE TEXT...: the line is refused with its number, and nothing is written.
wrong() {
    printf '{"name": "first"}\n%s\n' "$1" >wrong
    expect 2 run -d data several --configs wrong --out wrong-out
    said 'wrong:2: '
    shift
    for text; do said "$text"; done
}
wrong '{"lr": 0.1}' 'no "name"'
wrong '{"name": "first"}' '"name": there is a '
wrong '{"name": "a/b"}' 'cannot be the name of a folder'
wrong '{"name": ".."}' 'cannot be the name of a folder'
wrong '{"name": "a\nb"}' 'cannot be the name of a folder'
wrong '{"name": "x", "rate": 1}' '"rate": there is no such option'
wrong '{"name": "x", "learning_rate": 1}' '"learning_rate": there is no such option; did you mean lr (Peak learning rate)?'
wrong '{"name": "x", "batch": 4}' '"batch": it is the same for all models'
wrong '{"name": "x", "out": "y"}' '"out": it is the same'
wrong '{"name": "x", "lr": "high"}' '"lr": it is not a number'
wrong '{"name": "x", "lr": -1}' '"lr": ' 'is not between'
wrong '{"name": "x", "nesterov": 1}' '"nesterov": it is not true or false'
printf '{"name": "x", "export": "w"}\n{"name": "y", "export": "w"}\n' >wrong
expect 2 run -d data several --configs wrong --out wrong-out
said "wrong:2: \"export\": 'w' is that of 'x'"
wrong '{"name": "x", "arch": 5}' '"arch": it is not a text'
wrong '{"name": "x", "arch": "vgg"}' '--arch: '
wrong '{"name": "x", "beta2": 0.9}' '--beta2 needs an adaptive --optimizer'
wrong '{"name": "x", "warmup": 9}' '--warmup 9 is not shorter'
wrong '{"name": "x", "lr": 1, "lr": 2}' 'it is not JSON'
wrong '[1]' 'it is not an object'
wrong '{"name": "x"' 'it is not JSON'
printf '{"name": "x"}\n{"name": "y", "arch": "resnet18"}\n' >wrong
expect 2 dl2-train -d data -a convnet several --configs wrong --out wrong-out
said 'wrong:2: images of resnet18 have 224 pixels'
expect 2 run -d data several --configs wrong --out wrong-out --val-crop squash --val-resize 40
said 'wrong:1: --val-resize has no effect with --val-crop squash'
: >wrong
expect 2 run -d data several --configs wrong --out wrong-out
said 'has no configuration'
for option in "--name x" "--export x" "--checkpoint x" "--time-budget 1m" "--ranks 2" "--partition 1/2" "--batching completion" "--cutmix 1"; do
    expect 2 together --out wrong-out $option
done
expect 2 run -d data --share batch --out wrong-out
said '--share is not an option of the command run, but of several, search'
expect 2 run -d data --memory 1G --out wrong-out
[ ! -e wrong-out ] || fail "wrong usage made a folder"
expect 1 run -d data several --configs missing --out wrong-out
explained share dl2-train several -d data
