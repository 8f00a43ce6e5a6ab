#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The examples that train and evaluate with PyTorch: by themselves, and as in a study.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/python/module.sh"
need_python torch python3-torch
need_python torchvision python3-torchvision
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    picture "$work/flowers/aster/$n.ppm" 40 36 $n
    mkdir -p "$work/flowers/rose"
    # Roses are red: every second byte triple of another color.
    { printf 'P6\n36 40\n255\n'; awk 'BEGIN { for (i = 0; i < 1440; i++) printf "%c%c%c", 120, 33, 33 }'; } >"$work/flowers/rose/$n.ppm"
done
cd "$work" || exit 99
export OMP_NUM_THREADS=1 # sums in one order
train() { "$PYTHON3" "$srcdir/examples/train_torch.py" flowers --batch 4 --size 32 --rate 0.002 --epochs 4 "$@"; }
expect 0 train
cp "$work/out" "$work/whole"
grep -Eq '^epoch 3: loss [0-9.]*, top-1 [01]\.[0-9]* of 4 images$' "$work/whole" || fail "$(cat "$work/whole")"
# A run that ends when it has nowhere to print its second line: its second epoch is in the checkpoint then.
rm checkpoint.pt
train 2>"$work/err" | sed '/^epoch 0:/q' >"$work/out"
is "$(cat "$work/out")" "$(sed -n 1p "$work/whole")" "the run that is stopped"
expect 0 train
is "$(cat "$work/out")" "$(sed -n 3,4p "$work/whole")" "the run that continues"
# Its result, which a run that was continued has whole; validated on another dataset; with a seed of its own.
"$PYTHON3" - "$work/whole" <<'PY' || fail "result.json: $(cat result.json)"
import json, sys
result, epochs = json.load(open("result.json")), [json.loads(line) for line in open("epochs.jsonl")]
lines = open(sys.argv[1]).read().splitlines()
assert [result[key] for key in ("metric", "unit", "higher_is_better")] == ["top1", "fraction", True]
assert [f"epoch {e['epoch']}: loss {e['loss']:.3f}, top-1 {e['value']:.3f} of 4 images" for e in epochs] == lines
assert result["value"] == result["epochs"][-1]["value"]
assert all(e["images"] == 20 and 0 < e["wait_seconds"] < e["seconds"] for e in epochs), epochs
assert result["epochs"] == [{key: e[key] for key in ("value", "seconds", "images")} for e in epochs]
PY
mkdir -p other/val/aster other/val/rose wrong/val/aster
cp flowers/aster/1.ppm other/val/aster && cp flowers/rose/1.ppm other/val/rose && cp flowers/aster/1.ppm wrong/val/aster
for seed in 1 2; do
    expect 0 train --epochs 1 --val other --seed $seed --out runs/$seed
    grep -q ' of 2 images$' "$work/out" || fail "validated on another dataset: $(cat "$work/out")"
    [ -e runs/$seed/checkpoint.pt ] || fail "no checkpoint in the folder that was named"
done
is "$(grep -ho '"loss": [0-9.]*' runs/*/epochs.jsonl | sort -u | wc -l)" 2 "losses of two seeds"
expect 0 train --epochs 1 --network small_network:build --out runs/small # as make demo-torch
grep -q '^epoch 0: ' "$work/out" || fail "the small network: $(cat "$work/out")"
expect 2 train --val wrong --out runs/wrong
said "wrong has other classes than flowers"

# In a study: where things are comes from there, and outcomes of the original's images, too.
expect 0 env DL2_DATA=flowers DL2_VAL=other DL2_ORIGINAL=flowers DL2_OUT=runs/study DL2_SEED=2 DL2_EPOCHS=1 DL2_BATCH=4 \
    DL2_IMAGE_SIZE=32 DL2_DEVICE=cpu "$PYTHON3" "$srcdir/examples/train_torch.py" --rate 0.002
is "$(cut -d, -f1 runs/study/outcomes.csv | sort | tr '\n' ' ')" "key val/aster/1 val/rose/1 " "images of the variant"
is "$(wc -l <runs/study/outcomes-original.csv)" 5 "lines about the original's images"
is "$(grep -ho '"loss": [0-9.]*' runs/2/epochs.jsonl runs/study/epochs.jsonl | sort -u | wc -l)" 1 "losses of one seed"

