#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Augmentations of dl2 and of torchvision on one photograph at 224x224, on one core, in turns:
microseconds of CPU time an image, the best of all rounds.

Usage: compare_augment.py BENCH_AUGMENT PHOTO [ROUNDS]
"""
import subprocess
import sys
import tempfile
import time
import warnings

from PIL import Image

warnings.filterwarnings("ignore")
import torch
from torchvision import transforms as T

PAIRS = {
    "randaugment": T.RandAugment(),
    "trivialaugment": T.TrivialAugmentWide(),
    "autoaugment": T.AutoAugment(),
    "jitter:brightness=0.4:contrast=0.4:saturation=0.4": T.ColorJitter(0.4, 0.4, 0.4),
    "jitter:brightness=0.4:contrast=0.4:saturation=0.4:hue=0.1": T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "blur:p=1:kernel=23": T.GaussianBlur(23, (0.1, 2.0)),
    "rotate:degrees=30": T.RandomRotation(30),
    "equalize:p=1": T.RandomEqualize(1),
}
IMAGES = 200


def of_torchvision(transform, image):
    start = time.process_time()
    for _ in range(IMAGES):
        transform(image)
    return 1e6 * (time.process_time() - start) / IMAGES


torch.set_num_threads(1)
photo = Image.open(sys.argv[2]).convert("RGB").resize((224, 224))
tensor = T.functional.pil_to_tensor(photo)
best = {}
with tempfile.NamedTemporaryFile() as raw:
    raw.write(photo.tobytes())
    raw.flush()
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        ours = subprocess.run([sys.argv[1], raw.name, *PAIRS], check=True, capture_output=True, text=True).stdout
        for line in ours.splitlines():
            name, microseconds = line.split()
            torch.manual_seed(1)
            row = (float(microseconds), of_torchvision(PAIRS[name], photo), of_torchvision(PAIRS[name], tensor))
            best[name] = [min(pair) for pair in zip(row, best.get(name, row))]
print(f"{'':60s} {'dl2':>8s} {'Pillow':>8s} {'tensor':>8s}  times as fast")
for name, (ours, pillow, tensor) in best.items():
    print(f"{name:60s} {ours:8.1f} {pillow:8.1f} {tensor:8.1f}  {min(pillow, tensor) / ours:.1f}")
