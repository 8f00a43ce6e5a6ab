# SPDX-License-Identifier: BSD-2-Clause
"""preprocess.py RAW.npz DEST FORMAT ORDER LABEL_ORDER CODES SPACING CLIP NORMAL: is DEST what NumPy and SciPy make of the
volumes of make_raw_volumes.py? CODES and SPACING are of depth, height and width; "-" leaves a step out."""
import gzip
import os
import struct
import sys

import numpy
import scipy.ndimage

OPPOSITE = dict(zip("RLAPSI", "LRPAIS"))


def turn(voxels, codes, to):
    """From axes that run to `codes` to axes that run to `to`."""
    axes = [next(i for i, code in enumerate(codes) if code in (t, OPPOSITE[t])) for t in to]
    turned = voxels.transpose(axes)
    return numpy.flip(turned, [i for i, t in enumerate(to) if codes[axes[i]] != t]), axes


def zoom(voxels, shape, order):
    factors = [new / old for new, old in zip(shape, voxels.shape)]
    out = scipy.ndimage.zoom(voxels, factors, order=order, mode="mirror")
    assert list(out.shape) == list(shape), (out.shape, shape)
    return out


def resample_labels(labels, shape, rule):
    if rule == "0":
        return zoom(labels, shape, 0), None
    if rule == "1":
        shares = numpy.stack([zoom((labels == c).astype(numpy.float64), shape, 1) for c in range(3)])
        first, second = -numpy.sort(-shares, 0)[:2]
        return shares.argmax(0).astype(numpy.uint8), first - second < 1e-9  # either may win a tie
    index = [numpy.minimum(numpy.floor(numpy.arange(n, dtype=numpy.float32) * numpy.float32(o / n)), o - 1).astype(int)
             for n, o in zip(shape, labels.shape)]  # torch's nearest, in float32 as there
    return labels[numpy.ix_(*index)], None


def load(path):
    """A file of DEST, [depth][height][width], its spacing, and its affine or None."""
    if path.endswith(".npy"):
        return numpy.load(path), None, None
    data = open(path, "rb").read()
    data = gzip.decompress(data) if path.endswith(".gz") else data
    shape = struct.unpack_from("<8h", data, 40)[1:4]
    kind = {2: numpy.uint8, 16: numpy.float32}[struct.unpack_from("<h", data, 70)[0]]
    voxels = numpy.frombuffer(data, kind, offset=int(struct.unpack_from("<f", data, 108)[0])).reshape(shape[::-1])
    affine = numpy.array(struct.unpack_from("<12f", data, 280)).reshape(3, 4)
    return voxels, struct.unpack_from("<4f", data, 76)[:0:-1], affine


def main():
    raw, dest, kind, order, label_order, codes, spacing, clip, normal = sys.argv[1:10]
    raw, values = numpy.load(raw), {}
    names = sorted({key.split("/")[0] for key in raw})
    made = {}
    for name in names:
        voxels, labels = raw[f"{name}/voxels"].astype(numpy.float32), raw[f"{name}/labels"]
        own, mm = str(raw[f"{name}/codes"])[::-1], raw[f"{name}/spacing"][::-1].astype(float)
        voxels, labels = voxels.T, labels.T  # to depth, height, width
        if codes != "-":
            labels = turn(labels, own, codes)[0]
            voxels, axes = turn(voxels, own, codes)
            mm = mm[axes]
        ties = None
        if spacing != "-":
            target = [float(s) for s in spacing.split(",")]
            shape = [int(s / t * n) for s, t, n in zip(mm, target, voxels.shape)]
            labels, ties = resample_labels(labels, shape, label_order)
            voxels = zoom(voxels, shape, int(order))
        if clip != "-":
            voxels = numpy.clip(voxels, *[float(c) for c in clip.split(",")])
        made[name] = voxels.astype(numpy.float64), labels, ties
    if normal == "dataset":
        everything = numpy.concatenate([m[0].ravel() for m in made.values()])
        mean, deviation = everything.mean(), everything.std()
    elif normal != "-":
        mean, deviation = [float(n) for n in normal.split(",")]
    for name, (voxels, labels, ties) in made.items():
        folder = dest if os.path.exists(f"{dest}/{name}.{kind}") else f"{dest}/train"
        got, step, affine = load(f"{folder}/{name}.{kind}")
        mask, _, _ = load(f"{folder}/{name}.mask.{kind}")
        if normal != "-":
            voxels = (voxels - mean) / deviation
        assert got.dtype == numpy.float32 and mask.dtype == numpy.uint8, (got.dtype, mask.dtype)
        assert got.shape == voxels.shape == mask.shape, (got.shape, voxels.shape, mask.shape)
        scale = 1e-6 * max(1, abs(voxels).max())
        assert abs(got - voxels).max() < 4 * scale, (name, abs(got - voxels).max())
        wrong = (mask != labels) & (False if ties is None else ~ties)
        assert not wrong.any(), (name, int(wrong.sum()))
        if affine is not None:  # the corners are where they were
            old, size = raw[f"{name}/affine"], numpy.array(raw[f"{name}/voxels"].shape)
            ends = [numpy.array([i, j, k]) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
            before = sorted(tuple((old[:3, :3] @ (e * (size - 1)) + old[:3, 3]).round(2) + 0.0) for e in ends)
            new = numpy.array(got.shape[::-1])
            after = sorted(tuple((affine[:, :3] @ (e * (new - 1)) + affine[:, 3]).round(2) + 0.0) for e in ends)
            assert numpy.allclose(before, after, atol=0.02), (before, after)
            assert numpy.allclose(step, numpy.linalg.norm(affine[:, :3], axis=0)[::-1], atol=1e-4), (step, affine)


main()
