# SPDX-License-Identifier: BSD-2-Clause
"""The same steps as steps.c in PyTorch:

    peer_steps.py DEVICE PRECISION,... ARCH OPTIMIZER PIXELS BATCH CLASSES STEPS RATE FOLDER

Draws weights, images and labels, writes them to FOLDER as steps.c reads them, and prints, for each precision from the
same weights on, a line "PRECISION LOSS" a step. In float32 (fp32: no TF32 either) the two agree
to 1e-3.
"""
import copy
import os
import sys

import torch

import peer_model


def train(net, x, y, device, precision, optimizer, steps, rate):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    net = net.to(device).to(memory_format=torch.channels_last).train()
    optimizer = peer_model.optimizer(optimizer, net, rate, 1e-4)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    scaled = {"enabled": precision == "fp16" and device != "cpu"}
    scaler = torch.amp.GradScaler("cuda", **scaled) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler(**scaled)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.split(":")[0], half or torch.bfloat16, enabled=half is not None):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print("%s %.7f" % (precision, loss.item()), flush=True)


def main():
    device, precisions, arch, optimizer = sys.argv[1:5]
    pixels, batch, classes, steps = map(int, sys.argv[5:9])
    rate, folder = float(sys.argv[9]), sys.argv[10]
    torch.manual_seed(1)
    net = peer_model.model(arch, pixels, classes)
    if hasattr(net, "heads"):  # zeros, by which all would hang on ten small steps
        torch.nn.init.normal_(net.heads.head.weight, std=0.05)
    tensors = [t.float().reshape(-1) for name, t in net.state_dict().items()
               if not name.endswith("num_batches_tracked")]
    images = torch.randint(0, 256, (batch, pixels, pixels, 3), dtype=torch.uint8)
    labels = torch.randint(0, classes, (batch,), dtype=torch.int32)
    for name, tensor in (("weights", torch.cat(tensors)), ("images", images), ("labels", labels)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(tensor.contiguous().numpy().tobytes())
    mean = torch.tensor([122.655, 116.535, 104.04]).view(1, 3, 1, 1)
    std = torch.tensor([59.415, 58.395, 58.65]).view(1, 3, 1, 1)
    x = ((images.permute(0, 3, 1, 2).float() - mean) / std).contiguous(memory_format=torch.channels_last).to(device)
    for precision in precisions.split(","):
        train(copy.deepcopy(net), x, labels.long().to(device), device, precision, optimizer, steps, rate)


main()
