# SPDX-License-Identifier: BSD-2-Clause
"""make_scans.py FOLDER TRAIN VAL SIDE EXTENSION: writes raw scans in KiTS19's layout, FOLDER/{train,val}/case_N/
imaging.EXTENSION with segmentation.EXTENSION, nii or nii.gz: int16 of SIDE x SIDE pixels and 100 to 600 slices, each
with other spacings, another orientation and another origin. In a noisy body lie two bright ellipsoids, class 1;
bones and vessels, of no class, have other sizes and levels."""
import gzip
import itertools
import os
import struct
import sys

import numpy

folder, train, val, side, extension = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]


def write(path, array, affine, spacing):
    """array [k][j][i]; the affine matrix is of (i, j, k)."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *array.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<hh", head, 70, {"i2": 4, "u1": 2}[array.dtype.str[1:]], 8 * array.itemsize)
    struct.pack_into("<8f", head, 76, 1, *spacing, 1, 1, 1, 1)
    struct.pack_into("<fff", head, 108, 352, 1, 0)
    head[123] = 2  # mm
    struct.pack_into("<hh", head, 252, 0, 1)
    struct.pack_into("<12f", head, 280, *affine.ravel())
    head[344:348] = b"n+1\0"
    data = bytes(head) + array.tobytes()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 6) if path.endswith(".gz") else data)


def make(place, number):
    random = numpy.random.default_rng(number)
    slices = int(random.integers(100, 601))
    spacing = numpy.array([*[random.uniform(0.6, 0.9) * 512 / side] * 2, random.uniform(350, 450) / slices])
    orders = list(itertools.permutations(range(3)))
    axes, signs = orders[random.integers(6)], random.choice((-1, 1), 3)  # which way i, j and k run
    turn = numpy.zeros((3, 3))
    for column, (axis, sign) in enumerate(zip(axes, signs)):
        turn[axis, column] = sign * spacing[column]
    size = numpy.array((side, side, slices))
    affine = numpy.column_stack([turn, -turn @ (size - 1) / 2 + random.uniform(-20, 20, 3)])
    place_of = [sum(turn[axis, column] * (numpy.arange(size[column]) - (size[column] - 1) / 2).reshape([-1 if d == 2 - column else 1 for d in range(3)])
                    for column in range(3)) for axis in range(3)]  # mm from the middle, x, y and z

    def ellipsoid(middle, radii):
        return sum(((p - m) / r) ** 2 for p, m, r in zip(place_of, middle, radii)) <= 1

    values = numpy.full((slices, side, side), -1000, numpy.float32)
    labels = numpy.zeros(values.shape, numpy.uint8)
    values[ellipsoid((0, 0, 0), (170, 120, 400))] = 30
    for _ in range(6):  # bones and vessels
        values[ellipsoid(random.uniform(-90, 90, 3), random.uniform(5, 12, 3))] = random.choice((90, 300))
    for way in -1, 1:
        middle, radii = numpy.array([way * 75, 20, 0]) + random.uniform(-20, 20, 3), random.uniform((25, 25, 45), (35, 35, 65))
        inside = ellipsoid(middle, radii)
        values[inside], labels[inside] = 170, 1
    values += random.normal(0, 40, values.shape).astype(numpy.float32)
    for name, array in ("imaging", values.astype("<i2")), ("segmentation", labels):
        write(f"{place}/case_{number:05}/{name}.{extension}", array, affine, spacing)


for n in range(train + val):
    make(f"{folder}/{'train' if n < train else 'val'}", n)
