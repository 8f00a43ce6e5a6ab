# SPDX-License-Identifier: BSD-2-Clause
"""foreign.py make FOLDER | read FOLDER EXTENSION SIDE: datasets as other programs write and read them, with Pillow and Python's
own library alone. Each image is dark but for a bright rectangle, which all that lies beside the image describes."""
import json
import os
import sys

from PIL import Image

SIZE = 60, 40
PLACES = {"train/1": (6, 8, 24, 20), "train/2": (30, 4, 24, 30), "val/3": (12, 20, 30, 16)}  # x, y, width, height


def painted(place):
    image = Image.new("RGB", SIZE, (20, 30, 20))
    image.paste((230, 200, 210), (place[0], place[1], place[0] + place[2], place[1] + place[3]))
    return image


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def make(root):
    coco = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "bright"}]}
    for number, (name, (x, y, w, h)) in enumerate(PLACES.items(), 1):
        split, stem = name.split("/")
        paths = [f"coco/{name}.png", f"yolo/images/{name}.png", f"masks/{split}/images/{stem}.png", f"captions/{split}/bright/{stem}.png",
                 f"list/pictures/{stem}.png"]
        for path in paths:
            os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
            painted((x, y, w, h)).save(f"{root}/{path}")
        coco["images"].append({"id": number, "file_name": f"{name}.png", "width": SIZE[0], "height": SIZE[1]})
        coco["annotations"].append({"id": number, "image_id": number, "category_id": 1, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0,
                                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]]})
        write(f"{root}/yolo/labels/{name}.txt", f"0 {(x + w / 2) / SIZE[0]} {(y + h / 2) / SIZE[1]} {w / SIZE[0]} {h / SIZE[1]}\n")
        mask = Image.new("L", SIZE)
        mask.paste(1, (x, y, x + w, y + h))
        os.makedirs(f"{root}/masks/{split}/masks", exist_ok=True)
        mask.save(f"{root}/masks/{split}/masks/{stem}.png")
        write(f"{root}/captions/{split}/bright/{stem}.txt", f"a bright rectangle of {w}x{h}")
        write(f"{root}/captions/{split}/bright/{stem}.json", json.dumps({"place": [x, y, w, h]}))
    write(f"{root}/coco/annotations/instances.json", json.dumps(coco))
    write(f"{root}/yolo/data.yaml", "path: /somewhere/else\ntrain: images/train\nval: images/val\nnames:\n  0: bright\n")


def is_at(path, place):
    """Is the image bright in the middle of the place and just inside of its corners, and dark outside?"""
    image = Image.open(path).convert("L")
    x, y, w, h = place
    bright = [image.getpixel((int(x + w * at), int(y + h * of))) for at in (0.15, 0.5, 0.85) for of in (0.15, 0.5, 0.85)]
    dark = [image.getpixel(at) for at in ((max(0, int(x) - 3), int(y + h / 2)), (int(x + w / 2), max(0, int(y) - 3)), (image.width - 1, image.height - 1))]
    assert min(bright) > 150 and max(dark) < 80, (path, place, bright, dark)
    return image.size


def read(root, extension, side):
    kind = os.path.basename(os.path.dirname(root.rstrip("/")))
    scale = 1 if side == "full" else int(side) / min(SIZE)
    count = 0
    if kind == "coco":  # as pycocotools and torchvision's CocoDetection do it
        with open(f"{root}/annotations/instances.json") as file:
            coco = json.load(file)
        for image in coco["images"]:
            for found in (o for o in coco["annotations"] if o["image_id"] == image["id"]):
                assert is_at(f"{root}/{image['file_name']}", found["bbox"]) == (image["width"], image["height"])
                xs, ys = found["segmentation"][0][::2], found["segmentation"][0][1::2]
                assert max(abs(a - b) for a, b in zip(found["bbox"], (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)))) < 0.01
                assert abs(found["area"] - found["bbox"][2] * found["bbox"][3]) < 0.01 * found["area"]
                count += 1
    for name, place in PLACES.items():
        split, stem = name.split("/")
        here = [scale * number for number in place]
        if kind == "yolo":  # as Ultralytics does it: labels/ beside images/, data.yaml's folder as `path`
            with open(f"{root}/labels/{name}.txt") as file:
                _, cx, cy, w, h = map(float, file.read().split())
            path = f"{root}/images/{name}.{extension}"
            width, height = Image.open(path).size
            is_at(path, ((cx - w / 2) * width, (cy - h / 2) * height, w * width, h * height))
            with open(f"{root}/data.yaml") as file:
                lines = file.read().splitlines()
            assert "val: images/val" in lines and "  0: bright" in lines and not [line for line in lines if line.startswith("path")]
        elif kind == "masks":
            folder = f"{root}/{split}/images"
            mask = Image.open(next(f"{folder}/{name}" for name in os.listdir(folder) if name.startswith(f"{stem}.mask.")))
            assert is_at(f"{folder}/{stem}.{extension}", here) == mask.size and set(mask.getdata()) == {0, 1}
            box = mask.point(lambda value: 255 * value).getbbox()
            assert max(abs(a - b) for a, b in zip(box, (here[0], here[1], here[0] + here[2], here[1] + here[3]))) <= 1, (box, here)
        elif kind == "captions":
            folder = f"{root}/{split}/bright"
            is_at(f"{folder}/{stem}.{extension}", here)
            with open(f"{folder}/{stem}.txt") as caption, open(f"{folder}/{stem}.json") as more:
                assert caption.read() == f"a bright rectangle of {place[2]}x{place[3]}" and json.load(more) == {"place": list(place)}
        else:
            continue
        count += 1
    assert count == len(PLACES), (kind, count)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    read(*sys.argv[2:])
