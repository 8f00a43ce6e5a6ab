#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""train_torch.py FOLDER: trains a ResNet-18 on a folder of images with PyTorch and dl2.

    python3 train_torch.py photos --epochs 30
    torchrun --nproc_per_node 4 train_torch.py photos       # four processes share each epoch

If a run was stopped, the same command continues it after its last whole epoch.
"""
import argparse
import os

import torch
import torchvision
from torch import distributed, nn

from dl2.torch import Loader

parser = argparse.ArgumentParser(description="Train a ResNet-18 on a folder of images.")
parser.add_argument("folder")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch", type=int, default=64, help="images in a batch of one process [64]")
parser.add_argument("--size", type=int, default=224, help="pixels of an image's side [224]")
parser.add_argument("--rate", type=float, default=0.05, help="highest learning rate [0.05]")
parser.add_argument("--checkpoint", default="checkpoint.pt")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
options = parser.parse_args()
if "RANK" in os.environ:  # torchrun
    distributed.init_process_group("gloo" if options.device == "cpu" else "nccl")
    if options.device == "cuda":
        options.device = f"cuda:{os.environ['LOCAL_RANK']}"
leads = not distributed.is_initialized() or distributed.get_rank() == 0
torch.manual_seed(0)

settings = {"batch_size": options.batch, "image_size": options.size, "device": options.device,
            "layout": "channels_last"}
train = Loader(options.folder, seed=1, drop_last=True, **settings)
val = Loader(options.folder, train=False, **settings)
model = torchvision.models.resnet18(num_classes=len(train.classes))
model.to(options.device, memory_format=torch.channels_last)
replica = nn.parallel.DistributedDataParallel(model) if distributed.is_initialized() else model
optimizer = torch.optim.SGD(model.parameters(), options.rate, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate,
                                               total_steps=options.epochs * len(train))
parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
first = 0
if os.path.exists(options.checkpoint):
    first, states = torch.load(options.checkpoint, map_location="cpu")
    for name, part in parts.items():
        part.load_state_dict(states[name])

for epoch in range(first, options.epochs):
    train.set_epoch(epoch)
    replica.train()
    for images, targets in train:
        loss = nn.functional.cross_entropy(replica(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    if leads:
        states = {name: part.state_dict() for name, part in parts.items()}
        torch.save((epoch + 1, states), options.checkpoint)
    model.eval()
    sums = torch.zeros(2, dtype=torch.int64, device=options.device)  # right, all: exact over ranks
    with torch.no_grad():
        for images, targets in val:
            if len(images):  # a rank's last batch may be empty
                right = model(images).argmax(1) == targets
                sums += torch.stack([right.sum(), (targets >= 0).sum()])
    if distributed.is_initialized():
        distributed.all_reduce(sums)
    right, count = sums.tolist()
    if leads:
        print(f"epoch {epoch}: loss {loss:.3f}, top-1 {right / count:.3f} of {count} images",
              flush=True)
