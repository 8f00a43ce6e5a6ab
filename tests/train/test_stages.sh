# SPDX-License-Identifier: BSD-2-Clause
# What a stage has of its own: the size of its images, and whether all but the last layer is frozen.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 16 5 16
make_images other 3 16 5 16 color 9
staged() { dl2-train --quiet -j 2 --threads 1 -a convnet -b 8 --image-size 12 --optimizer adamw "$@"; }
# tensors FILE NAME...: a checksum of these tensors.
tensors() {
    "${PYTHON3:-python3}" - "$@" <<'PY'
import json, struct, sys, zlib
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
names = [n for n in header if any(n.startswith(prefix) for prefix in sys.argv[2:])]
assert names, sys.argv[2:]
for name in sorted(names):
    begin, end = header[name]["data_offsets"]
    print(name, zlib.crc32(data[8 + size + begin:8 + size + end]))
PY
}

# ---- Sizes: training at one, validation at the run's own
expect 0 staged --stages data:1,other:1 --out plain
expect 0 staged --stages data:1:size=12,other:1:size=12 --out same
same plain/$CK same/$CK "a stage of the run's own size"
expect 0 staged --stages data:1:size=8,other:1 --out grows
differ plain/$CK grows/$CK "a stage of another size"
grep -q '"image_size": 8' grows/$REPORT || fail "the stage's size is not in the report"
[ "$(field grows/$REPORT image-size)" = 12 ] || fail "the run's size is not in the report"
# Validated at 12 pixels after an epoch at 8: as an evaluation at 12 says, and not one at 8.
expect 0 staged --stages data:1:size=8,other:1 --out first --run-epochs 1
was=$(field first/$REPORT loss)
for size in 12 8; do
    expect 0 dl2-train --quiet -j 2 --threads 1 evaluate first/$CK --val other --image-size $size --out at$size
done
"${PYTHON3:-python3}" - first/$REPORT at12/evaluation_report.json at8/evaluation_report.json <<'PY' || fail "validated at $was"
import json, sys
run, large, small = (json.load(open(path)) for path in sys.argv[1:])
loss = run["epochs"][0]["val"][0]["loss"]
assert abs(loss - large["val"][0]["loss"]) < 1e-9 and abs(loss - small["val"][0]["loss"]) > 1e-6
PY
# Down again, up again; stopped anywhere.
sizes=data:1:size=8,other:0.5:size=16,data:1,other:0.5:size=8
expect 0 staged --stages $sizes --out sizes
for stop in 0.7 0.3 0.9; do
    expect 0 staged --stages $sizes --out sizes-parts --resume --run-epochs $stop
done
expect 0 staged --stages $sizes --out sizes-parts --resume
same sizes/$CK sizes-parts/$CK "sizes, resumed"
expect 0 staged --stages $sizes --out sizes-parts --restart --run-epochs 0.5
expect 1 staged --stages data:1:size=9,other:0.5:size=16,data:1,other:0.5:size=8 --out sizes-parts --resume
said 'training data was'
# A stage, or the run, whose images are not square.
expect 0 staged --stages data:1:size=8x12,other:1 --out wide-stage
grep -q '"image_size": "8x12"' wide-stage/$REPORT || fail "the size of a stage is not in the report"
expect 0 staged --image-size 8x12 --stages data:1:size=12,other:1 --out wide-run
grep -q '"image_size": 12' wide-run/$REPORT || fail "the stage's square size is not in the report"
# A transformer's weights are for one size, and a size may be too small: said before any training.
expect 1 staged -a vit_tiny --image-size 16 --stages data:1:size=8,other:1 --out x
said 'weights of vit_tiny for images of 16x16 do not fit images of 8x8'
expect 1 staged -a alexnet --image-size 64 --stages data:1,other:1:size=32 --out x
said 'too small for alexnet'

# ---- Frozen: all but the last layer stays, batch norm's statistics too
body="conv1 bn1 layer stage"
expect 0 staged -d data -e 1 --out begun --export begun.safetensors
expect 0 staged -d other -e 2 --freeze --pretrained begun.safetensors --out frozen --export frozen.safetensors
tensors begun.safetensors $body >before
tensors frozen.safetensors $body >after
cmp before after || fail "--freeze changed layers: $(diff before after)"
tensors begun.safetensors fc. >before
tensors frozen.safetensors fc. >after
[ "$(diff before after | grep -c '^>')" = 2 ] || fail "--freeze leaves the last layer as it is"
expect 0 staged --stages other:2:freeze --pretrained begun.safetensors --out frozen-stage
same frozen/$CK frozen-stage/$CK "a frozen stage alone"
expect 0 staged -d other -e 2 --freeze --pretrained begun.safetensors --out two --ranks 2 -b 4
tensors two/$CK $body >two.after
tensors begun.safetensors $body >two.before
cmp two.before two.after || fail "--freeze changed layers, with two ranks"
differ begun/$CK two/$CK "two ranks learn"

# The head first, then all: the optimizer begins anew, AdamW's moments and their count.
stages=data:1:freeze,other:1
expect 0 staged --stages $stages --out thaws
expect 0 staged --stages $stages --out thaws-parts --run-epochs 1
grep -q '"optimizer_begun"' thaws-parts/$CK && fail "the optimizer began anew before its stage"
expect 0 staged --stages $stages --out thaws-parts --resume --run-epochs 0.4
grep -q 'optimizer_begun' thaws-parts/$CK || fail "the checkpoint does not say when the optimizer began anew"
expect 0 staged --stages $stages --out thaws-parts --resume
same thaws/$CK thaws-parts/$CK "frozen, then not, resumed"
expect 0 staged --stages data:1:freeze:size=8,other:1 --out both
expect 0 staged --stages data:1:size=8:freeze,other:1 --out both-turned
same both/$CK both-turned/$CK "settings in any order"
differ thaws/$CK both/$CK "size and freeze together"
"${PYTHON3:-python3}" - both/$REPORT <<'PY' || fail "the settings that runs are compared by"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["comparable"]["stages"] == [{"epochs": 1.0, "image_size": 8, "freeze": True}, 1.0], report["comparable"]
assert report["stages"][0]["freeze"] is True and "freeze" not in report["stages"][1]
PY
exit 0
