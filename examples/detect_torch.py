#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""detect_torch.py FOLDER: trains a detector of torchvision on a folder of images with boxes.

    python3 detect_torch.py coco --boxes annotations/instances.json --epochs 30 --out runs/1
    python3 detect_torch.py variants/jpeg-50 --boxes data.yaml      # YOLO's label files

FILE of --boxes lies in FOLDER (docs/python.md, "Boxes"); a variant has it, too. OUT/result.json has the mAP50
of the images of `val`, the mean over classes of the average precision at an IoU of 0.5, and the same of
resamples of these images, from which a study computes intervals (docs/your-network.md).
"""
import argparse
import os

import torch
import torchvision
from torchvision.ops import box_iou

import dl2.study
import torch_parts
from dl2.torch import Loader

parser = argparse.ArgumentParser(description="Train a detector on a folder of images with boxes.", epilog="* in a study, the study's")
parser.add_argument("folder", nargs="?", help="the dataset *")
parser.add_argument("--boxes", required=True, metavar="FILE", help="COCO's JSON or YOLO's data.yaml, in FOLDER")
parser.add_argument("--out", default=".", help="folder for checkpoint.pt and result.json [.] *")
parser.add_argument("--seed", type=int, default=1, help="[1] *")
parser.add_argument("--epochs", type=int, default=10, help="[10] *")
parser.add_argument("--batch", type=int, default=8, help="images in a batch [8] *")
parser.add_argument("--size", type=int, default=320, help="pixels of an image's side [320] *")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="*")
parser.add_argument("--network", default="fasterrcnn_mobilenet_v3_large_320_fpn", help="of torchvision.models.detection [%(default)s]")
parser.add_argument("--weights", help="its state_dict; what doesn't fit, such as the last layers, is new")
parser.add_argument("--rate", type=float, default=0.01, help="learning rate [0.01]")
options = parser.parse_args()
run = dl2.study.run(data=options.folder, val=options.folder, out=options.out, seed=options.seed, epochs=options.epochs,
                    batch=options.batch, image_size=options.size, device=options.device)
if not run.data:
    parser.error("which FOLDER?")
torch.manual_seed(run.seed)
os.makedirs(run.out, exist_ok=True)


def load(path, train):
    """Whole images, or crops that show 30% of one or more. Networks for detection normalize by themselves."""
    return Loader(path, run.batch, run.image_size, train=train, seed=run.seed, boxes=os.path.join(path, options.boxes), mean=None, std=None,
                  indices=True, **({"area": (0.3, 1), "min_visibility": 0.3} if train else {"val_crop": "squash"}))


def matches(found, target):
    """Of an image [(class, score, whether it is an object of its own)], and the class of each object."""
    objects = target["iscrowd"] == 0
    boxes, classes, rows = target["boxes"][objects], (target["labels"][objects] + shift).tolist(), []
    free = [True] * len(classes)
    order = found["scores"].argsort(descending=True)
    overlaps = box_iou(found["boxes"][order], boxes).tolist() if classes else [[]] * len(order)
    for overlap, label, score in zip(overlaps, found["labels"][order].tolist(), found["scores"][order].tolist()):
        best = max((i for i in range(len(classes)) if free[i] and classes[i] == label), key=lambda i: overlap[i], default=None)
        hit = best is not None and overlap[best] >= 0.5
        if hit:
            free[best] = False
        rows.append((label, score, hit))
    return rows, classes


def mean_precision(images):
    """mAP50 of what matches() found in each of these images."""
    precisions = []
    for label in sorted({label for _, classes in images for label in classes}):
        count = sum(classes.count(label) for _, classes in images)
        rows = sorted((row for found, _ in images for row in found if row[0] == label), key=lambda row: -row[1])
        hits, at_hits = 0, []
        for number, (_, _, hit) in enumerate(rows, 1):
            hits += hit
            at_hits += [hits / number] if hit else []
        for i in range(len(at_hits) - 1, 0, -1):
            at_hits[i - 1] = max(at_hits[i - 1], at_hits[i])
        precisions.append(sum(at_hits) / count)
    return sum(precisions) / len(precisions) if precisions else 0.0


def validate(loader):
    """What matches() finds in each image, by its key."""
    network.eval()
    found = {}
    with torch.no_grad():
        for images, targets, more in loader:
            for i, one, target in zip(more["indices"].tolist(), network(list(images.to(run.device))), targets):
                found[loader.dataset.keys[i]] = matches({name: value.cpu() for name, value in one.items()}, target)
    return found


train, val = load(run.data, True), load(run.val, False)
labels = train.loader.box_classes
shift = 1 if min(labels) == 0 else 0  # class 0 is the background
network = torch_parts.fill(options, getattr(torchvision.models.detection, options.network)(
    weights=None, weights_backbone=None, num_classes=max(labels) + shift + 1, min_size=run.image_size, max_size=run.image_size), True)
network.to(run.device)
optimizer = torch.optim.SGD(network.parameters(), options.rate, momentum=0.9, weight_decay=5e-4)
checkpoint, first = os.path.join(run.out, "checkpoint.pt"), 0
if os.path.exists(checkpoint):
    first, parts = torch.load(checkpoint, map_location="cpu")
    network.load_state_dict(parts["model"])
    optimizer.load_state_dict(parts["optimizer"])
for epoch in range(first, run.epochs):
    torch.manual_seed(run.seed + (epoch << 32))  # a run that continues draws as one that was not stopped
    train.set_epoch(epoch)
    network.train()
    losses = []
    for images, targets, _ in train:
        targets = [{name: target[name].to(run.device) + (shift if name == "labels" else 0) for name in ("boxes", "labels")} for target in targets]
        loss = sum(network(list(images.to(run.device)), targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    run.epoch(epoch, loss=sum(losses) / len(losses))
    torch.save((epoch + 1, {"model": network.state_dict(), "optimizer": optimizer.state_dict()}), checkpoint + ".new")
    os.replace(checkpoint + ".new", checkpoint)
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}", flush=True)

members, sets = {}, {"": val}
if run.original and run.original != run.val:
    sets["original_"] = load(run.original, False)
for name, loader in sets.items():
    found = validate(loader)
    images = list(found.values())
    members[name + "resamples"] = dl2.study.resamples(lambda picked: mean_precision([images[i] for i in picked]), found)
    members[name.rstrip("_") or "value"] = mean_precision(images)
print(f"mAP50 {run.finish('mAP50', **members)['value']:.4f}")
