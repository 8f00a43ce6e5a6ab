#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The cpu device against PyTorch, in turns, so that both see the same machine:
#
#     compare_train.sh [ARCH SIZE BATCH THREADS STEPS ROUNDS]
#
# SIZE is PIXELS, or FRAMESxPIXELS of clips and volumes (unet3d_small 32x32). Prints both rates of every round, and the ratios of the best rates and of
# the least processor time (on a machine that others use too, the rounds that were least disturbed). Needs PyTorch, for transformers torchvision,
# too: Debian's, or those of another Python that $PYTHON3 names. Run it from a build folder after
# `make tests/bench/bench_train`.
set -eu
here=$(dirname "$0")
arch=${1:-resnet10} size=${2:-64} batch=${3:-64} threads=${4:-1} steps=${5:-20} rounds=${6:-3}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
best() { cut -d ' ' -f 1 "$1" | sort -n | tail -1; }
least() { cut -d ' ' -f 2 "$1" | sort -n | head -1; }
round=1
while [ "$round" -le "$rounds" ]; do
    ours=$(tests/bench/bench_train "$arch" "$size" "$batch" "$threads" "$steps")
    theirs=$("${PYTHON3:-/usr/bin/python3}" "$here/bench_train.py" "$arch" "$size" "$batch" "$threads" "$steps")
    echo "$arch $size px, batch $batch, $threads threads, round $round: dl2 $ours; PyTorch $theirs"
    echo "$ours" | sed 's/ .*s, / /; s/ ms.*//' >>"$work/ours"
    echo "$theirs" | sed 's/ .*s, / /; s/ ms.*//' >>"$work/theirs"
    round=$((round + 1))
done
ours=$(best "$work/ours") theirs=$(best "$work/theirs")
awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "best: dl2 %.1f, PyTorch %.1f images/s, ratio %.2f\n", a, b, a / b}'
ours=$(least "$work/ours") theirs=$(least "$work/theirs")
awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "least processor time: dl2 %.1f, PyTorch %.1f ms an image, ratio %.2f\n", a, b, b / a}'
