# SPDX-License-Identifier: BSD-2-Clause
"""A training loop over dl2 with nothing but Python: is a picture bright or dark?

    train_plain.py make FOLDER     makes 32 pictures for training and 8 for validation
    train_plain.py train FOLDER    trains, validates, and says which libraries were loaded from elsewhere
"""
import math
import os
import random
import re
import sys


def make(folder):
    noise = random.Random(1)
    for split, count in ("train", 16), ("val", 4):
        for label, name in enumerate(("aster", "rose")):
            os.makedirs(f"{folder}/{split}/{name}")
            for n in range(count):
                with open(f"{folder}/{split}/{name}/{n}.ppm", "wb") as file:
                    file.write(b"P6\n40 40\n255\n" + bytes(noise.randrange(100 * label, 100 * label + 100) for _ in range(4800)))


def train(folder):
    import dl2

    weight = bias = loss = 0.0

    def brightness(images):
        """Between -1 and 1, of each image."""
        size = len(bytes(images[0]))
        return [sum(bytes(image)) / size / 127.5 - 1 for image in images]

    def likely(x):
        return 1 / (1 + math.exp(-(weight * x + bias)))

    batches = dl2.Loader(folder, batch=8, image_size=16, seed=1)
    for epoch in range(40):
        for images, labels in batches:
            for x, label in zip(brightness(images), labels):
                error = likely(x) - label
                weight, bias = weight - error * x, bias - 0.5 * error
                loss = -math.log(1 - abs(error))
    right = count = 0
    for images, labels in dl2.Loader(folder, batch=8, image_size=16, train=False):
        for x, label in zip(brightness(images), labels):
            right, count = right + ((likely(x) > 0.5) == label), count + 1
    print(f"loss {loss:.3f}, {right} of {count} right")
    with open("/proc/self/maps") as file:
        loaded = {line.split()[-1] for line in file if ".so" in line}
    strange = [path for path in loaded if not path.startswith(sys.prefix) and not re.search(
        r"/(ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|z|expat|ffi|crypto|ssl|lzma|bz2|python3[.0-9]*)[-.]|lib-dynload/)", path)]
    assert not strange, strange


{"make": make, "train": train}[sys.argv[1]](sys.argv[2])
