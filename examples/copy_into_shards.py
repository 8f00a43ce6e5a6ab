#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""copy_into_shards.py SOURCE DEST: copies images into tar shards, which dl2 and WebDataset read.

    python3 copy_into_shards.py mds-folder shards/train
    python3 copy_into_shards.py train.beton shards/train
    dl2-transcode index shards

SOURCE is one of these; the package that reads it comes from PyPI:

  - a folder of MosaicML's MDS shards with index.json (mosaicml-streaming), or a folder of such
  - a .beton file of FFCV (ffcv)

Folders of several splits stay apart: DEST gets a folder of each, DEST/train, DEST/validation;
--split copies one of them, into DEST itself. Encoded images are copied byte by byte. Pixels that
were not encoded become PNG files. The summary has their number. Classes are numbers. DEST must not
exist. It appears when all is written. Parquet files are copied by dl2-hub.
"""
import argparse
import io
import numbers
import os
import re
import shutil
import sys
import tarfile

EXTENSIONS = {b"\xff\xd8\xff": "jpg", b"\x89PNG": "png", b"RIFF": "webp", b"GIF8": "gif",
              b"BM": "bmp", b"II*\0": "tiff", b"MM\0*": "tiff", b"\0\0\0\x0cjP": "jp2",
              b"\xff\x0a": "jxl", b"\0\0\0\x0cJXL": "jxl"}


def fail(text):
    sys.exit(f"copy_into_shards.py: {text}")


def extension_of(data, place):
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis"):
        return "avif"
    for start, extension in EXTENSIONS.items():
        if data.startswith(start) and (extension != "webp" or data[8:12] == b"WEBP"):
            return extension
    fail(f"{place} is no image of a known format; it begins with {data[:8].hex(' ')}")


def png(image):
    out = io.BytesIO()
    image.save(out, "png", compress_level=1)
    return out.getvalue()


def column(wanted, names, guesses, what):
    """The name of the column to read: `wanted`, or the first of `guesses` that is there."""
    found = [name for name in ([wanted] if wanted else guesses) if name in names]
    if not found:
        fail(f"which column has the {what}s? Name one of {', '.join(names)} by --{what}")
    print(f"{what}s: column {found[0]} of {', '.join(names)}")
    return found[0]


# A source is a generator of (place for messages, encoded bytes or an image of Pillow, label).

def mds_source(source, options):
    from streaming import StreamingDataset
    data = StreamingDataset(local=source, shuffle=False, batch_size=1)
    shard = data.shards[0]
    image = column(options.image, shard.column_names, ("image", "img", "x", "jpg"), "image")
    label = column(options.label, shard.column_names, ("label", "class", "y", "cls"), "label")
    for shard in data.shards:  # encoded images as they are
        shard.column_encodings = ["bytes" if encoding in ("jpeg", "jpeg_array", "jpegarray", "png")
                                  else encoding for encoding in shard.column_encodings]
    return ((f"{source}, sample {i}", data[i][image], data[i][label]) for i in range(data.num_samples))


def beton_source(source, options):
    import numpy
    from ffcv.reader import Reader
    from PIL import Image
    reader = Reader(source)
    image = column(options.image, reader.field_names, ("image",), "image")
    label = column(options.label, reader.field_names, ("label",), "label")
    image, label = (f"f{reader.field_names.index(name)}" for name in (image, label))
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    bytes_of_file = numpy.memmap(source, numpy.uint8, "r")

    def samples():
        for number, fields in enumerate(reader.metadata):
            at = fields[image]
            start = int(at["data_ptr"])
            data = bytes_of_file[start:start + sizes[start]]
            if at["mode"] == 0:  # JPEG; else raw pixels
                data = data.tobytes()
            else:
                data = Image.fromarray(data.reshape(int(at["height"]), int(at["width"]), 3))
            yield f"{source}, sample {number}", data, int(fields[label])
    return samples()


def add(shard, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    shard.addfile(member, io.BytesIO(data))


def find_sources(source, options):
    """The sources by the names of their splits."""
    is_folder = os.path.isdir(source) and not os.path.exists(os.path.join(source, "index.json"))
    if options.split and not is_folder:
        fail(f"--split {options.split} is for a folder of several splits, and {source} is none")
    if source.endswith(".beton"):
        return {None: beton_source(source, options)}
    if os.path.isdir(source) and not is_folder:
        return {None: mds_source(source, options)}
    below = (os.path.relpath(folder, source) for folder, _, names in os.walk(source) if "index.json" in names)
    folders = sorted(folder for folder in below if not folder.startswith("."))
    if not folders:
        fail(f"{source} has no index.json of MDS" + ("; dl2-hub get copies Parquet files" if source.endswith(".parquet") else ""))
    splits = {os.path.basename(folder): folder for folder in folders}
    if len(splits) < len(folders):
        fail(f"{source} has several folders of one split: name one of {', '.join(folders)}")
    if options.split and options.split not in splits:
        fail(f"{source} has no split {options.split}, but {', '.join(splits)}")
    return {split: mds_source(os.path.join(source, folder), options) for split, folder in splits.items()
            if options.split in (None, split)}


def copy(samples, shard_bytes, work, dest, source):
    """Writes shards into `work`, which will be `dest`, and the summary."""
    os.makedirs(work)
    count = encoded = shards = filled = 0
    shard = None
    for place, data, label in samples:
        if not isinstance(data, bytes):
            data, encoded = png(data), encoded + 1
        if not isinstance(label, (numbers.Integral, str)):
            fail(f"{place} has the label {label!r}, which is not the number or name of one class; choose another column by --label")
        if shard is None or filled >= shard_bytes:
            if shard:
                shard.close()
            path = os.path.join(work, f"shard-{shards:06d}.tar")
            shard, shards, filled = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT), shards + 1, 0
        key = f"{label}/{count:09d}" if re.fullmatch(r"[^./\n][^/\n]*", str(label)) else f"{count:09d}"  # as a folder of files has it
        add(shard, f"{key}.{extension_of(data, place)}", data)
        add(shard, f"{key}.cls", str(label).encode())
        count, filled = count + 1, filled + len(data)
    if not count:
        fail(f"{source} has no images for {dest}")
    shard.close()
    print(f"{dest}: {count} images, {shards} shards; {encoded} images were pixels and are PNG files now")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("dest")
    parser.add_argument("--image", help="column with the images [image and other usual names]")
    parser.add_argument("--label", help="column with the classes [label and other usual names]")
    parser.add_argument("--split", help="copy this split alone, into DEST itself")
    parser.add_argument("--shard", type=int, default=256, help="MiB in a shard [256]")
    options = parser.parse_args()
    source, dest = options.source, options.dest.rstrip("/")
    if os.path.lexists(dest):
        fail(f"{dest} is there already")
    sources = find_sources(source, options)
    work = dest + ".tmp"
    shutil.rmtree(work, ignore_errors=True)
    for split, samples in sources.items():
        place = dest if len(sources) == 1 else f"{dest}/{split}"
        copy(samples, options.shard << 20, work + place[len(dest):], place, source)
    os.rename(work, dest)


main()
