# SPDX-License-Identifier: BSD-2-Clause
"""What PyTorch trains a second, as well as it can: channels last, automatic mixed precision, cuDNN's fastest algorithms,
the fused optimizer. For device.py:

    peer_train.py ARCH [--mode eager|compile] [--device cuda] [--amp bf16|fp16|off] [--batch 256] [--size 224] [--rounds 3]
                  [--steps 40] [--data FOLDER --workers N]

When it is warm, it prints a JSON object {"images_per_second", "loss", "data_stall"} for each round of so many steps. Without
--data on images that lie on the device already, which is less than dl2 does, whose noise goes through the host's memory. With
it on those of FOLDER/CLASS/..., by torchvision's transforms and PyTorch's DataLoader: random crop to SIZE, flip, bytes that are
normalized on the device.
"""
import argparse
import json
import time

import torch

import peer_model

MEAN = [122.655, 116.535, 104.04]
STD = [59.415, 58.395, 58.65]


def batches(args):
    """Endless (images, labels) on the device, and how long each was waited for."""
    if not args.data:
        images = torch.randn(args.batch, 3, args.size, args.size, device=args.device)
        images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, args.classes, (args.batch,), device=args.device)
        while True:
            yield images, labels, 0.0
    from torchvision import datasets, transforms

    data = datasets.ImageFolder(args.data, transforms.Compose([
        transforms.RandomResizedCrop(args.size), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]))
    loader = torch.utils.data.DataLoader(data, args.batch, shuffle=True, drop_last=True, num_workers=args.workers,
                                         pin_memory=args.device != "cpu", persistent_workers=args.workers > 0)
    mean = torch.tensor(MEAN, device=args.device).view(1, 3, 1, 1)
    std = torch.tensor(STD, device=args.device).view(1, 3, 1, 1)
    while True:
        iterator = iter(loader)
        while True:
            started = time.perf_counter()
            batch = next(iterator, None)
            waited = time.perf_counter() - started
            if batch is None:
                break
            images = batch[0].to(args.device, non_blocking=True).to(memory_format=torch.channels_last)
            yield (images.float() - mean) / std, batch[1].to(args.device, non_blocking=True), waited


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("arch")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--amp", choices=["bf16", "fp16", "off"], default="bf16")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--data")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.amp != "off"
    on_card = args.device != "cpu"
    net = peer_model.model(args.arch, args.size, args.classes)
    net = net.to(args.device).to(memory_format=torch.channels_last).train()
    try:
        optimizer = peer_model.optimizer("sgd", net, 0.01, 1e-4, fused=on_card)
    except TypeError:  # PyTorch before 2.3
        optimizer = peer_model.optimizer("sgd", net, 0.01, 1e-4)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.amp)
    scaled = {"enabled": args.amp == "fp16" and on_card}
    scaler = torch.amp.GradScaler("cuda", **scaled) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler(**scaled)
    model = torch.compile(net) if args.mode == "compile" else net

    def step(images, labels):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda" if on_card else "cpu", half or torch.bfloat16, enabled=half is not None):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    source = batches(args)
    for _ in range(args.warmup):
        images, labels, _ = next(source)
        step(images, labels).item()
    for _ in range(args.rounds):
        waited, started = 0.0, time.perf_counter()
        for _ in range(args.steps):
            images, labels, wait = next(source)
            waited += wait
            loss = step(images, labels)
        value = loss.item()  # waits for the device
        seconds = time.perf_counter() - started
        print(json.dumps({"images_per_second": args.steps * args.batch / seconds, "loss": value,
                          "data_stall": waited / seconds}), flush=True)


main()
