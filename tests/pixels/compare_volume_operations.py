# SPDX-License-Identifier: BSD-2-Clause
"""compare_volume_operations.py SHOW: operations on volumes, by SHOW (show_volume_operation), against NumPy."""
import subprocess
import sys

import numpy

SIZES = ((1, 9, 11, 13), (2, 5, 16, 8), (3, 1, 1, 1), (1, 2, 1, 40))


def ours(voxels, labels, name, *numbers):
    """What comes before the voxels, the voxels and the labels."""
    command = [sys.argv[1], *map(str, voxels.shape), name, *map(str, numbers)]
    out = subprocess.run(command, input=voxels.tobytes() + labels.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    end = len(out) - labels.nbytes
    start = end - voxels.nbytes
    return (numpy.frombuffer(out[:start], numpy.float32), numpy.frombuffer(out[start:end], numpy.float32).reshape(voxels.shape),
            numpy.frombuffer(out[end:], numpy.uint8).reshape(labels.shape))


def blur(voxels, sigma):
    """As scipy.ndimage.gaussian_filter with mode="nearest" does."""
    radius = int(4 * sigma + 0.5)
    weights = numpy.exp(-0.5 * (numpy.arange(-radius, radius + 1) / sigma) ** 2)
    out = voxels.astype(numpy.float64)
    for axis in 1, 2, 3:
        at = numpy.arange(out.shape[axis])
        out = sum(weight / weights.sum() * out.take(numpy.clip(at + k, 0, len(at) - 1), axis)
                  for k, weight in zip(range(-radius, radius + 1), weights))
    return out


def spline(size, points):
    """[size, points + 2]: the weights of cubic B-splines at each voxel."""
    matrix = numpy.zeros((size, points + 2))
    for at in range(size):
        position = at * (points - 1) / (size - 1) if size > 1 else 0
        for control in range(points + 2):
            t = abs(position - (control - 1))
            matrix[at, control] = 2 / 3 - t * t + t ** 3 / 2 if t < 1 else max(0, 2 - t) ** 3 / 6
    return matrix


def elastic(voxels, labels, offsets, points):
    """The voxels, the labels, and where the nearest voxel is not in doubt by rounding."""
    size = voxels.shape[1:]
    fields = numpy.einsum("aijk,zi,yj,xk->azyx", offsets.reshape(3, *[points + 2] * 3).astype(numpy.float64),
                          *(spline(side, points) for side in size))
    at = numpy.stack(numpy.meshgrid(*map(numpy.arange, size), indexing="ij")) + fields
    at = numpy.stack([numpy.clip(a, 0, side - 1) for a, side in zip(at, size)])
    low = numpy.floor(at).astype(int)
    out = 0
    for corner in numpy.ndindex(2, 2, 2):
        index = [numpy.minimum(low[i] + corner[i], size[i] - 1) for i in range(3)]
        weight = numpy.prod([at[i] - low[i] if corner[i] else 1 - (at[i] - low[i]) for i in range(3)], axis=0)
        out = out + weight * voxels[(slice(None), *index)]
    nearest = tuple(numpy.floor(at + 0.5).astype(int))
    return out, labels[nearest], (abs(at - low - 0.5) > 1e-3).all(axis=0)


for number, size in enumerate(SIZES):
    random = numpy.random.default_rng(number)
    voxels = random.normal(size=size).astype(numpy.float32)
    labels = random.integers(0, 5, size[1:], dtype=numpy.uint8)
    for axis in range(3):
        _, data, mask = ours(voxels, labels, "flip", axis)
        assert (data == numpy.flip(voxels, 1 + axis)).all() and (mask == numpy.flip(labels, axis)).all(), (size, axis)
    constant = numpy.full_like(voxels, 3)
    assert not ours(constant, labels, "zscore", 0)[1].any()
    assert (ours(constant, labels, "gamma", 2)[1] == 3).all()
    axes = 1, 2, 3
    least, span = voxels.min(axes, keepdims=True), numpy.ptp(voxels.astype(numpy.float64), axes, keepdims=True)
    deviation = voxels.std(axes, keepdims=True, dtype=numpy.float64)
    wanted = {("brightness", 1.3): voxels * 1.3, ("blur", 0.4): blur(voxels, 0.4), ("blur", 3.3): blur(voxels, 3.3)}
    if span.all():
        wanted["gamma", 1.4] = ((voxels - least) / span) ** 1.4 * span + least
        wanted["zscore", 0] = (voxels - voxels.mean(axes, keepdims=True, dtype=numpy.float64)) / deviation
    for call, values in wanted.items():
        _, data, mask = ours(voxels, labels, *call)
        numpy.testing.assert_allclose(data, values, atol=1e-5, err_msg=str((size, call)))
        assert (mask == labels).all(), call
    difference = ours(voxels, labels, "noise", 0.5)[1] - voxels
    if voxels.size > 1000:
        assert abs(difference.mean()) < 0.06 and abs(difference.std() - 0.5) < 0.04, (difference.mean(), difference.std())
    for points, most in (7, 3), (2, 50), (16, 0.7):
        offsets, data, mask = ours(voxels, labels, "elastic", points, most)
        assert abs(offsets).max() <= most and (points < 3 or abs(offsets).max() > 0.9 * most)
        values, nearest, sure = elastic(voxels, labels, offsets, points)
        numpy.testing.assert_allclose(data, values, atol=1e-4, err_msg=str((size, points)))
        assert (mask == nearest)[sure].all() and sure.mean() > 0.9, (size, points)
print("operations on volumes are NumPy's")
