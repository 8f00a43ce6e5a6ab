#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
# make_tiles.py FOLDER [SIDE]: pieces of SIDE pixels (320) of the photographs of Debian's lomiri-wallpapers-16.04, halved, as FOLDER/{train,val}/
# PHOTOGRAPH/*.png; a class a photograph, as in the demo. Pieces begin every 80 pixels and overlap; those for validation are from the middle 40% of
# a photograph, those for training from beside it. Photographs that are too small for that are named and left out. Needs Pillow.
import glob
import os
import sys

from PIL import Image

out, side = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 320
counts = {"train": 0, "val": 0}
for path in sorted(glob.glob("/usr/share/backgrounds/*.jpg")):
    image = Image.open(path).convert("RGB").reduce(2)
    width, height = image.size
    name = os.path.basename(path)[:-4].lower()
    bands = [("train", 0, int(0.3 * width)), ("val", int(0.3 * width), int(0.7 * width)), ("train", int(0.7 * width), width)]
    if min(min(right - left for _, left, right in bands), height) < side:
        print("left out:", name)
        continue
    for split, left, right in bands:
        folder = f"{out}/{split}/{name}"
        os.makedirs(folder, exist_ok=True)
        for y in range(0, height - side + 1, 80):
            for x in range(left, right - side + 1, 80):
                image.crop((x, y, x + side, y + side)).save(f"{folder}/y{y:04}x{x:04}.png")
                counts[split] += 1
print(counts)