# ImageFolder, which has other crops; other layers than the weights'; a network of one's own; another network's weights.
for class in aster rose; do
    mkdir -p plain/train/$class plain/val/$class
    cp flowers/$class/[1-9].ppm plain/train/$class && cp flowers/$class/1[0-2].ppm plain/val/$class
done
plain() { "$PYTHON3" "$srcdir/examples/train_torch.py" plain --batch 4 --size 32 --epochs 1 --rate 0.002 "$@"; }
expect 0 plain --imagefolder --out runs/plain
grep -q ' of 6 images$' "$work/out" || fail "ImageFolder: $(cat "$work/out")"
is "$(cut -d, -f1 runs/plain/outcomes.csv | sed -n 2p)" val/aster/10 "key of ImageFolder's first image"
"$PYTHON3" -c 'import torch, torchvision; torch.save(torchvision.models.resnet18(num_classes=3).state_dict(), "three.pth")'
printf 'import torchvision\ndef made(classes):\n    return torchvision.models.resnet18(num_classes=classes)\n' >own.py
expect 0 plain --network own:made --weights three.pth --out runs/tuned
grep -q '^three.pth: 120 of 122 tensors; new: fc.weight, fc.bias$' "$work/out" || fail "$(cat "$work/out")"
expect 1 plain --network shufflenet_v2_x0_5 --weights three.pth --out runs/none
said "tensors of shufflenet_v2_x0_5: another network's?"

# A network as it is: its accuracy, and with outputs in another order, of which the images have a part.
evaluate() { "$PYTHON3" "$srcdir/examples/evaluate_torch.py" plain --batch 4 --size 32 "$@"; }
expect 0 evaluate --weights runs/plain/checkpoint.pt --imagefolder --out runs/as-it-is
cmp runs/as-it-is/outcomes.csv runs/plain/outcomes.csv || fail "outcomes of the same network"
"$PYTHON3" - <<'PY' || fail "weights could not be made"
import os
import torch
network = torch.load("runs/plain/checkpoint.pt", map_location="cpu")[1]["model"]
network["fc.weight"] = torch.cat((network["fc.weight"][[1]], torch.zeros(1, 512), network["fc.weight"][[0]]))
network["fc.bias"] = torch.cat((network["fc.bias"][[1]], torch.full((1,), -1e6), network["fc.bias"][[0]]))
torch.save(network, "turned.pth")
network["fc.bias"][1] = 1e6
torch.save(network, "always-zinnia.pth")
network = torch.load("runs/plain/checkpoint.pt", map_location="cpu")[1]["model"]
for name in "fc.weight", "fc.bias":  # less certain, so that there is a gradient
    network[name] = network[name] * 1e-3
os.makedirs("runs/faint")
torch.save((1, {"model": network}), "runs/faint/checkpoint.pt")
PY
printf 'rose\nzinnia elegans\naster\n' >names
expect 0 evaluate --weights turned.pth --classes names --imagefolder --out runs/turned
cmp runs/turned/outcomes.csv runs/plain/outcomes.csv || fail "outcomes of the same network with turned outputs"
expect 0 evaluate --weights always-zinnia.pth --classes names --split all --out runs/zinnia
grep -q '^top-1 0.0000 of 24 images$' "$work/out" || fail "$(cat "$work/out")"
expect 2 evaluate --weights turned.pth --classes own.py --out runs/none
said "own.py lacks 'aster' of plain"

# Its sensitivity, to which tables are fitted.
expect 0 "$PYTHON3" "$srcdir/examples/sensitivity_torch.py" plain --batch 4 --size 32 --out runs/faint --limit 6
grep -q '^runs/faint/sensitivity.json: from 6 images$' "$work/out" || fail "$(cat "$work/out")"
expect 0 dl2-transcode --quiet fit-tables --sensitivity runs/faint/sensitivity.json plain tables.json
grep -q '"weights": "runs/faint/checkpoint.pt"' tables.json || fail "tables of another network"

expect 0 "$PYTHON3" "$srcdir/examples/sensitivity_torch.py" plain --batch 2 --size 32 --network own:made --split val --out runs/own --limit 2
grep -q '"weights": "as own:made makes them"' runs/own/sensitivity.json || fail "weights of a function's own"
expect 1 "$PYTHON3" "$srcdir/examples/sensitivity_torch.py" plain --size 32 --out runs/own

