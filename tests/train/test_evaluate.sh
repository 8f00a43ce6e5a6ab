#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# evaluate: a trained network validated again predicts what it predicted at the end of its training.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 5 16 5 8
make_images other 5 16 4 8 color 9
evaluate() { dl2-train --quiet -j 2 --threads 1 evaluate "$@"; }
# predicts A B WHAT: the same files of predictions.
predicts() {
    for k in 0 1; do
        cmp "$1/predictions-$k.npy" "$2/predictions-$k.npy" || fail "$3: predictions of set $k differ"
    done
}
sets="--val other --val data"
expect 0 run -d data $sets --out run --val-resize 10 --export run.safetensors
expect 0 evaluate run/$CK $sets
predicts run run/evaluation "a checkpoint"
EVALUATION=evaluation/evaluation_report.json
grep -q '"schema": "dl2-evaluation/1"' run/$EVALUATION || fail "no report"
is "$(field run/$EVALUATION variant) $(field run/$EVALUATION arch)" "data convnet" "what was trained"
is "$(field run/$EVALUATION val-resize)" 10 "--val-resize is not the run's"
is "$(sed -n '/"val": \[/,/\]/p' run/$EVALUATION)" "$(sed -n '/"final": \[/,/\]/p' run/$REPORT | sed 's/final/val/')" \
    "figures"
expect 0 evaluate run.safetensors $sets --out exported
predicts run exported "exported weights"
expect 0 evaluate run/$CK $sets --out exported # over the earlier one
expect 0 evaluate run/$CK $sets --out ranks --ranks 2
is "$(grep top1 ranks/evaluation_report.json)" "$(grep top1 exported/evaluation_report.json)" "two ranks"
expect 0 evaluate run/$CK $sets --out resized --val-resize 8
cmp -s run/predictions-1.npy resized/predictions-1.npy && fail "--val-resize has no effect"

# Averages are what was validated, and so what is evaluated.
expect 0 run -d data $sets --out ema --ema 0.8
expect 0 evaluate ema/$CK $sets
predicts ema ema/evaluation "averages"

# Labels go by name: joined, the classes are c2, c3, c4, c0, c1; then sets with a sorted list and with a part of it.
cp -r other late && rm -r late/train/c[01] late/val/c[01]
mkdir few && cp -r data/val few && rm -r few/val/c[024]
expect 0 run -d late -d data --val data --val few --val late --out joined -e 9
said "data: labels are numbers of the 5 classes of late, data, by name: it has 5 of them"
said "few: labels are numbers of the 5 classes of late, data, by name: it has 2 of them"
expect 0 evaluate joined/$CK --val data --val few --val late --out joined/evaluation
said "few: labels are numbers of the 5 classes of joined/$CK, by name: it has 2 of them"
predicts joined joined/evaluation "sets of other class lists"
"${PYTHON3:-python3}" - <<'PY' || fail "labels of other class lists"
import json, struct
def rows(path):
    data = open(path, "rb").read()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:begin].replace(b"<", b""))
    key = int(header["descr"][0][1][2:])
    return {r[0].rstrip(b"\0").decode(): r[1:] for r in struct.iter_unpack(f"<{key}siiBBf", data[begin:])}
numbers = {"c2": 0, "c3": 1, "c4": 2, "c0": 3, "c1": 4}
sets = [rows(f"joined/predictions-{k}.npy") for k in range(3)]
assert [len(s) for s in sets] == [25, 10, 12]
for predictions in sets:
    for key, (target, *_) in predictions.items():
        assert target == numbers[key.split("/")[1]], (key, target)
assert all(sets[0][key] == sets[1][key] for key in sets[1])      # the same images, by two lists
right = sum(row[2] for row in sets[0].values())
assert right > 20, right                                          # it has learned these colors
assert json.load(open("joined/evaluation/evaluation_report.json"))["classes"] == 5
PY
# Images of a class that only the training split has are no obstacle; one name of two classes is.
mkdir extra && cp -r data/val data/train extra && mkdir extra/train/c9 && cp data/train/c0/* extra/train/c9
expect 0 evaluate run/$CK --val extra --out joined/extra
is "$(grep top1 joined/extra/evaluation_report.json)" "$(grep top1 run/$EVALUATION | tail -n 1)" "a class without images"
# Nothing tells the classes of another program's weights: their order is what counts, which is said.
expect 0 "${PYTHON3:-python3}" - run.safetensors bare.safetensors <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header.pop("__metadata__")
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
PY
expect 0 evaluate bare.safetensors -a convnet --image-size 8 --val-resize 10 --val data --out joined/bare
said "bare.safetensors does not name its classes: they are taken for those of data, in their order"

# What does not fit is refused, with the reason.
mkdir -p others/val && for k in 0 1 2 3 4; do cp -r data/val/c$k others/val/d$k; done
expect 1 evaluate run/$CK --val others --out bad
said "others: 5 of its images are of the class 'd0', and run/$CK has no such class, but c0, c1"
make_images six 6 4 2 8
expect 1 evaluate run/$CK --val six --out bad
said "six: 2 of its images are of the class 'c5', and run/$CK has no such class"
expect 1 evaluate run/$CK --val six --arch resnet20 --out bad
expect 1 evaluate absent --val data
said "absent: can't be opened"
head -c 5000 run/$CK >cut.safetensors
expect 1 evaluate cut.safetensors --val data --out bad
said "cut.safetensors"
expect 2 evaluate run/$CK
said "evaluate needs --val DIR"
expect 2 evaluate run/$CK --val data --epochs 3
said "--epochs is not an option of the command evaluate"
[ ! -e bad/evaluation_report.json ] || fail "a failed evaluation leaves a report"
