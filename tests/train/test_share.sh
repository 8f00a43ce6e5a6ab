# SPDX-License-Identifier: BSD-2-Clause
# Models that share decoded images and nothing else: each has the weights of its own run with its own seed, bit for
# bit, however much the cache holds and wherever they are stopped; an image that has room is decoded once for all.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
models="a b c"
need_python json python3
make_images data 3 15 4 8
cat >configs <<'END'
{"name": "a", "seed": 1}
{"name": "b", "seed": 5, "lr": 0.02, "epochs": 1.6}
{"name": "c", "seed": 7, "grad-accum": 2, "ema": 0.9}
END
augment="--augment erase:p=0.5 --cutmix 0.5"
together() { run -d data $augment --share decode several --configs configs "$@"; }
expect 0 run -d data $augment --out a --seed 1
expect 0 run -d data $augment --out b --seed 5 --lr 0.02 -e 1.6
expect 0 run -d data $augment --out c --seed 7 --grad-accum 2 --ema 0.9
expect 0 together --out all --cache-decoded 1M
all_same all "with room for all images"
expect 0 together --out some --cache-decoded 8K -j 7
all_same some "with room for some images"
# decoded FOLDER EPOCH: of how many images a run of its own would decode, how many were decoded.
decoded() {
    "$PYTHON3" -c 'import json, sys
epochs = [json.load(open(f"{sys.argv[1]}/{name}/experiment_report.json"))["epochs"] for name in "abc"]
own = [e[int(sys.argv[2])] for e in epochs if len(e) > int(sys.argv[2])]
images, hits = sum(e["train"]["images"] for e in own), sum(e["loader"]["decoded_hits"] for e in own)
print(images, images - hits)' "$@"
}
# Loaders that meet at an image decode it both: a few times in the first epoch, never after it.
set -- $(decoded all 0)
[ "$1" = 120 ] && [ "$2" -ge 40 ] && [ "$2" -le 80 ] || fail "of $1 images $2 were decoded in the first epoch"
is "$(decoded all 2)" "80 0" "images and decoded ones of the last epoch"
# Validation images are decoded once.
"$PYTHON3" -c 'import json
sets = [epoch["val"][0] for epoch in json.load(open("all/a/experiment_report.json"))["epochs"]]
assert [s["decoded_hits"] for s in sets] == [0] + [s["images"] for s in sets[1:]], sets' || fail "validation"
set -- $(decoded some 2)
[ "$2" -gt 0 ] && [ "$2" -lt "$1" ] || fail "with room for some images $2 of $1 were decoded"

if ! slow; then # as above, several times over
    # Stopped where the models' places differ, and resumed; one model that begins anew behind the others.
    expect 0 together --out parts --cache-decoded 1M --run-epochs 0.7
    expect 0 together --out parts --cache-decoded 10K --resume --run-epochs 0.5
    rm parts/b/$CK
    expect 0 together --out parts --cache-decoded 1M --resume
    all_same parts "in three parts"

    # One order for all, where the command line has its seed.
    expect 0 run -d data --seed 5 --data-seed 3 --lr 0.02 -e 1.6 --out same-order
    expect 0 run -d data --share decode several --configs configs --data-seed 3 --cache-decoded 1M --out ordered
    same same-order/$CK ordered/b/$CK "with one --data-seed"
    # A search has the same way to share.
    echo '{"seed": [1, 5]}' >space.json
    expect 0 run -d data search --space space.json --algorithm grid --share decode --cache-decoded 1M --out search
    expect 0 run -d data --seed 5 --out alone
    same alone/$CK search/trial-001/$CK "a trial"
    expect 0 run --loader synthetic --share decode several --configs configs --cache-decoded 1M --out noise
fi

expect 2 together --out wrong-out
said '--share decode needs --cache-decoded'
expect 2 run -d data --share decode --cache-decoded 1M --out wrong-out
said '--share is not an option of the command run'
expect 1 together --cache-decoded 100 --out wrong-out
said 'can'"'"'t even hold the table'
