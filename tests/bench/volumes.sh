#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The orders of batches on volumes, with elastic deformation as the slow operation: dl2-load bench with --batching strict,
# completion and aware in turns, for shares of 0 to 100% of patches that are deformed.
#
#     volumes.sh [WORK [WORKERS [ROUNDS [VOLUMES]]]]
#
# Run it from a build folder. WORK keeps the volumes (default: a temporary folder): float32 noise of 48x80x80 voxels,
# whose patches have 32x64x64. Prints volumes per second, the medians of the rounds, and for aware the patches put aside.
# /usr/bin/python3 needs NumPy (Debian: python3-numpy).
set -eu
work=${1:-$(mktemp -d)} workers=${2:-2} rounds=${3:-5} volumes=${4:-32}
mkdir -p "$work"
[ -d "$work/volumes" ] || /usr/bin/python3 - "$work/volumes/train/a" "$volumes" <<'END'
import os, sys
import numpy
os.makedirs(sys.argv[1])
for n in range(int(sys.argv[2])):
    numpy.save(f"{sys.argv[1]}/{n:03}.npy", numpy.random.default_rng(n).normal(size=(48, 80, 80)).astype("f4"))
END
rm -f "$work"/rate-* "$work"/aside-*
round=1
while [ "$round" -le "$rounds" ]; do
    for share in 0 0.1 0.25 0.5 1; do
        for order in strict completion aware; do
            ./dl2-load bench --quiet -j "$workers" -e 8 -b 2 --batching $order --image-size 32x64x64 \
                --augment "flips,elastic:p=$share" --json "$work/load.json" "$work/volumes" >"$work/out"
            sed -n 's|^  "images_per_second": \([0-9.]*\),*$|\1|p' "$work/load.json" >>"$work/rate-$share-$order"
            sed -n 's|^  put aside *\([0-9]*\) .*|\1|p' "$work/out" >>"$work/aside-$share"
        done
    done
    round=$((round + 1))
done
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) }'; }
echo "deformed strict completion aware, volumes/s; put aside of $((8 * volumes))"
for share in 0 0.1 0.25 0.5 1; do
    echo "$share $(median "$work/rate-$share-strict") $(median "$work/rate-$share-completion") $(median "$work/rate-$share-aware") $(median "$work/aside-$share")"
done
