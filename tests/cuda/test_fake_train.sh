# SPDX-License-Identifier: BSD-2-Clause
# dl2-train on the training device cuda, with what stands in for a card (fake_cuda.h): staged uploads, recorded steps,
# and an order of streams that must not matter.
. "$srcdir/tests/lib.sh"
fake=$builddir/tests/cuda/fake_dl2_train
[ -x "$fake" ] || skip "no CUDA toolkit, C++ or cmocka"
. "$srcdir/tests/train/train_lib.sh"
images=20
slow && images=13
make_images data 3 $images 6 8
small="$smallest -e 2 -b 7 --seed 3"
train() { "$fake" $small -d data "$@"; }

# The same bits, whenever what is queued runs, and with steps done anew rather than replayed.
paces="lazy random"
slow && paces=random
for pace in eager $paces; do
    DL2_FAKE_PACE=$pace expect 0 train --device cuda --mixup 0.2 --ema 0.5 --deterministic --out $pace
done
for pace in $paces; do
    same eager/$CK $pace/$CK "eager and $pace streams"
done
DL2_CUDA_GRAPHS=off expect 0 train --device cuda --mixup 0.2 --ema 0.5 --deterministic --out plain
same eager/$CK plain/$CK "with and without graphs"

# Steps that cannot be recorded, for whatever reason, are done one by one, to the same weights; that is told once.
stages="begin call end instantiate launch"
slow && stages=launch
for what in $stages; do
    DL2_FAKE_RECORDING=$what DL2_FAKE_PACE=random expect 0 train --device cuda --mixup 0.2 --ema 0.5 --deterministic --out no.$what
    same eager/$CK no.$what/$CK "where recording fails at its $what"
    is "$(grep -c 'warning: .*steps cannot be recorded (' "$work/err")" 1 "warnings where recording fails at its $what"
    [ "$(grep -c 'steps cannot be recorded (' no.$what/$REPORT)" = 1 ] || fail "the report has no word of a failed recording"
done
# A card that faults meanwhile is not one that cannot record.
DL2_FAKE_RECORDING=fault expect 1 train --device cuda --deterministic --out no.card
grep -q 'cudaError 719' "$work/err" || fail "a card that faulted: $(cat "$work/err")"
! grep 'cannot be recorded' "$work/err" || fail "recording is blamed for a card that faulted"
grep -q '"device_notes": \[\]' eager/$REPORT || fail "notes in the report of a run without any"

# A profiler is shown one step: three copies, of images and labels to the card and of labels there.
graphs_or_none="on off"
slow && graphs_or_none=on
for graphs in $graphs_or_none; do
    DL2_FAKE_PROFILE=profile.$graphs DL2_CUDA_PROFILE=3 DL2_CUDA_GRAPHS=$graphs expect 0 train --device cuda --out $graphs
    awk '{ what = what $1; n = $2 - n } END { exit what != "startstop" || n != 3 }' profile.$graphs ||
        fail "what a profiler sees: $(cat profile.$graphs)"
done

# Times of a step's parts, which change nothing. The card's clock knows convolutions, at 0.9 ms and more, and little else.
DL2_CUDA_TIMES=times.json expect 0 train --device cuda --mixup 0.2 --ema 0.5 --deterministic --out timed
same eager/$CK timed/$CK "with times"
"${PYTHON3:-python3}" - <<'PY' || fail "times: $(cat times.json)"
import json
told = json.load(open("times.json"))
assert told["schema"] == "dl2-cuda-times/1" and told["card"] == "Fake card"
parts = {(p["layer"], p["what"]): p for p in told["parts"]}
assert len(parts) == len(told["parts"])
sums = [p["ms"] for p in told["parts"]]
assert sums == sorted(sums, reverse=True)
trained, measured = parts["", "update"]["calls"], told["steps"]
assert 2 <= trained < measured == parts["", "ingest"]["calls"] == parts["", "loss"]["calls"], (trained, measured)
for what, calls in ("forward", trained), ("backward", trained), ("gradient of weights", trained), ("evaluation", measured - trained):
    part = parts["stage1.conv2.weight", what]
    assert part["calls"] == calls and part["least_ms"] >= 0.9 and part["ms"] >= calls * part["least_ms"], part
