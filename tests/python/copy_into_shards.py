# SPDX-License-Identifier: BSD-2-Clause
# copy_into_shards.py FORMAT FOLDER: seven images as mds or beton in FOLDER/source..., and what a copy of them has to be
# as FOLDER/expected/NUMBER.{png,jpg}: the same bytes; where the format keeps pixels alone, a PNG file of these pixels.
import io
import json
import os
import sys

import numpy
from PIL import Image

kind, folder = sys.argv[1:]
random = numpy.random.default_rng(0)
expected = os.path.join(folder, "expected")
os.makedirs(expected)


def encoded(image, form):
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()


def expect(number, data, extension):
    with open(f"{expected}/{number:09d}.{extension}", "wb") as file:
        file.write(data)


images = [Image.fromarray(random.integers(0, 255, (20 + i, 30, 3), dtype=numpy.uint8)) for i in range(7)]
labels = [i % 3 for i in range(7)]
forms = [("jpeg", "jpg") if i % 2 else ("png", "png") for i in range(7)]
if kind == "mds":
    from streaming import MDSWriter
    with MDSWriter(out=folder + "/source", columns={"image": "jpeg", "thumbnail": "pil", "label": "int"},
                   compression="zstd") as writer:
        for i, image in enumerate(images):
            expect(i, encoded(image, "jpeg"), "jpg")
            file = Image.open(f"{expected}/{i:09d}.jpg")  # MDS stores the bytes of an image that came from a file
            writer.write({"image": file, "thumbnail": image, "label": labels[i]})
else:
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    class Source:
        def __len__(self):
            return len(images)

        def __getitem__(self, i):
            return numpy.array(images[i]), labels[i]

    fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
    DatasetWriter(folder + "/source.beton", fields, num_workers=1).from_indexed_dataset(Source())
    for i, image in enumerate(images):
        out = io.BytesIO()
        image.save(out, "png", compress_level=1)
        expect(i, out.getvalue(), "png")
