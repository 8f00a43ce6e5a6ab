#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The orders of batches on real work: dl2-load bench with --batching strict and completion in turns, for shares of
# 0 to 100% of slow samples.
#
#     batching.sh volumes|images [WORK [WORKERS [ROUNDS]]]
#
# volumes: float32 noise of 48x80x80 voxels, patches of 32x64x64; the slow ones are deformed elastically.
# images: JPEGs of 320x240 at 64 pixels; the slow ones have 4000x3000.
# Run it from a build folder. WORK keeps the data (default: a temporary folder). Prints samples per second, the medians of
# the rounds. /usr/bin/python3 needs NumPy and Pillow (Debian: python3-numpy,
# python3-pil).
set -eu
kind=$1 work=${2:-$(mktemp -d)} workers=${3:-2} rounds=${4:-5}
mkdir -p "$work"
bench() { # DATASET OPTIONS...
    dataset=$1
    shift
    ./dl2-load bench --quiet -j "$workers" -e $epochs --batching "$order" --json "$work/load.json" "$@" "$dataset" >"$work/out"
}
case $kind in
volumes)
    samples=32 epochs=8 shares='0 0.1 0.25 0.5 1'
    load() { bench "$work/volumes" -b 2 --image-size 32x64x64 --augment "flips,elastic:p=$1"; }
    [ -d "$work/volumes" ] || /usr/bin/python3 - "$work/volumes/train/a" $samples <<'END'
import os, sys
import numpy
os.makedirs(sys.argv[1])
for n in range(int(sys.argv[2])):
    numpy.save(f"{sys.argv[1]}/{n:03}.npy", numpy.random.default_rng(n).normal(size=(48, 80, 80)).astype("f4"))
END
    ;;
images)
    samples=320 epochs=2 shares='0 0.05 0.25 0.5 1'
    load() { bench "$work/images-$1" -b 16 --image-size 64; }
    for share in $shares; do
        [ -d "$work/images-$share" ] || /usr/bin/python3 - "$work/images-$share" $samples "$share" <<'END'
import os, random, sys
from PIL import Image
folder, count, share = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.makedirs(f"{folder}/train/a")
made = {}
for large in (False, True):
    width, height = (4000, 3000) if large else (320, 240)
    for n in range(4):
        made[large, n] = f"{folder}/{large}-{n}"
        image = Image.effect_noise((width // 4, height // 4), 60).resize((width, height), Image.BICUBIC)
        image.convert("RGB").save(made[large, n], "JPEG", quality=85)
slow = [n < round(count * share) for n in range(count)]
random.Random(1).shuffle(slow)
for n in range(count):
    os.link(made[slow[n], n % 4], f"{folder}/train/a/{n:03}.jpg")
for path in made.values():
    os.remove(path)
END
    done
    ;;
esac
rm -f "$work"/rate-*
round=1
while [ "$round" -le "$rounds" ]; do
    for share in $shares; do
        for order in strict completion; do
            load "$share"
            sed -n 's|^  "images_per_second": \([0-9.]*\),*$|\1|p' "$work/load.json" >>"$work/rate-$share-$order"
        done
    done
    round=$((round + 1))
done
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%.0f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
echo "| slow | strict | completion |"
echo "|---|---|---|"
for share in $shares; do
    echo "| $share | $(median "$work/rate-$share-strict") | $(median "$work/rate-$share-completion") |"
done