assert parts["stage1.conv1.weight", "backward"]["ms"] < 0.1 # there is no gradient of images
assert parts["fc.weight", "forward"]["least_ms"] < 0.9
PY

# near REPORT REPORT: losses of all epochs, but for rounding.
near() {
    "${PYTHON3:-python3}" - "$1/$REPORT" "$2/$REPORT" <<'PY' || fail "$2 is not what the reference device gets"
import json, sys
a, b = (json.load(open(f))["epochs"] for f in sys.argv[1:])
assert len(a) == len(b) == 2
for x, y in zip(a, b):
    for p, q in ((x["train"]["loss"], y["train"]["loss"]), (x["val"][0]["loss"], y["val"][0]["loss"])):
        assert abs(p - q) < 1e-5 * abs(p), (p, q)
PY
}

# What the reference device gets, nearly.
expect 0 train --device ref --mixup 0.2 --ema 0.5 --out ref
near ref eager

# Images of two sizes, frozen layers, RMSprop and clipped gradients: recorded steps and uploads of each in turn.
staged() {
    "$fake" --quiet -j 2 --threads 1 -a convnet --image-size 8 -b 7 --seed 3 --optimizer rmsprop --clip-grad 0.5 --lr 1e-4 \
        --stages data:1:size=10:freeze,data:1 "$@"
}
for pace in eager random; do
    DL2_FAKE_PACE=$pace expect 0 staged --device cuda --out staged.$pace
done
same staged.eager/$CK staged.random/$CK "stages with eager streams and at random"
expect 0 staged --device ref --out staged.ref
near staged.ref staged.eager
slow || DL2_FAKE_PACE=random expect 0 staged --device cuda --amp fp16 --out staged.fp16

# Half precision.
amps="bf16 fp16"
slow && amps=fp16
for amp in $amps; do
    expect 0 train --device cuda --amp $amp --out $amp
done

# A transformer, by AdamW: the same bits in the same ways, and the reference device's losses. Batches of 4, 4 and 1.
make_images few 3 3 16 16
transformer() { train -a vit_tiny --image-size 16 -b 4 -d few "$@"; }
if slow; then
    DL2_FAKE_PACE=lazy expect 0 transformer -e 1 --device cuda --amp bf16 --out vit
else
    DL2_FAKE_PACE=eager expect 0 transformer --device cuda --out vit.eager
    DL2_FAKE_PACE=random expect 0 transformer --device cuda --out vit.random
    same vit.eager/$CK vit.random/$CK "a transformer's eager and random streams"
    DL2_CUDA_GRAPHS=off expect 0 transformer --device cuda --out vit.plain
    same vit.eager/$CK vit.plain/$CK "a transformer with and without graphs"
    expect 0 transformer --device ref --out vit.ref
    near vit.ref vit.eager
    for amp in $amps; do
        DL2_FAKE_PACE=lazy expect 0 transformer --device cuda --amp $amp --out vit.$amp
    done
fi

# Too little memory: what would fit is said.
DL2_FAKE_MEMORY=3000000 expect 1 train --device cuda -b 64 --out none
grep -q "MiB of the card's memory" "$work/err" || fail "nothing is said of the card's memory: $(cat "$work/err")"
grep -q "a batch of [0-9]*% of this one" "$work/err" || fail "no batch that fits is named: $(cat "$work/err")"
# The same where tensors fit, but not what a layer late in the network needs beside them.
DL2_FAKE_MEMORY=146000000 expect 1 train -a resnet18 --device cuda --out none
grep -q "layer4.*MiB of the card's memory" "$work/err" || fail "no layer is named that does not fit: $(cat "$work/err")"

# Several models on one card, each with a stream, come to the weights of their own runs.
if ! slow; then
    printf '{"name": "a", "mixup": 0.2, "ema": 0.9}\n{"name": "b", "amp": "fp16", "grad-accum": 2}\n' >models
    DL2_FAKE_PACE=random expect 0 train --device cuda --deterministic -e 1 several --configs models --out models-out
    expect 0 train --device cuda --deterministic -e 1 --mixup 0.2 --ema 0.9 --out model-a
    expect 0 train --device cuda --deterministic -e 1 --amp fp16 --grad-accum 2 --out model-b
    same model-a/$CK models-out/a/$CK "the first of two models on a card"
    same model-b/$CK models-out/b/$CK "the second of two models on a card"
fi
