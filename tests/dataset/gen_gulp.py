#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes gulp_golden.h: what GulpIO itself (gulpio2 from PyPI) writes, and what is in it.

    python3 gen_gulp.py >gulp_golden.h
"""
import json
import os
import tempfile

import numpy
from gulpio2.fileio import GulpDirectory
from gulpio2.utils import img_to_jpeg_bytes

LABELS = {"tulip": 0, "r\u00f6schen": 1}


def image(seed):
    """Sizes differ, so that the fill takes every value."""
    random = numpy.random.default_rng(seed)
    return random.integers(0, 256, (8 + seed, 9, 3), dtype=numpy.uint8)


def write(items):
    """The bytes of data_0.gulp and meta_0.gmeta."""
    with tempfile.TemporaryDirectory() as folder:
        chunk = next(GulpDirectory(folder).new_chunks(1))
        with chunk.open("wb"):
            for name, label, seeds in items:
                meta = {"id": name, "label": label, "idx": LABELS[label]}
                chunk.append(name, meta, [image(seed) for seed in seeds])
        with open(os.path.join(folder, "data_0.gulp"), "rb") as data:
            with open(os.path.join(folder, "meta_0.gmeta"), encoding="ascii") as meta:
                return data.read(), meta.read()


def put_bytes(name, data):
    print(f"static const uint8_t {name}[] = {{")
    for i in range(0, len(data), 16):
        print("    " + " ".join(f"0x{byte:02x}," for byte in data[i : i + 16]))
    print("};")


def put_text(name, text):
    print(f"static const char {name}[] =")
    pieces = [json.dumps(text[i : i + 60]) for i in range(0, len(text), 60)]
    print("    " + "\n    ".join(pieces) + ";")


def frames(meta):
    return [(name, frame) for name, item in json.loads(meta).items() for frame in item["frame_info"]]


def main():
    print("/* Made by gen_gulp.py with GulpIO2. */")
    mixed, mixed_meta = write([("17", "tulip", [0]), ("film", "r\u00f6schen", [1, 2, 3]), ("rose/1", "tulip", [4])])
    put_bytes("gulp_data", mixed)
    put_text("gulp_meta", mixed_meta)
    put_text("gulp_labels", json.dumps(LABELS))
    put_text("gulp_description", "17:0 film/00000:1 film/00001:1 film/00002:1 rose/1:0")
    print("static const struct {\n    size_t offset, size;\n} gulp_frames[] = {")
    for _, (offset, pad, length) in frames(mixed_meta):
        print(f"    {{{offset}, {length - pad}}},")
    print("};")
    singles, singles_meta = write([("a", "tulip", [5]), ("r\u00f6schen \U0001f339/\"b\"\\\t", "r\u00f6schen", [6]),
                                   ("c/d/\u007f", "tulip", [7]), ("e", "tulip", [8])])
    put_bytes("gulp_singles_data", singles)
    put_text("gulp_singles_meta", singles_meta)
    print("static const struct {\n    const char *id;\n    int label;\n    size_t offset, size;\n} gulp_singles[] = {")
    for (name, (offset, pad, length)), label in zip(frames(singles_meta), [0, 1, 0, 0]):
        utf8 = "".join(f"\\{byte:03o}" for byte in name.encode())
        print(f'    {{"{utf8}", {label}, {offset}, {length - pad}}},')
    print("};")


if __name__ == "__main__":
    main()
