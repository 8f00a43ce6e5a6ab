#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The cpu device against PyTorch, in turns, so that both see the same machine:
#
#     compare_train.sh [ARCH PIXELS BATCH THREADS STEPS ROUNDS]
#
# Prints both rates of every round and the ratio of the best
# (on a machine that others use too, the rounds that were least disturbed). Needs PyTorch, for transformers torchvision,
# too: Debian's, or those of another Python that $PYTHON3 names. Run it from a build folder after
# `make tests/bench/bench_train`.
set -eu
here=$(dirname "$0")
arch=${1:-resnet10} pixels=${2:-64} batch=${3:-64} threads=${4:-1} steps=${5:-20} rounds=${6:-3}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
best() { sort -n "$1" | tail -1; }
round=1
while [ "$round" -le "$rounds" ]; do
    ours=$(tests/bench/bench_train "$arch" "$pixels" "$batch" "$threads" "$steps")
    theirs=$("${PYTHON3:-/usr/bin/python3}" "$here/bench_train.py" "$arch" "$pixels" "$batch" "$threads" "$steps")
    echo "$arch $pixels px, batch $batch, $threads threads, round $round: dl2 $ours; PyTorch $theirs"
    echo "${ours%% *}" >>"$work/ours"
    echo "${theirs%% *}" >>"$work/theirs"
    round=$((round + 1))
done
ours=$(best "$work/ours") theirs=$(best "$work/theirs")
awk -v a="$ours" -v b="$theirs" 'BEGIN {printf "best: dl2 %.1f, PyTorch %.1f images/s, ratio %.2f\n", a, b, a / b}'
