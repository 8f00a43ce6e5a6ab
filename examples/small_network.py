# SPDX-License-Identifier: BSD-2-Clause
"""A small network of one's own, for the examples' --network small_network:build; `make demo-torch` trains it."""
from torch import nn


def block(before, after):
    """Of [N, before, H, W], [N, after, H / 2, W / 2]."""
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2))


def build(classes):
    """Of images [N, 3, H, W] of at least 8x8 pixels, [N, classes]."""
    return nn.Sequential(block(3, 24), block(24, 48), block(48, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, classes))
