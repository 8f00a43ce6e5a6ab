# SPDX-License-Identifier: BSD-2-Clause
# --pretrained and --export: what a file of weights may be, and what is said of one that doesn't fit.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need_python struct python3
edit() { "$PYTHON3" -B "$srcdir/tests/network/edit_safetensors.py" "$@" || exit 99; }
make_images data 3 11 4 12
train="-d data --skip-validation"
expect 0 run $train --export out.safetensors --out one
expect 0 run $train --pretrained one/$CK --out two
differ one/$CK two/$CK "--pretrained"
[ -s "$work/err" ] && fail "$(cat "$work/err")"
expect 0 run $train --pretrained out.safetensors --out three
same two/$CK three/$CK "a checkpoint's weights and the exported ones"
for type in F16 BF16 F64; do
    edit out.safetensors $type.safetensors "*=$type" stage1.bn1.num_batches_tracked=I64:
    expect 0 run $train --pretrained $type.safetensors --out $type
done
same two/$CK F64/$CK "F32 and F64"
differ two/$CK F16/$CK "F32 and F16"
differ F16/$CK BF16/$CK "F16 and BF16"

# Averages change no weights; they are what is exported, and the checkpoint keeps both.
expect 0 run $train --ema 0.8 --export averages.safetensors --out ema
expect 0 run $train --pretrained ema/$CK --out unchanged
same two/$CK unchanged/$CK "the weights below --ema"
"$PYTHON3" - ema/$CK averages.safetensors out.safetensors <<'PY' || fail "--export of averages"
import json, struct, sys
def tensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__")
    return {name: data[slice(*t["data_offsets"])] for name, t in header.items()}
checkpoint, averages, weights = map(tensors, sys.argv[1:])
assert averages.keys() == weights.keys()
for name, value in averages.items():
    assert checkpoint["average." + name] == value, name
    assert checkpoint[name] == weights[name] != value, name
PY

# A run that is resumed goes on from its checkpoint, whatever the file holds by then.
expect 0 run $train --pretrained out.safetensors --out parts --run-epochs 1
echo damaged >gone.safetensors
expect 0 run $train --pretrained gone.safetensors --out parts --resume
same two/$CK parts/$CK "--pretrained, resumed"
expect 1 run $train --out parts --restart --pretrained gone.safetensors

# Another number of classes: the last layer is fresh, and no other.
make_images other 4 11 4 12
expect 0 run -d other --skip-validation --pretrained out.safetensors --out other1
grep -q "the last layer, fc, begins anew: it was for 3 classes, not 4" "$work/err" || fail "$(cat "$work/err")"

# Files that don't fit say where.
refuses() {
    words=$1; shift
    edit out.safetensors bad.safetensors "$@"
    expect 1 run $train --pretrained bad.safetensors --out bad
    grep -q "bad.safetensors: .*$words" "$work/err" || fail "no '$words' in: $(cat "$work/err")"
}
refuses "weights of convnet here (missing: stage2.bn1.weight)" stage2.bn1.weight=
refuses "missing: stage1.conv1.weight, stage1.bn1.weight, stage2.bn1.running_var and 1 more" \
    stage1.conv1.weight= stage1.bn1.weight= stage2.bn1.running_var= fc.bias=
refuses "missing: stage1.conv1.weight; unknown: stem.weight" stage1.conv1.weight@stem.weight
refuses "of another shape: stage1.conv1.weight" stage1.conv1.weight=F32:32,1,3,3
refuses "of another shape: stage1.bn1.weight" stage1.bn1.weight=F32:31
refuses "of another shape: fc.weight" fc.weight=F32:3,64
refuses "stage1.conv1.weight' is I64" stage1.conv1.weight=I64:32,3,3,3
head -c 1000 out.safetensors >short.safetensors
expect 1 run $train --pretrained short.safetensors --out bad
expect 1 run $train --pretrained nothing.safetensors --out bad
expect 1 run $train -a resnet20 --pretrained out.safetensors --out bad