# Detection: average precision of detections whose matches are known, and a training on a variant of COCO's and of YOLO's
# layout, with the annotations that dl2-transcode wrote into it.
"$PYTHON3" - "$srcdir/examples/detect_torch.py" <<'PY' || fail "mAP50"
import ast, sys
import torch
from torchvision.ops import box_iou
functions = [node for node in ast.parse(open(sys.argv[1]).read()).body if isinstance(node, ast.FunctionDef)]
shift = 1
for node in functions:
    if node.name in ("matches", "mean_precision"):
        exec(compile(ast.Module([node], []), sys.argv[1], "exec"))
box = lambda x: [x, 0, x + 10, 10]
target = {"boxes": torch.tensor([box(0), box(20), box(40), box(60)]).float(), "labels": torch.tensor([0, 0, 1, 1]),
          "iscrowd": torch.tensor([0, 0, 0, 1])}
found = {"boxes": torch.tensor([box(0), box(1), box(25), box(22), box(40)]).float(), "scores": torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5]),
         "labels": torch.tensor([1, 1, 1, 1, 1])}
rows, classes = matches(found, target)
# The second finds what the first has; the third overlaps by a third only; the fifth is of another class.
assert [(label, hit) for label, _, hit in rows] == [(1, True), (1, False), (1, False), (1, True), (1, False)], rows
assert classes == [1, 1, 2]
none = matches({name: value[:0] for name, value in found.items()}, target)
assert none == ([], classes) and matches(found, {name: value[:0] for name, value in target.items()})[1] == []
assert abs(mean_precision([(rows, classes)]) - ((1 + 2 / 4) / 2 + 0) / 2) < 1e-9
assert abs(mean_precision([(rows, classes), none]) - ((1 + 2 / 4) / 4 + 0) / 2) < 1e-9
assert mean_precision([([(1, 0.9, False), (1, 0.8, True), (1, 0.7, True)], [1, 1])]) == (2 / 3 + 2 / 3) / 2
PY
for n in 1 2 3 4 5 6; do
    split=train && [ $n -lt 5 ] || split=val
    picture "coco/$split/$n.ppm" 60 40 $n
    mkdir -p "yolo/images/$split" "yolo/labels/$split"
    cp "coco/$split/$n.ppm" "yolo/images/$split" && echo "$((n % 2)) 0.5 0.5 0.5 0.5" >"yolo/labels/$split/$n.txt"
    echo '{"id": '$n', "file_name": "'$split/$n'.ppm", "width": 60, "height": 40}' >>images
    echo '{"id": '$n', "image_id": '$n', "category_id": '$((n % 2 + 1))', "bbox": [15, 10, 30, 20]}' >>objects
done
printf '{"images": [%s], "annotations": [%s], "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}' \
    "$(paste -sd, images)" "$(paste -sd, objects)" >coco/instances.json
printf 'train: images/train\nval: images/val\nnames: [a, b]\n' >yolo/data.yaml
detect() { "$PYTHON3" "$srcdir/examples/detect_torch.py" --size 64 --batch 2 --epochs 1 --rate 0.001 "$@"; }
for way in coco:instances.json yolo:data.yaml; do
    expect 0 dl2-transcode --quiet --codec jpeg --q 90 --resize-shorter 24 ${way%:*} variants-${way%:*}
    expect 0 detect variants-${way%:*}/jpeg-90@24 --boxes ${way#*:} --out runs/${way%:*}
    grep -q '^epoch 0: loss [0-9.]*$' "$work/out" || fail "$(cat "$work/out")"
    # It goes on after its last epoch, and so finds the same.
    cp runs/${way%:*}/result.json first && expect 0 detect variants-${way%:*}/jpeg-90@24 --boxes ${way#*:} --out runs/${way%:*}
    ! grep -q '^epoch' "$work/out" || fail "trained again: $(cat "$work/out")"
    cmp first runs/${way%:*}/result.json || fail "the result of a run that had ended"
    "$PYTHON3" -c 'import json
result = json.load(open("first"))
assert result["metric"] == "mAP50" and 0 <= result["value"] <= 1 and len(result["resamples"]) == 200, result' || fail "$(cat first)"
done
exit 0
