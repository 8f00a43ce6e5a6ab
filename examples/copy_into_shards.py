#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""copy_into_shards.py SOURCE DEST: copies images into tar shards, which dl2 and WebDataset read.

    python3 copy_into_shards.py dataset-from-the-hub shards
    python3 copy_into_shards.py train-00000-of-00002.parquet,train-00001-of-00002.parquet shards/train
    python3 copy_into_shards.py mds-folder shards/train
    python3 copy_into_shards.py train.beton shards/train
    dl2-transcode index shards

SOURCE is one of these; the package that reads it comes from PyPI:

  - Parquet files, as Hugging Face publishes datasets (pyarrow): one file, several with commas, or
    a folder of them, whose folders are searched, too
  - a folder of MosaicML's MDS shards with index.json (mosaicml-streaming), or a folder of such
  - a .beton file of FFCV (ffcv)

Files or folders of several splits, as the Hub names them (train-00000-of-00002.parquet,
validation/0000.parquet), stay apart: DEST gets a folder of each, DEST/train, DEST/validation;
--split copies one of them, into DEST itself. Encoded images are copied byte by byte. Pixels that
were not encoded become PNG files. Rows without an image are left out. The summary has their
numbers. Classes are numbers; where the source has names for them, classes.txt does, too. DEST must
not exist. It appears when all is written.
"""
import argparse
import io
import json
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


# The words that Hugging Face looks for in the names of files and folders.
SPLITS = {"train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
          "dev": "validation", "test": "test", "testing": "test", "eval": "test", "evaluation": "test"}


def split_of(path):
    """The split that the name of a file says, else that of the folder that is nearest to it; or None."""
    name = os.path.basename(path)
    numbered = re.match(r"(\w+(?:\.\w+)*)-\d{5,}-of-\d{5,}", name)
    if numbered:
        return SPLITS.get(numbered[1].lower(), numbered[1])
    for part in [name, *reversed(path.split("/")[:-1])]:
        words = {SPLITS[word] for word in re.split(r"[-_. 0-9]+", part.lower()) if word in SPLITS}
        if len(words) == 1:
            return words.pop()
    return None


def by_split(source, paths, wanted):
    """The paths, relative to the source, by split; None stands for one of no name."""
    splits, places = {}, set()
    for path in paths:
        split = split_of(path)
        splits.setdefault(split, []).append(path)
        folders = path.split("/")[:-1]
        places.add("/".join(folders[:-1] if folders and split_of(folders[-1]) else folders))
    if wanted and wanted not in splits:
        fail(f"{source} has no split {wanted}, but {', '.join(map(str, splits))}")
    if len(places) > 1:
        fail(f"{source} has files in several folders, which may be several versions of the same images: "
             f"name one of {', '.join(sorted(os.path.join(source, place) for place in places))}")
    if len(splits) > 1 and None in splits and not wanted:
        fail(f"{source} has splits, and {splits[None][0]} is of none: choose one by --split, or name files")
    return {wanted: splits[wanted]} if wanted else splits


def found_below(source, is_one):
    """Paths below the folder, relative to it, in order."""
    paths = [os.path.relpath(os.path.join(folder, name), source)
             for folder, _, names in os.walk(source) for name in names if is_one(name)]
    return sorted(path for path in paths if not path.startswith("."))


# A source is a pair: the names of the classes or None, and a generator of (place for messages,
# encoded bytes, an image of Pillow or None, label: a number, a word or None).

def parquet_source(files, options):
    import pyarrow.parquet
    schema = pyarrow.parquet.read_schema(files[0])
    image = column(options.image, schema.names, ("image", "img", "jpg", "png", "webp"), "image")
    label = column(options.label, schema.names, ("label", "labels", "cls", "class", "fine_label"),
                   "label")
    about = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    names = about.get("info", {}).get("features", {}).get(label, {}).get("names")

    def samples():
        for file in files:
            row = 0
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(64, columns=[image, label]):
                for value, of_class in zip(batch[image].to_pylist(), batch[label].to_pylist()):
                    place = f"{file}, row {row}"
                    data = value.get("bytes") if isinstance(value, dict) else value
                    if isinstance(value, dict) and data is None and value.get("path"):
                        fail(f"{place} has the path {value['path']} in place of an image: the files lie elsewhere")
                    if data is not None and not isinstance(data, bytes):
                        fail(f"{place} has no bytes of an image in column {image}")
                    # Hugging Face writes -1 where the class is withheld, as in test splits
                    yield place, data, None if of_class == -1 else of_class
                    row += 1
    return names, samples()


def mds_source(source, options):
    from streaming import StreamingDataset
    data = StreamingDataset(local=source, shuffle=False, batch_size=1)
    shard = data.shards[0]
    image = column(options.image, shard.column_names, ("image", "img", "x", "jpg"), "image")
    label = column(options.label, shard.column_names, ("label", "class", "y", "cls"), "label")
    for shard in data.shards:  # encoded images as they are
        shard.column_encodings = ["bytes" if encoding in ("jpeg", "jpeg_array", "jpegarray", "png")
                                  else encoding for encoding in shard.column_encodings]
    return None, ((f"{source}, sample {i}", data[i][image], data[i][label])
                  for i in range(data.num_samples))


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
    return None, samples()


def add(shard, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    shard.addfile(member, io.BytesIO(data))


def key_of(number, of_class):
    """In a folder of the class, which a copy to a folder of files then has, too."""
    if not of_class or of_class.startswith(".") or "/" in of_class or "\n" in of_class:
        return f"{number:09d}"
    return f"{of_class}/{number:09d}"


def find_sources(source, options):
    """The sources by the names of their splits."""
    is_folder = os.path.isdir(source) and not os.path.exists(os.path.join(source, "index.json"))
    if options.split and not is_folder:
        fail(f"--split {options.split} is for a folder of several splits, and {source} is none")
    if source.endswith(".beton"):
        return {None: beton_source(source, options)}
    if os.path.isdir(source) and not is_folder:
        return {None: mds_source(source, options)}
    if not is_folder:
        files = source.split(",")
        splits = sorted({split_of(file) for file in files} - {None})
        if len(splits) > 1:
            fail(f"{source} would mix the splits {', '.join(splits)}: copy those of one, or name their folder")
        return {None: parquet_source(files, options)}
    paths = found_below(source, lambda name: name.endswith(".parquet"))
    if paths:
        return {split: parquet_source([os.path.join(source, path) for path in files], options)
                for split, files in by_split(source, paths, options.split).items()}
    folders = [os.path.dirname(path) for path in found_below(source, lambda name: name == "index.json")]
    if not folders:
        fail(f"{source} has neither Parquet files nor an index.json of MDS")
    splits = {split_of(folder) or os.path.basename(folder): folder for folder in folders}
    if len(splits) < len(folders):
        fail(f"{source} has several folders of one split: name one of {', '.join(folders)}")
    if options.split and options.split not in splits:
        fail(f"{source} has no split {options.split}, but {', '.join(splits)}")
    return {split: mds_source(os.path.join(source, folder), options) for split, folder in splits.items()
            if options.split in (None, split)}


def copy(names, samples, shard_bytes, work, dest, source):
    """Writes shards and classes.txt into `work`, which will be `dest`, and the summary."""
    os.makedirs(work)
    count = encoded = unlabelled = missing = shards = filled = 0
    shard = None
    for place, data, label in samples:
        if data is None:
            if not missing:
                print(f"{place} has no image, and is left out")
            missing += 1
            continue
        if not isinstance(data, bytes):
            data, encoded = png(data), encoded + 1
        if names and isinstance(label, numbers.Integral) and not 0 <= label < len(names):
            fail(f"{place} has label {label}, but there are {len(names)} classes")
        if label is not None and not isinstance(label, numbers.Integral if names else (numbers.Integral, str)):
            fail(f"{place} has the label {label!r}, which is not the number{'' if names else ' or name'} "
                 "of one class; choose another column by --label")
        if shard is None or filled >= shard_bytes:
            if shard:
                shard.close()
            path = os.path.join(work, f"shard-{shards:06d}.tar")
            shard, shards, filled = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT), shards + 1, 0
        key = key_of(count, "" if label is None else str(names[label] if names else label))
        add(shard, f"{key}.{extension_of(data, place)}", data)
        if label is None:
            unlabelled += 1
        else:
            add(shard, f"{key}.cls", str(label).encode())
        count, filled = count + 1, filled + len(data)
    if not count:
        fail(f"{source} has no images for {dest}")
    shard.close()
    if names:
        with open(os.path.join(work, "classes.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in names)
    print(f"{dest}: {count} images, {shards} shards; {encoded} images were pixels and are PNG files now, "
          f"{unlabelled} have no class, {missing} rows had no image")


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
    if len(sources) > 1 and split_of(os.path.basename(dest)):
        fail(f"{source} has the splits {', '.join(sources)}, which get a folder each in DEST: name the folder above "
             f"{dest}, or choose one by --split")
    work = dest + ".tmp"
    shutil.rmtree(work, ignore_errors=True)
    for split, (names, samples) in sources.items():
        place = dest if len(sources) == 1 else f"{dest}/{split}"
        copy(names, samples, options.shard << 20, work + place[len(dest):], place, source)
    os.rename(work, dest)


main()
