#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""train_torch.py FOLDER: trains a ResNet-18 on a folder of images with PyTorch and dl2.

    python3 train_torch.py photos --epochs 30
    python3 train_torch.py variants/jpeg-50 --val photos --seed 2 --out runs/jpeg-50/seed-2
    torchrun --nproc_per_node 4 train_torch.py photos       # four processes share each epoch

OUT/checkpoint.pt has the network: if a run was stopped, the same command continues it after its
last whole epoch. OUT/result.json has the top-1 accuracy after the last epoch and, of each epoch,
loss, accuracy, images, seconds of training, and of these the seconds that it waited for images.
"""
import argparse
import json
import os
import time

import torch
import torchvision
from torch import distributed, nn

from dl2.torch import Loader

parser = argparse.ArgumentParser(description="Train a ResNet-18 on a folder of images.")
parser.add_argument("folder")
parser.add_argument("--val", help="dataset to validate on [FOLDER]")
parser.add_argument("--out", default=".", help="folder for checkpoint.pt and result.json [.]")
parser.add_argument("--seed", type=int, default=1, help="of weights, order and crops [1]")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch", type=int, default=64, help="images in a batch of one process [64]")
parser.add_argument("--size", type=int, default=224, help="pixels of an image's side [224]")
parser.add_argument("--rate", type=float, default=0.05, help="highest learning rate [0.05]")
parser.add_argument("--amp", action="store_true", help="train in bfloat16 where it is exact enough")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
options = parser.parse_args()
if "RANK" in os.environ:  # torchrun
    distributed.init_process_group("gloo" if options.device == "cpu" else "nccl")
    if options.device == "cuda":
        options.device = f"cuda:{os.environ['LOCAL_RANK']}"
leads = not distributed.is_initialized() or distributed.get_rank() == 0
world = distributed.get_world_size() if distributed.is_initialized() else 1
kind = options.device.split(":")[0]
torch.manual_seed(options.seed)
torch.backends.cudnn.benchmark = True
os.makedirs(options.out, exist_ok=True)

settings = {"batch_size": options.batch, "image_size": options.size, "device": options.device,
            "layout": "channels_last"}
train = Loader(options.folder, seed=options.seed, drop_last=True, **settings)
val = Loader(options.val or options.folder, train=False, **settings)
if val.classes != train.classes:
    parser.error(f"{options.val} has other classes than {options.folder}")
model = torchvision.models.resnet18(num_classes=len(train.classes))
model.to(options.device, memory_format=torch.channels_last)
replica = nn.parallel.DistributedDataParallel(model) if distributed.is_initialized() else model
optimizer = torch.optim.SGD(model.parameters(), options.rate, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate,
                                               total_steps=options.epochs * len(train))
parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
checkpoint, epochs = os.path.join(options.out, "checkpoint.pt"), []
if os.path.exists(checkpoint):
    epochs, states = torch.load(checkpoint, map_location="cpu")
    for name, part in parts.items():
        part.load_state_dict(states[name])

for epoch in range(len(epochs), options.epochs):
    train.set_epoch(epoch)
    replica.train()
    seen, waited, began = 0, 0.0, time.perf_counter()
    asked = began
    for images, targets in train:
        waited += time.perf_counter() - asked
        with torch.autocast(kind, torch.bfloat16, enabled=options.amp):
            loss = nn.functional.cross_entropy(replica(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        seen += world * len(images)
        asked = time.perf_counter()
    last_loss = loss.item()  # waits for the device
    seconds = time.perf_counter() - began
    model.eval()
    sums = torch.zeros(2, dtype=torch.int64, device=options.device)  # right, all: exact over ranks
    with torch.no_grad(), torch.autocast(kind, torch.bfloat16, enabled=options.amp):
        for images, targets in val:
            if len(images):  # a rank's last batch may be empty
                right = model(images).argmax(1) == targets
                sums += torch.stack([right.sum(), (targets >= 0).sum()])
    if distributed.is_initialized():
        distributed.all_reduce(sums)
    right, count = sums.tolist()
    epochs.append({"epoch": epoch, "loss": last_loss, "top1": right / count, "images": seen,
                   "seconds": seconds, "wait_seconds": waited})
    if leads:
        states = {name: part.state_dict() for name, part in parts.items()}
        torch.save((epochs, states), checkpoint)
        print(f"epoch {epoch}: loss {last_loss:.3f}, top-1 {right / count:.3f} of {count} images",
              flush=True)
if leads and epochs:
    result = {"metric": "top1", "unit": "fraction", "higher_is_better": True,
              "value": epochs[-1]["top1"], "epochs": epochs}
    if kind == "cuda":
        result["memory_bytes"] = torch.cuda.max_memory_reserved(options.device)
    with open(os.path.join(options.out, "result.json"), "w") as file:
        json.dump(result, file, indent=1)
