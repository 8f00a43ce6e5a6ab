#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes instance_masks.json: shapes in COCO's JSON, and what pycocotools makes of each: its pixels (area), and zlib's
CRC-32 of the mask, a byte a pixel, row by row (crc32).

usage: gen_instance_masks.py [POLYGONS] > instance_masks.json

Needs NumPy and pycocotools (2.0.11 wrote the file that is here)."""
import json
import sys
import zlib

import numpy
from pycocotools import mask

SIZES = (48, 64), (17, 13), (1, 1), (100, 3)  # height, width
random = numpy.random.default_rng(7)


def polygon(height, width, number):
    count = int(random.integers(3, 12))
    spread = (1, 1.6, 0.3)[number % 3]  # 1.6: some of it lies outside
    center = random.uniform(0, 1, 2)
    points = (center + random.uniform(-spread, spread, (count, 2)) / 1.5) * (width, height)
    points = points.clip(-0.9 * width, 1.9 * width) if number % 3 == 1 else points.clip(0, max(width, height))
    points[:, 1] = points[:, 1].clip(-0.9 * height, 1.9 * height)
    points = points.clip((-width, -height), (2 * width, 2 * height))
    if number % 4 == 1:
        points = points.round()
    elif number % 4 == 2:
        points = (points * 10).round() / 10  # halves of a fifth
    elif number % 4 == 3:
        points = points.round(2)
    if number % 5 == 0:
        points = numpy.concatenate([points[:2], points[1:]])  # a point twice
    return [float(value) for value in points.ravel()]


def runs(pixels):
    """Uncompressed run lengths, down the columns."""
    flat = pixels.ravel(order="F")
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[0], flat, [2]])))
    return [int(value) for value in numpy.diff(numpy.concatenate([[0], edges]))]


def main():
    images, annotations = [], []
    for image_id, (height, width) in enumerate(SIZES, 1):
        images.append({"id": image_id, "file_name": f"{image_id}.jpg", "height": height, "width": width})
        shapes = [[polygon(height, width, n) for _ in range(1 + n % 7 // 5)]
                  for n in range(int(sys.argv[1]) if sys.argv[1:] else 16)]
        for share in 0, 0.02, 0.5, 1:
            pixels = (random.uniform(size=(height, width)) < share).astype(numpy.uint8)
            shapes.append({"size": [height, width], "counts": runs(pixels)})
            packed = mask.encode(numpy.asfortranarray(pixels))
            shapes.append({"size": [height, width], "counts": packed["counts"].decode()})
        for shape in shapes:
            packed = mask.merge(mask.frPyObjects(shape, height, width)) if isinstance(shape, list) else shape
            packed = mask.frPyObjects(packed, height, width) if isinstance(packed["counts"], list) else packed
            pixels = mask.decode(packed)
            annotations.append({"id": len(annotations) + 1, "image_id": image_id, "category_id": 1, "iscrowd": 0,
                                "bbox": [0, 0, width, height], "area": int(pixels.sum()), "segmentation": shape,
                                "crc32": zlib.crc32(numpy.ascontiguousarray(pixels).tobytes())})
    lines = ",\n".join(json.dumps(annotation) for annotation in annotations)
    print(f'{{"images": {json.dumps(images)},\n"categories": [{{"id": 1, "name": "shape"}}],\n"annotations": [\n{lines}\n]}}')


main()
