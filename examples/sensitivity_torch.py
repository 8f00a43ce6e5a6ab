#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sensitivity_torch.py FOLDER: measures how much the loss of a network depends on its input.

    python3 sensitivity_torch.py photos --network resnet18 --weights run/checkpoint.pt --out run
    dl2-transcode fit-tables --sensitivity run/sensitivity.json photos network.json

writes OUT/sensitivity.json, from crops as the network is trained on. Without --weights, the network is
OUT/checkpoint.pt, as train_torch.py has left it: so it serves a study as SENSITIVITY_WITH (docs/your-network.md).
Where there is none, a MODULE:FUNCTION is measured with the weights that it comes with.
"""
import os

import dl2
import dl2.study
import torch_parts
from dl2.torch import IMAGENET_STD

parser = torch_parts.parser("Measure how much the loss of a network depends on its input.")
parser.add_argument("--limit", type=int, default=1024, help="images to measure with, at most [1024]")
parser.add_argument("--split", default="train", choices=("train", "val", "test", "all"), help="whose images [train]")
torch_parts.add_crops(parser)
options = parser.parse_args()
run = torch_parts.run_of(parser, options, data=options.folder, val=options.folder)
if options.imagefolder and options.split != "train":
    parser.error("--imagefolder reads the images of train")
left = os.path.join(run.out, "checkpoint.pt")
if not options.weights and (os.path.exists(left) or ":" not in options.network):
    options.weights = left
images = torch_parts.load(options, run, run.data if options.imagefolder else dl2.Dataset(run.data, options.split), True, run.device)
network = torch_parts.build(options, len(images.dataset.classes), False).to(run.device)
found = dl2.study.sensitivity(network, images, os.path.join(run.out, "sensitivity.json"), std=IMAGENET_STD, limit=options.limit,
                              arch=options.network, weights=options.weights or "as " + options.network + " makes them", data=run.data)
print(f"{run.out}/sensitivity.json: from {found['images']} images")
