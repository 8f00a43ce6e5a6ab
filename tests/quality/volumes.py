# SPDX-License-Identifier: BSD-2-Clause
"""Volumes for volumes.sh, and whether dl2-quality's scores of them are what NumPy computes."""
import json
import os
import sys

import numpy

place, scores = sys.argv[2:4]
VOLUMES = {"a/int": (5, 30, 24), "a/float": (2, 4, 19, 23), "b/thin": (6, 9, 40), "b/same": (3, 20, 20), "b/flat": (2, 12, 12)}


def voxels(name):
    random = numpy.random.default_rng(len(name) + sum(VOLUMES[name]))
    values = random.normal(40, 300, VOLUMES[name])
    if name == "b/flat":
        return numpy.full(VOLUMES[name], 7, numpy.uint8), numpy.full(VOLUMES[name], 7.25, numpy.float32)
    if name == "a/float":
        return values.astype(numpy.float32), (values + random.normal(0, 20, values.shape)).astype(numpy.float64)
    reference = values.astype(numpy.int16)
    return reference, reference if name == "b/same" else (reference + random.integers(-30, 31, values.shape)).astype(numpy.int32)


def make():
    for name in VOLUMES:
        for folder, values in zip(("reference", "variant"), voxels(name)):
            os.makedirs(os.path.dirname(f"{place}/{folder}/{name}"), exist_ok=True)
            numpy.save(f"{place}/{folder}/{name}.npy", values)


def window_means(plane):
    """By the window of Wang et al., where it fits."""
    offsets = numpy.arange(11) - 5
    weights = numpy.exp(-offsets**2 / (2 * 1.5**2))
    weights /= weights.sum()
    for axis in 0, 1:
        plane = numpy.apply_along_axis(lambda line: numpy.convolve(line, weights, "valid"), axis, plane)
    return plane


def ssim(a, b, peak):
    c1, c2 = (0.01 * peak)**2, (0.03 * peak)**2
    ma, mb = window_means(a), window_means(b)
    va, vb, vab = window_means(a * a) - ma * ma, window_means(b * b) - mb * mb, window_means(a * b) - ma * mb
    return ((2 * ma * mb + c1) * (2 * vab + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))).mean()


def check():
    [variant] = json.load(open(scores))["variants"]
    rows = {row["key"]: row for row in variant["per_image"]}
    assert set(rows) == set(VOLUMES), rows
    assert variant["identical"] == 1 and rows["b/same"]["lossless"] and rows["b/same"]["volume_psnr"] is None, variant
    for name, row in rows.items():
        a, b = (values.astype(numpy.float64) for values in voxels(name))
        shape = (-1,) + a.shape[-2:]
        peak = a.max() - a.min() or 1
        assert row["slices"] == a.reshape(shape).shape[0] and (row["height"], row["width"]) == a.shape[-2:], row
        assert row["bits_per_pixel"] == 8 * row["bytes"] / a.size, row
        if name != "b/same":
            wanted = 10 * numpy.log10(peak**2 / ((a - b)**2).mean())
            assert abs(row["volume_psnr"] - wanted) < 1e-9, (name, row, wanted)
        if min(a.shape[-2:]) < 11:
            assert row["volume_ssim"] is None, row
            continue
        shift = a.min()  # the lowest value of the reference is its black
        wanted = numpy.mean([ssim(x - shift, y - shift, peak) for x, y in zip(a.reshape(shape), b.reshape(shape))])
        assert abs(row["volume_ssim"] - wanted) < 1e-6, (name, row, wanted)


{"make": make, "check": check}[sys.argv[1]]()
