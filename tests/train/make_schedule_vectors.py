#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes schedule_vectors.h: learning rates of PyTorch's own schedulers (python3-torch)."""
import torch
from torch.optim import lr_scheduler as s

LR, END, EPOCHS = 0.4, 0.01, 10


def rates(make, epochs):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    scheduler = make(optimizer)
    values = []
    for _ in range(epochs + 1):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


def show(name, values):
    print(f"static const double {name}[] = {{")
    for i in range(0, len(values), 4):
        print("    " + " ".join(f"{v:.17g}," for v in values[i:i + 4]))
    print("};")


print("/* Made by make_schedule_vectors.py with PyTorch " + torch.__version__ + ". */")
show("torch_cosine", rates(lambda o: s.CosineAnnealingLR(o, EPOCHS, END), EPOCHS))
show("torch_linear", rates(lambda o: s.LinearLR(o, 1.0, END / LR, EPOCHS), EPOCHS))
show("torch_exponential", rates(lambda o: s.ExponentialLR(o, (END / LR) ** (1 / EPOCHS)), EPOCHS))
show("torch_step", rates(lambda o: s.MultiStepLR(o, [30, 60, 80], 0.1), 90))
show("torch_warmup", rates(lambda o: s.LinearLR(o, 1 / 5, 1.0, 4), 5))
