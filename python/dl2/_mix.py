# SPDX-License-Identifier: BSD-2-Clause
"""Mixup and CutMix of a batch, as torchvision.transforms.v2.MixUp and CutMix define them: each image
is mixed with the one before it, the first with the last, with one share for all."""
from __future__ import annotations

import math
import random
from typing import NamedTuple, Optional, Tuple

import torch
from torch.nn.functional import one_hot


class Mix(NamedTuple):
    share: float  # of the image itself: of its pixels in mixup, of its area in CutMix
    box: Optional[Tuple[int, int, int, int]]  # CutMix: top, left, bottom, right; None: mixup


def draw(key: str, mixup: float, cutmix: float, height: int, width: int) -> Mix:
    """What `key` alone decides, for alphas of which one at least is above 0; with both, each is drawn
    with a probability of 1/2."""
    numbers = random.Random(key)
    cuts = cutmix > 0 and (mixup <= 0 or numbers.random() < 0.5)
    alpha = cutmix if cuts else mixup
    share = numbers.betavariate(alpha, alpha)
    if not cuts:
        return Mix(share, None)
    half = 0.5 * math.sqrt(1 - share)
    x, y, half_x, half_y = numbers.randrange(width), numbers.randrange(height), int(half * width), int(half * height)
    top, bottom = max(y - half_y, 0), min(y + half_y, height)
    left, right = max(x - half_x, 0), min(x + half_x, width)
    return Mix(1 - (bottom - top) * (right - left) / (height * width), (top, left, bottom, right))


def apply(mix: Mix, images: torch.Tensor, targets: torch.Tensor, classes: int, channels_last: bool) -> torch.Tensor:
    """Mixes images [n, c, h, w], or [n, h, w, c] where channels_last, in place. Returns the soft
    targets, float32 [n, classes]."""
    if mix.box is None:
        others = images.roll(1, 0)
        images.mul_(mix.share).add_(others, alpha=1 - mix.share)
    else:
        top, left, bottom, right = mix.box
        part = images[:, top:bottom, left:right] if channels_last else images[:, :, top:bottom, left:right]
        part.copy_(part.roll(1, 0))
    soft = one_hot(targets, classes).to(torch.float32)
    return soft.mul(mix.share).add_(soft.roll(1, 0), alpha=1 - mix.share)
