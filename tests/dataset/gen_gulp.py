#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes gulpio/: two datasets that GulpIO itself (gulpio2 from PyPI) writes.

    python3 gen_gulp.py
"""
import json
import os

import numpy
from gulpio2.fileio import GulpDirectory

HERE = os.path.dirname(os.path.abspath(__file__))
LABELS = {"tulip": 0, "r\u00f6schen": 1}


def image(seed):
    """Sizes differ, so that the fill takes every value."""
    random = numpy.random.default_rng(seed)
    return random.integers(0, 256, (8 + seed, 9, 3), dtype=numpy.uint8)


def write(name, items):
    folder = os.path.join(HERE, "gulpio", name)
    os.makedirs(folder, exist_ok=True)
    chunk = next(GulpDirectory(folder).new_chunks(1))
    with chunk.open("wb"):
        for key, label, seeds in items:
            meta = {"id": key, "label": label, "idx": LABELS[label]}
            chunk.append(key, meta, [image(seed) for seed in seeds])
    with open(os.path.join(folder, "label2idx.json"), "w", encoding="ascii") as file:
        json.dump(LABELS, file)


def main():
    write("mixed", [("17", "tulip", [0]), ("film", "r\u00f6schen", [1, 2, 3]), ("rose/1", "tulip", [4])])
    write("singles", [("a", "tulip", [5]), ("r\u00f6schen \U0001f339/\"b\"\\\t", "r\u00f6schen", [6]),
                      ("c/d/\u007f", "tulip", [7]), ("e", "tulip", [8])])


if __name__ == "__main__":
    main()
