# SPDX-License-Identifier: BSD-2-Clause
"""A training script as people have them, which knows nothing of dl2."""
import argparse
import csv
import os

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--val", required=True)
parser.add_argument("--out", default="runs")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=32)
args = parser.parse_args()

torch.manual_seed(args.seed)
augment = transforms.Compose([transforms.RandomResizedCrop(args.size, scale=(0.5, 1)), transforms.RandomHorizontalFlip(),
                              transforms.ToTensor()])
resize = transforms.Compose([transforms.Resize((args.size, args.size)), transforms.ToTensor()])
train_set, val_set = ImageFolder(args.data, augment), ImageFolder(args.val, resize)
train_loader = DataLoader(train_set, args.batch, shuffle=True)
val_loader = DataLoader(val_set, args.batch)

model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32),
                      nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(train_set.classes)))
optimizer = torch.optim.AdamW(model.parameters(), 0.01)


def evaluate():
    model.eval()
    right = []
    with torch.no_grad():
        for images, labels in val_loader:
            right += (model(images).argmax(1) == labels).tolist()
    return sum(right) / len(right)


os.makedirs(args.out, exist_ok=True)
with open(os.path.join(args.out, "log.csv"), "w", newline="") as file:
    log = csv.writer(file)
    log.writerow(["epoch", "loss", "val_acc"])
    for epoch in range(args.epochs):
        model.train()
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = evaluate()
        log.writerow([epoch, loss.item(), accuracy])
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
