# SPDX-License-Identifier: BSD-2-Clause
"""For peers.sh: reads what dl2 packed with GulpIO and WebDataset, and packs with them for dl2 to read."""
import glob
import json
import os
import sys
import tarfile

import numpy
import webdataset
from gulpio2 import GulpDirectory
from gulpio2 import sanity_utils
from gulpio2.utils import img_to_jpeg_bytes


def files(root):
    """{path without extension: (bytes, class)} of a folder [CLASS/]FILE."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "**", "*.jpg"), recursive=True)):
        name = os.path.relpath(path, root)
        with open(path, "rb") as file:
            found[name[: -len(".jpg")]] = (file.read(), name.split("/")[0])
    return found


def check(condition, what):
    if not condition:
        sys.exit(f"peers.py: {what}")


def read_gulp(folder, wanted):
    directory = GulpDirectory(folder, jpeg_decoder=lambda data: data)
    for test in (sanity_utils.check_meta_file_size_larger_zero, sanity_utils.check_data_file_size_larger_zero,
                 sanity_utils.check_data_file_size, sanity_utils.check_for_duplicate_ids):
        check(test(directory) == [], f"{folder}: {test.__name__}")
    check(list(directory.merged_meta_dict) == list(wanted), f"{folder}: ids {list(directory.merged_meta_dict)}")
    labels = directory._load_label_dict()
    for name, (data, label) in wanted.items():
        frames, meta = directory[name]
        check(frames == [data], f"{folder}: bytes of {name}")
        check(meta["label"] == label and labels[label] == meta["idx"], f"{folder}: {name} has {meta}")
    check(GulpDirectory(folder)[next(iter(wanted))][0][0].shape[0] == 10, f"{folder}: pixels")


def read_tar(folder, wanted):
    urls = sorted(glob.glob(os.path.join(folder, "*.tar")))
    with open(os.path.join(folder, "classes.txt"), encoding="utf-8") as file:
        classes = file.read().splitlines()
    found = {}
    for sample in webdataset.WebDataset(urls, shardshuffle=False):
        name = sample["__key__"].replace("%2E", ".").replace("%25", "%")
        found[name] = (sample["jpg"], classes[int(sample["cls"])])
    check(found == wanted and list(found) == list(wanted), f"{folder}: {list(found)}")
    with tarfile.open(urls[0]) as tar:
        beside = [name for name in tar.getnames() if name.endswith(".txt")]
        check(beside and len(tar.getmembers()) == 2 * len(wanted) + len(beside), f"{folder}: members")


def put(root, name, data, extension="jpg"):
    path = os.path.join(root, f"{name}.{extension}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def write(root):
    images = [numpy.full((8, 8 + i, 3), 20 * i, numpy.uint8) for i in range(5)]
    data = [img_to_jpeg_bytes(image) for image in images]
    os.makedirs(os.path.join(root, "gulp"))
    chunks = GulpDirectory(os.path.join(root, "gulp")).new_chunks(2)
    items = list(zip(("b/film", "b/Stück-1", "7", "8", "9"), images, data))
    for chunk, part in zip(chunks, (items[:2], items[2:])):
        with chunk.open("wb"):
            for name, frame, encoded in part:
                chunk.append(name, {"label": "b", "id": name}, [frame])
                put(os.path.join(root, "gulp-files"), name, encoded)
    os.makedirs(os.path.join(root, "tar"))
    with webdataset.ShardWriter(os.path.join(root, "tar", "x-%06d.tar"), maxcount=2, verbose=0) as sink:
        for i, encoded in enumerate(data):
            name = f"{i % 2}/{'n' * 150}/{i}"
            sink.write({"__key__": name, "jpg": encoded, "cls": i % 2, "json": {"i": i}})
            put(os.path.join(root, "tar-files"), name, encoded)
            put(os.path.join(root, "tar-files"), name, json.dumps({"i": i}).encode(), "json")


def read_clips(source, folder):
    """GulpIO has the clips of dl2 with their frames, whole and in slices."""
    directory = GulpDirectory(folder, jpeg_decoder=lambda data: data)
    for test in (sanity_utils.check_data_file_size, sanity_utils.check_for_duplicate_ids):
        check(test(directory) == [], f"{folder}: {test.__name__}")
    clips = sorted(glob.glob(os.path.join(source, "*", "*")))
    check(sorted(directory.merged_meta_dict) == [os.path.relpath(clip, source) for clip in clips], f"{folder}: ids")
    for clip in clips:
        name, wanted = os.path.relpath(clip, source), []
        for frame in range(1, len(os.listdir(clip)) + 1):
            with open(os.path.join(clip, f"{frame}.jpg"), "rb") as file:
                wanted.append(file.read())
        frames, meta = directory[name]
        check(frames == wanted and meta["label"] == name.split("/")[0], f"{folder}: {name}")
        check(directory[name, slice(1, None, 2)][0] == wanted[1::2], f"{folder}: a slice of {name}")


def write_clips(root):
    """Clips as GulpIO packs them, ids without folders; and the files that they should become."""
    os.makedirs(os.path.join(root, "clips"))
    for number, chunk in enumerate(GulpDirectory(os.path.join(root, "clips")).new_chunks(2)):
        with chunk.open("wb"):
            for clip in range(3):
                name, label = f"{number}{clip}", "ab"[clip % 2]
                frames = [numpy.full((8, 9, 3), 20 * i + clip, numpy.uint8) for i in range(1 + clip * 6)]
                chunk.append(name, {"label": label, "id": name}, frames)
                for i, frame in enumerate(frames):
                    put(os.path.join(root, "clips-files"), f"{label}/{name}/{i:05}", img_to_jpeg_bytes(frame))


if sys.argv[1] == "write":
    write(sys.argv[2])
    write_clips(sys.argv[2])
elif sys.argv[1] == "clips":
    read_clips(*sys.argv[2:])
else:
    _, _, source, gulp, tar = sys.argv
    for part in ("train", "val"):
        wanted = files(os.path.join(source, part))
        read_gulp(os.path.join(gulp, part), wanted)
        read_tar(os.path.join(tar, part), wanted)
