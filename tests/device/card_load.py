# SPDX-License-Identifier: BSD-2-Clause
"""How fast dl2.torch loads a folder of JPEGs, by who decodes, for device.py.

    card_load.py FOLDER SIZE BATCH WORKERS DEVICE DECODE...
        DECODE: cpu, gpu, hybrid

Prints a line of JSON: images/s of the second epoch of each, float32 on the device; and for those on a card, what the
image that is furthest from the processors' is off by, in gray levels in the mean. For that, crops are so small that
nobody decodes at a lower resolution.
"""
import json
import sys
import time

import torch
from dl2.torch import Loader


def images_per_second(loader, device):
    for epoch in range(2):
        loader.set_epoch(epoch)
        began, count = time.perf_counter(), 0
        for images, _ in loader:
            count += len(images)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
    return count / (time.perf_counter() - began)


def off_by(folder, size, batch, workers, device, decode):
    given = {"dtype": "uint8", "layout": "NHWC", "split": "all", "area": (0.01, 0.02), "workers": workers}
    loaders = [Loader(folder, batch, 2 * size, **given), Loader(folder, batch, 2 * size, device=device, decode=decode, **given)]
    worst = 0
    for (theirs, labels), (ours, targets), _ in zip(*loaders, range(4)):
        assert labels.tolist() == targets.tolist()
        worst = max(worst, float((ours.cpu().float() - theirs.float()).abs().mean(dim=(1, 2, 3)).max()))
    return worst


def main():
    folder, size, batch, workers, device, *ways = sys.argv[1:]
    size, batch, workers = int(size), int(batch), int(workers)
    found = {"images/s": {}, "off by": {}}
    for way in ways:
        more = {} if way == "cpu" else {"decode": way}
        loader = Loader(folder, batch, size, split="all", workers=workers, device=device, **more)
        found["images/s"][way] = images_per_second(loader, device)
        if more:
            found["off by"][way] = off_by(folder, size, batch, workers, device, way)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
