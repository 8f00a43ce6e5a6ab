# SPDX-License-Identifier: BSD-2-Clause
"""For the tests of the module dl2: a dataset of two classes in a folder of its own, and what reads it."""
import atexit
import os
import subprocess
import tempfile
import unittest

import numpy

import dl2

try:
    import torch
except ImportError:
    torch = None
try:
    from torchvision import transforms
except ImportError:
    transforms = None

SIZE = 32
NAMES = ["aster", "rose"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, as everybody has them
needs_torch = unittest.skipUnless(torch, "no PyTorch (Debian: python3-torch)")


def run(*command):
    """What one of the programs prints; it brings its sanitizer's runtime itself."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def write_picture(path, width, height, low, high, seed):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pixels = numpy.random.default_rng(seed).integers(low, high, width * height * 3, dtype=numpy.uint8)
    with open(path, "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes())


def make_flowers(folder):
    """Asters are dark, roses bright: 22 and 18 for training, 4 and 3 for validation."""
    for label, name in enumerate(NAMES):
        for n in range(22 - 4 * label):
            write_picture(f"{folder}/train/{name}/{n:02}.ppm", 40 + 3 * n, 90 - 2 * n, 120 * label, 120 + 120 * label, n)
        for n in range(4 - label):
            write_picture(f"{folder}/val/{name}/{n:02}.ppm", 50, 40 + n, 120 * label, 120 + 120 * label, n)
    with open(f"{folder}/train/rose/README.txt", "w") as file:
        file.write("not an image")


scratch = tempfile.TemporaryDirectory(prefix="dl2-test.")
atexit.register(scratch.cleanup)
flowers = f"{scratch.name}/flowers"
make_flowers(flowers)


def loader(path=None, **settings):
    return dl2.Loader(path or flowers, **{"batch": 8, "image_size": SIZE, "workers": 2, **settings})


def epoch_of(batches):
    """Copies of what came: (images, labels, indices)."""
    parts = [(numpy.array(b.images), numpy.array(b.labels), numpy.array(b.indices)) for b in batches]
    return [numpy.concatenate(part) for part in zip(*parts)]


def address(array):
    return array.__array_interface__["data"][0]


def pillow():
    try:
        from PIL import Image
        return Image
    except ImportError:
        raise unittest.SkipTest("no Pillow (Debian: python3-pil)")
