# SPDX-License-Identifier: BSD-2-Clause
"""Volumes for volumes.sh, and whether their variants are what NumPy and Pillow say."""
import io
import json
import os
import shutil
import sys
import tarfile

import dl2
import numpy

place, variants = sys.argv[2:4]


def wave(shape, seed):
    """Smooth, with noise."""
    z, y, x = numpy.mgrid[0:shape[0], 0:shape[1], 0:shape[2]]
    return (300 * numpy.sin(z / 5 + seed) + 200 * numpy.cos(y / 9) + 250 * numpy.sin(x / 7)
            + numpy.random.default_rng(seed).normal(0, 9, shape))


def make():
    random = numpy.random.default_rng(1)
    volumes = {
        "train/a/ct": wave((7, 41, 33), 1).astype(numpy.int16),
        "train/a/whole": numpy.round(wave((5, 20, 30), 2)).astype(numpy.float32),
        "train/b/deep": random.integers(0, 65536, (3, 20, 31)).astype(">u2"),
        "train/b/flat": numpy.full((2, 9, 8), -3, numpy.int32),
        "train/b/far": (random.integers(0, 5000, (2, 16, 17)) - 2**40).astype(numpy.int64),
        "val/a/channels": numpy.stack([wave((4, 24, 26), 3), -2 * wave((4, 24, 26), 4)]).astype(numpy.float32),
        "val/b/wide": random.integers(-2**30, 2**30, (3, 12, 14)).astype(numpy.int32),
    }
    for name, voxels in volumes.items():
        os.makedirs(os.path.dirname(f"{place}/{name}"), exist_ok=True)
        numpy.save(f"{place}/{name}.npy", voxels)
        numpy.save(f"{place}/{name}.mask.npy", (voxels.reshape((-1,) + voxels.shape[-3:])[0] > 0).astype(numpy.uint8))


def load(path, size, channels):
    """The middle of a volume of slices, by the loader."""
    folder = f"{place}.one"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.symlink(os.path.abspath(path), f"{folder}/one.slices")
    loader = dl2.Loader(folder, train=False, split="all", batch=1, image_size=size, workers=1, normalization="none",
                        channels=channels)
    loader.start_epoch(0)
    return [numpy.array(batch.images)[0] for batch in loader][0]


def pillow(info, archive):
    """What Pillow's decoder makes of JPEG 2000 of 16 bits; it scales others. None: it has none."""
    try:
        from PIL import Image, features
    except ImportError:
        return None
    if info["bits"] != 16 or not features.check("jpg_2000"):
        return None
    return numpy.stack([numpy.array(Image.open(io.BytesIO(archive.extractfile(name).read())), numpy.float64)
                        for name in archive.getnames()[1:]])


def check():
    names = [f"{split}/{entry}/{file[:-4]}" for split in ("train", "val") for entry in "ab"
             for file in os.listdir(f"{place}/{split}/{entry}") if not file.endswith(".mask.npy")]
    assert len(names) == 7, names
    compared = 0
    for name in names:
        source = numpy.load(f"{place}/{name}.npy")
        wanted = source.astype(numpy.float64).reshape((-1,) + source.shape[-3:])
        channels, *size = wanted.shape
        exact = not name.startswith("val/")
        for variant in sorted(os.listdir(variants)):
            if variant.startswith("."):
                continue
            path = f"{variants}/{variant}/{name}.slices"
            found = load(path, tuple(size), channels)
            with tarfile.open(path) as archive:
                info = json.load(archive.extractfile("volume.json"))
                members = archive.getmembers()
                assert [info["channels"], *info["size"]] == list(wanted.shape), info
                assert info["source_type"] == source.dtype.newbyteorder("=").name, info
                start = members[1].offset
                places = [[member.offset_data - start, member.size] for member in members[1:]]
                assert info["slices"] == places, "other places"
                decoded = pillow(info, archive) if variant.startswith("jp2") else None
            span = wanted.max() - wanted.min()
            lost = numpy.abs(found.astype(numpy.float64) - wanted).max()
            if variant == "jxl_lossless" and exact:
                assert numpy.array_equal(found, wanted.astype(numpy.float32)), f"{name}: {lost}"
                assert info["bits"] == max(8, int(span).bit_length()), info
            elif variant == "jxl_lossless":
                assert 0 < lost <= span / 65535 / 2 * 1.001 + abs(wanted).max() * 2e-7, f"{name}: {lost}"
            elif variant == "jp2-90" and span > 1e-6 * abs(wanted).max():  # else float32 has no such steps
                assert 10 * numpy.log10(span**2 / max(((found - wanted)**2).mean(), 1e-9 * span)) > 30, f"{name}: {lost}"
            if decoded is not None:
                values = info["slope"] * (decoded + info["minimum"]) + info["intercept"]
                assert numpy.array_equal(values.astype(numpy.float32).reshape(found.shape), found), name
                compared += 1
            part = tuple(max(1, side // 2) for side in size)
            first = [(side - half) // 2 for side, half in zip(size, part)]
            crop = found[(slice(None), *(slice(f, f + p) for f, p in zip(first, part)))]
            assert numpy.array_equal(load(path, part, channels), crop), f"{name}: a part is not that of the whole"
    print(f"{compared} compared with Pillow")


{"make": make, "check": check}[sys.argv[1]]()
