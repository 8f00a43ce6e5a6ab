#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does a network learn as much from dl2's batches as from torchvision's?

    compare_accuracy.py FOLDER [SEEDS [EPOCHS [SIZE]]]          (3 seeds, 12 epochs, 64 pixels)

One PyTorch training script, shortened from torchvision's reference for classification: random crops, flips, SGD, cosine
learning rate. Its two loaders are made by torchvision and DataLoader, or by dl2.torch; nothing else differs. FOLDER has
train/ and val/. Prints the top-1 accuracy of each training, and the mean difference over the seeds, paired, with its 95%
interval (Student's t). A seed sets the network's first weights for both; crops and order are each loader's own.
"""
import os
import sys
import time

import torch
from torch import nn
from torchvision import datasets, transforms
from torchvision.models.resnet import BasicBlock, ResNet

import dl2.torch

folder = sys.argv[1]
seeds, epochs, size = [int(text) for text in sys.argv[2:]] + [3, 12, 64][len(sys.argv) - 2:]
BATCH = 64
NORMALIZE = [transforms.ToTensor(), transforms.Normalize(dl2.torch.IMAGENET_MEAN, dl2.torch.IMAGENET_STD)]


def torchvision_loaders(seed):
    train = datasets.ImageFolder(f"{folder}/train", transforms.Compose(
        [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), *NORMALIZE]))
    val = datasets.ImageFolder(f"{folder}/val", transforms.Compose(
        [transforms.Resize(size * 256 // 224), transforms.CenterCrop(size), *NORMALIZE]))
    return (torch.utils.data.DataLoader(train, BATCH, shuffle=True, drop_last=True),
            torch.utils.data.DataLoader(val, BATCH))


def dl2_loaders(seed):
    return (dl2.torch.Loader(f"{folder}/train", BATCH, size, seed=seed, drop_last=True),
            dl2.torch.Loader(f"{folder}/val", BATCH, size, train=False))


def accuracy(loaders, seed):
    torch.manual_seed(seed)
    train, val = loaders(seed)
    model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=len(os.listdir(f"{folder}/train")))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train))
    for _ in range(epochs):
        model.train()
        for images, targets in train:
            loss = nn.functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, targets in val:
            right += int((model(images).argmax(1) == targets).sum())
            count += len(targets)
    return 100 * right / count


# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
differences = []
for seed in range(1, seeds + 1):
    start = time.time()
    ours, theirs = accuracy(dl2_loaders, seed), accuracy(torchvision_loaders, seed)
    differences.append(ours - theirs)
    print(f"seed {seed}: dl2 {ours:.2f}%, torchvision {theirs:.2f}% ({time.time() - start:.0f} s)", flush=True)
mean = sum(differences) / seeds
if 2 <= seeds <= len(T) + 1:
    deviation = (sum((d - mean) ** 2 for d in differences) / (seeds - 1)) ** 0.5
    half = T[seeds - 2] * deviation / seeds ** 0.5
    print(f"dl2 - torchvision: {mean:+.2f} points, 95% interval {mean - half:+.2f} to {mean + half:+.2f}")
