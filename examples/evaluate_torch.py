#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""evaluate_torch.py FOLDER --network NAME --weights FILE: top-1 accuracy of a network as it is.

    python3 evaluate_torch.py variants/jpeg-50 --network resnet18 --weights resnet18.pth --out result

evaluates the images of `val`, or with --split all of them: FOLDER/val/CLASS/..., FOLDER/CLASS/... OUT/result.json
has the accuracy, outcomes.csv whether each image is right. Classes are in sorted order; with --classes FILE, a
line each in the order of the network's outputs, FOLDER may have a part of them.
"""
import torch

import dl2
import torch_parts

parser = torch_parts.parser("Evaluate a network as it is on a folder of images.")
parser.add_argument("--split", default="val", choices=("train", "val", "test", "all"), help="[val]")
parser.add_argument("--classes", help="file of the classes' names, in the order of the network's outputs")
options = parser.parse_args()
if options.imagefolder and options.split not in ("val", "all"):
    parser.error("--imagefolder reads the images of val, or all where there is no val")
run = torch_parts.run_of(parser, options, val=options.folder)
data = torch_parts.load(options, run, run.val if options.imagefolder else dl2.Dataset(run.val, options.split), False, run.device)
outputs = own = list(data.dataset.classes)
if options.classes:
    with open(options.classes, encoding="utf-8") as file:
        outputs = [line for line in file.read().splitlines() if line]
if unknown := [name for name in own if name not in outputs]:
    parser.error(f"{options.classes} lacks {unknown[0]!r} of {run.val}")
picked = [outputs.index(name) for name in own]
order = picked + [i for i in range(len(outputs)) if i not in picked]
network = torch_parts.build(options, len(outputs), False).to(run.device).eval()


class Ordered(torch.nn.Module):
    """The outputs of the classes at hand first: all others can be chosen, too, and are wrong."""

    def forward(self, images):
        return network(images)[:, order]


right = torch_parts.outcomes(options, Ordered(), data, run.device)
run.outcomes(right.keys(), right.values())
result = run.finish("top1")
print(f"top-1 {result['value']:.4f} of {len(right)} images")
