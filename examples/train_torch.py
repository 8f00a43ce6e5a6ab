#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""train_torch.py FOLDER: trains or fine-tunes a network on a folder of images with PyTorch.

    python3 train_torch.py photos --epochs 30
    python3 train_torch.py photos --network mobilenet_v3_small --weights weights.pth --rate 0.01
    python3 train_torch.py variants/jpeg-50 --val photos --seed 2 --out runs/jpeg-50/seed-2
    torchrun --nproc_per_node 4 train_torch.py photos       # four processes share each epoch

OUT/checkpoint.pt has the network: if a run was stopped, the same command continues it after its
last whole epoch. OUT/result.json has the top-1 accuracy after the last epoch, OUT/outcomes.csv each
image's, and OUT/epochs.jsonl of each epoch loss, accuracy, images, seconds of training, and of these
the seconds that it waited for images. In a study, dl2.study tells it where it is, and the study leaves
its checkpoint to it (docs/your-network.md).
"""
import os
import time

import torch
from torch import distributed, nn

import torch_parts

parser = torch_parts.parser("Train or fine-tune a network on a folder of images.")
parser.add_argument("--val", help="dataset to validate on [FOLDER] *")
parser.add_argument("--seed", type=int, default=1, help="of weights, order and crops [1] *")
parser.add_argument("--epochs", type=int, default=10, help="[10] *")
parser.add_argument("--rate", type=float, default=0.05, help="highest learning rate [0.05]")
torch_parts.add_crops(parser)
options = parser.parse_args()
run = torch_parts.run_of(parser, options, data=options.folder, val=options.val or options.folder, seed=options.seed,
                         epochs=options.epochs)
device = run.device
if "RANK" in os.environ:  # torchrun
    if options.imagefolder:
        parser.error("several processes share an epoch of dl2.torch.Loader alone")
    distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
leads = not distributed.is_initialized() or distributed.get_rank() == 0
world = distributed.get_world_size() if distributed.is_initialized() else 1
kind = device.split(":")[0]
torch.manual_seed(run.seed)
torch.backends.cudnn.benchmark = True

train = torch_parts.load(options, run, run.data, True, device)
val = torch_parts.load(options, run, run.val, False, device)
classes = list(train.dataset.classes)
if list(val.dataset.classes) != classes:
    parser.error(f"{run.val} has other classes than {run.data}")
model = torch_parts.build(options, len(classes), True).to(device, memory_format=torch.channels_last)
replica = nn.parallel.DistributedDataParallel(model) if distributed.is_initialized() else model
optimizer = torch.optim.SGD(model.parameters(), options.rate, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=run.epochs * len(train))
parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
checkpoint, first = os.path.join(run.out, "checkpoint.pt"), 0
if os.path.exists(checkpoint):
    first, states = torch.load(checkpoint, map_location="cpu")
    for name, part in parts.items():
        part.load_state_dict(states[name])

right = None
for epoch in range(first, run.epochs):
    torch.manual_seed(run.seed + (epoch << 32))  # a run that continues draws as one that was not stopped
    if not options.imagefolder:
        train.set_epoch(epoch)
    replica.train()
    seen, waited, began = 0, 0.0, time.perf_counter()
    asked = began
    for images, targets, *_ in train:
        waited += time.perf_counter() - asked
        with torch.autocast(kind, torch.bfloat16, enabled=options.amp):
            loss = nn.functional.cross_entropy(replica(images.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        seen += world * len(images)
        asked = time.perf_counter()
    last_loss = loss.item()  # waits for the device
    seconds = time.perf_counter() - began
    right = torch_parts.outcomes(options, model, val, device)
    top1 = sum(right.values()) / len(right)
    run.epoch(epoch, top1, seconds=seconds, images=seen, loss=last_loss, wait_seconds=waited)
    if leads:
        torch.save((epoch + 1, {name: part.state_dict() for name, part in parts.items()}), checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
        print(f"epoch {epoch}: loss {last_loss:.3f}, top-1 {top1:.3f} of {len(right)} images", flush=True)
if right is None:
    right = torch_parts.outcomes(options, model, val, device)
run.outcomes(right.keys(), right.values())
if run.original and run.original != run.val:
    other = torch_parts.outcomes(options, model, torch_parts.load(options, run, run.original, False, device), device)
    run.outcomes(other.keys(), other.values(), original=True)
run.finish("top1")
