#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
# make_shapes.py clips|masks FOLDER: pieces of the photographs of Debian's lomiri-wallpapers-16.04, quartered, on which shapes lie that are
# filled with another photograph; those for validation are from the middle 40% of the photographs, those for training from beside it. clips:
# FOLDER/{train,val}/{down,left,right,up}/N/FRAME.png, 16 frames of 64 pixels, in which a disc moves that way by three pixels a frame, and comes back
# on the other side, so that no single frame tells its class. masks: FOLDER/{train,val}/N.png of 64 pixels with one to three shapes, and N.mask.png:
# 0 is the photograph, 1 a disc, 2 a square, 3 a triangle. Needs Pillow and NumPy.
import glob
import os
import sys

import numpy
from PIL import Image

SIDE, FRAMES = 64, 16
COUNTS = {"clips": {"train": 60, "val": 40}, "masks": {"train": 240, "val": 160}}  # clips: of each class
WAYS = {"down": (0, 3), "left": (-3, 0), "right": (3, 0), "up": (0, -3)}
kind, out = sys.argv[1:]
random = numpy.random.default_rng(1)
photographs = [numpy.asarray(Image.open(path).convert("RGB").reduce(4)) for path in sorted(glob.glob("/usr/share/backgrounds/*.jpg"))]
y, x = numpy.mgrid[:SIDE, :SIDE]


def piece(split):
    image = photographs[random.integers(len(photographs))]
    height, width = image.shape[:2]
    bands = {"train": [(0, 0.3), (0.7, 1)], "val": [(0.3, 0.7)]}[split]
    left, right = (int(part * width) for part in bands[random.integers(len(bands))])
    top = random.integers(height - SIDE + 1)
    left = random.integers(left, right - SIDE + 1)
    return image[top:top + SIDE, left:left + SIDE]


def shape(number, left, top, size):
    """Where the shape is; beyond an edge it goes on at the other."""
    dx, dy = (x - left) % SIDE, (y - top) % SIDE
    inside = (dx < size) & (dy < size)
    if number == 1:
        return (dx - size / 2) ** 2 + (dy - size / 2) ** 2 < size ** 2 / 4
    return inside if number == 2 else inside & (abs(dx - size / 2) < dy / 2)


def save(pixels, *path):
    path = os.path.join(out, *path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.fromarray(pixels).save(path)


def clip(split, way, number):
    ground, disc = piece(split), piece(split)
    left, top, size = random.integers(SIDE), random.integers(SIDE), random.integers(14, 24)
    for frame in range(FRAMES):
        moved = (left + frame * WAYS[way][0], top + frame * WAYS[way][1])
        filling = numpy.roll(disc, (moved[1], moved[0]), (0, 1))
        save(numpy.where(shape(1, *moved, size)[..., None], filling, ground), split, way, f"{number:03}", f"{frame:02}.png")


def masked(split, number):
    pixels, mask = piece(split).copy(), numpy.zeros((SIDE, SIDE), numpy.uint8)
    for _ in range(random.integers(1, 4)):
        which, size = random.integers(1, 4), random.integers(14, 30)
        where = shape(which, random.integers(SIDE - size), random.integers(SIDE - size), size)
        pixels[where] = piece(split)[where]
        mask[where] = which
    save(pixels, split, f"{number:03}.png")
    save(mask, split, f"{number:03}.mask.png")


for split, count in COUNTS[kind].items():
    for number in range(count):
        if kind == "masks":
            masked(split, number)
        else:
            for way in WAYS:
                clip(split, way, number)
