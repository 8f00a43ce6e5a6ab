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
train() { "$PYTHON3" "$srcdir/examples/train_torch.py" flowers --batch 4 --size 32 --rate 0.002 --epochs 4; }
expect 0 train
cp "$work/out" "$work/whole"
grep -Eq '^epoch 3: loss [0-9.]*, top-1 [01]\.[0-9]* of 4 images$' "$work/whole" || fail "$(cat "$work/whole")"
# A run that ends when it has nowhere to print its second line: its second epoch is in the checkpoint then.
rm checkpoint.pt
train 2>"$work/err" | sed '/^epoch 0:/q' >"$work/out"
is "$(cat "$work/out")" "$(sed -n 1p "$work/whole")" "the run that is stopped"
expect 0 train
is "$(cat "$work/out")" "$(sed -n 3,4p "$work/whole")" "the run that continues"
exit 0
