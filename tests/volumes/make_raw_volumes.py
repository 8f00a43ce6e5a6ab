# SPDX-License-Identifier: BSD-2-Clause
"""make_raw_volumes.py DIR kits|decathlon COUNT: CT-like volumes as they are published, in NIfTI.

A kidney of some 200 HU, class 1, with a tumour of some 100 HU, class 2, lies in fat of -80 HU with noise. The volumes
differ in spacing, size, orientation and type. DIR is laid out as KiTS19 or the Medical Segmentation Decathlon. Beside it,
DIR.npz holds what a reference needs: NAME/voxels and NAME/labels, [i][j][k] as in the file, and NAME/spacing, NAME/codes.
"""
import gzip
import json
import os
import struct
import sys

import numpy

FIELD = 72.0  # mm, the side of the cube that all volumes show
CODES = ["IPL", "RAS", "LPS", "SAR"]  # the sides that i, j and k run to; KiTS19 has IPL
SPACINGS = [(3.0, 1.4, 1.4), (1.5, 1.5, 2.5), (1.2, 1.2, 2.0), (2.4, 1.8, 1.8)]
DIRECTIONS = {"R": (1, 0, 0), "L": (-1, 0, 0), "A": (0, 1, 0), "P": (0, -1, 0), "S": (0, 0, 1), "I": (0, 0, -1)}


def affine_of(codes, spacing, shape):
    """Voxel [i][j][k] to mm, with the middle of the volume at 0."""
    affine = numpy.eye(4)
    for axis in range(3):
        affine[:3, axis] = numpy.array(DIRECTIONS[codes[axis]]) * spacing[axis]
    affine[:3, 3] = -affine[:3, :3] @ ((numpy.array(shape) - 1) / 2)
    return affine


def nifti(voxels, spacing, affine, slope=1.0, intercept=0.0):
    """A NIfTI-1 file of an array [i][j][k]."""
    types = {"uint8": 2, "int16": 4, "float32": 16}
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *voxels.shape, 1, 1, 1, 1)
    struct.pack_into("<hh", head, 70, types[voxels.dtype.name], 8 * voxels.dtype.itemsize)
    struct.pack_into("<8f", head, 76, 1, *spacing, 0, 0, 0, 0)
    struct.pack_into("<fff", head, 108, 352, slope, intercept)
    head[123] = 2  # mm
    if affine is not None:
        struct.pack_into("<hh", head, 252, 0, 1)  # no qform, sform
        struct.pack_into("<12f", head, 280, *affine[:3].ravel())
    head[344:348] = b"n+1\0"
    return bytes(head) + voxels.tobytes(order="F")


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 1, mtime=0) if path.endswith(".gz") else data)


def case(number):
    random = numpy.random.default_rng(number)
    codes, spacing = CODES[number % len(CODES)], SPACINGS[number // 2 % len(SPACINGS)]
    shape = [int(FIELD / s) for s in spacing]
    affine = affine_of(codes, spacing, shape)
    index = numpy.stack(numpy.meshgrid(*[numpy.arange(n) for n in shape], indexing="ij"), -1)
    place = index @ affine[:3, :3].T + affine[:3, 3]
    middle = random.uniform(-12, 12, 3)
    kidney = (((place - middle) / (16, 13, 20)) ** 2).sum(-1) < 1
    tumour = ((place - middle - (5, 0, 6)) ** 2).sum(-1) < 7 ** 2
    labels = numpy.where(tumour, 2, kidney).astype(numpy.uint8)
    values = numpy.choose(labels, [-80, 200, 100]) + random.normal(0, 15, shape)
    return codes, spacing, affine, values.round().astype(numpy.int16), labels


def main():
    place, layout, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kept = {}
    for number in range(count):
        codes, spacing, affine, voxels, labels = case(number)
        name = f"case_{number:05}"
        if layout == "kits":
            files = f"{place}/{name}/imaging.nii.gz", f"{place}/{name}/segmentation.nii.gz"
        else:
            files = f"{place}/imagesTr/{name}.nii.gz", f"{place}/labelsTr/{name}.nii.gz"
        write(files[0], nifti(voxels, spacing, affine))
        write(files[1], nifti(labels, spacing, affine))
        kept |= {f"{name}/voxels": voxels, f"{name}/labels": labels, f"{name}/spacing": numpy.float32(spacing),
                 f"{name}/codes": codes, f"{name}/affine": affine}
    if layout == "decathlon":
        write(f"{place}/imagesTs/other_00001.nii.gz", nifti(*[case(count)[i] for i in (3, 1, 2)]))
        names = [f"./%s/case_{n:05}.nii.gz" for n in range(count)]
        with open(f"{place}/dataset.json", "w") as file:
            json.dump({"labels": {"0": "background", "1": "kidney", "2": "tumour"},
                       "training": [{"image": n % "imagesTr", "label": n % "labelsTr"} for n in names],
                       "test": ["./imagesTs/other_00001.nii.gz"]}, file)
    numpy.savez(f"{place}.npz", **kept)


if __name__ == "__main__":
    main()
