#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2.torch, and the example that trains with it.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize=thread*) skip "PyTorch's threads are not built for ThreadSanitizer" ;; esac
. "$srcdir/tests/python/module.sh"
need_python torch python3-torch
need_python numpy python3-numpy
"$PYTHON3" "$srcdir/tests/python/test_torch.py" || exit 1
[ -z "${LD_PRELOAD:-}" ] || exit 0 # a sanitizer takes too long for a ResNet
need_python torchvision python3-torchvision
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    picture "$work/flowers/aster/$n.ppm" 40 36 $n
    mkdir -p "$work/flowers/rose"
    # Roses are red: every second byte triple of another colour.
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
result = json.load(open("result.json"))
lines = open(sys.argv[1]).read().splitlines()
assert [result[key] for key in ("metric", "unit", "higher_is_better")] == ["top1", "fraction", True]
assert [f"epoch {e['epoch']}: loss {e['loss']:.3f}, top-1 {e['top1']:.3f} of 4 images" for e in result["epochs"]] == lines
assert result["value"] == result["epochs"][-1]["top1"]
assert all(e["images"] == 20 and 0 < e["wait_seconds"] < e["seconds"] for e in result["epochs"]), result
PY
mkdir -p other/val/aster other/val/rose wrong/val/aster
cp flowers/aster/1.ppm other/val/aster && cp flowers/rose/1.ppm other/val/rose && cp flowers/aster/1.ppm wrong/val/aster
for seed in 1 2; do
    expect 0 train --epochs 1 --val other --seed $seed --out runs/$seed
    grep -q ' of 2 images$' "$work/out" || fail "validated on another dataset: $(cat "$work/out")"
    [ -e runs/$seed/checkpoint.pt ] || fail "no checkpoint in the folder that was named"
done
is "$(grep -h '"loss"' runs/*/result.json | sort -u | wc -l)" 2 "losses of two seeds"
expect 2 train --val wrong --out runs/wrong
said "wrong has other classes than flowers"
exit 0
