#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""optuna_search.py FOLDER: searches for settings of a small network with Optuna, PyTorch and dl2.

    python3 optuna_search.py photos --trials 30

Optuna sees a trial's validation accuracy after each epoch. A trial ends early if it is worse than
the median of earlier ones, or diverges. The same command continues a search: its trials are in search.db (SQLite).
"""
import argparse

import optuna
import torch
from torch import nn

from dl2.torch import Loader

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--trials", type=int, default=30, help="trials of the whole search [30]")
parser.add_argument("--epochs", type=int, default=10, help="epochs of a trial [10]")
parser.add_argument("--size", type=int, default=64, help="pixels of an image's side [64]")
options = parser.parse_args()


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == targets).sum()) for images, targets in loader)
    return right / len(loader.dataset)


def objective(trial):
    width = trial.suggest_categorical("width", [16, 32, 64])
    rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    train = Loader(options.folder, image_size=options.size, seed=1,
                   augment=trial.suggest_categorical("augment", [None, "randaugment"]))
    val = Loader(options.folder, image_size=options.size, train=False)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, width, 5, stride=2), nn.ReLU(),
                          nn.Conv2d(width, width, 3, stride=2), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, len(val.classes)))
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for epoch in range(options.epochs):
        model.train()
        for images, targets in train:
            loss = nn.functional.cross_entropy(model(images), targets)
            if not torch.isfinite(loss):  # a diverged model still takes every image for one class
                raise optuna.TrialPruned()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        top1 = accuracy(model, val)
        trial.report(top1, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return top1


study = optuna.create_study(direction="maximize", study_name="search",
                            storage="sqlite:///search.db", load_if_exists=True)
study.optimize(objective, options.trials - len(study.trials))
print(f"best of {len(study.trials)} trials: top-1 {study.best_value:.3f} with {study.best_params}")
