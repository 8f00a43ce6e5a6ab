# SPDX-License-Identifier: BSD-2-Clause
"""Training steps a second in PyTorch, channels last, for comparison with bench_train.c:

    bench_train.py ARCH SIZE BATCH THREADS STEPS

SIZE is PIXELS, or FRAMESxPIXELS of clips and volumes. The same networks as network/arch.c (unet and unet3d_small with 3
classes, of each pixel), the same work: bytes to normalized floats, forward, backward, SGD, the loss's value.
"""
import pathlib
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "network"))
import make_vectors


class Block(nn.Module):
    def __init__(self, fan_in, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or fan_in != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(fan_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def small_resnet(width, stem_stride, pool, blocks, classes):
    layers = [nn.Conv2d(3, width, 3, stem_stride, 1, bias=False), nn.BatchNorm2d(width),
              nn.ReLU(inplace=True)]
    if pool:
        layers.append(nn.MaxPool2d(3, 2, 1))
    fan_in = width
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Block(fan_in, width << stage, 2 if stage and not i else 1))
            fan_in = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(fan_in, classes))


def convnet(classes):
    layers, fan_in = [], 3
    for stage in range(3):
        for _ in range(2):
            out = 32 << stage
            layers += [nn.Conv2d(fan_in, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
                       nn.ReLU(inplace=True)]
            fan_in = out
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(fan_in, classes))


def convcolumn(frames, pixels, classes):
    layers, fan_in = [], 3
    for i, out in enumerate((64, 128, 256, 256)):
        layers += [nn.Conv3d(fan_in, out, 3, 1, 1), nn.BatchNorm3d(out), nn.ELU(), nn.MaxPool3d((2 if i else 1, 2, 2))]
        fan_in = out
    left = fan_in * (frames // 8) * (pixels // 16) ** 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(left, 512), nn.ELU(), nn.Linear(512, classes))


DENSE = {"unet": make_vectors.UNet, "unet3d_small": make_vectors.UNet3D}


def network(arch, frames, pixels, classes):
    if arch in DENSE:
        return DENSE[arch]()
    if arch == "convcolumn":
        return convcolumn(frames, pixels, classes)
    if arch == "resnet10":
        return small_resnet(32, 2, True, [1, 1, 1, 1], classes)
    if arch == "resnet20":
        return small_resnet(16, 1, False, [3, 3, 3], classes)
    if arch == "convnet":
        return convnet(classes)
    import torchvision
    if arch == "vit_tiny":
        return torchvision.models.VisionTransformer(
            image_size=pixels, patch_size=8, num_layers=6, num_heads=3, hidden_dim=192, mlp_dim=768,
            num_classes=classes)
    if frames:
        return getattr(torchvision.models.video, arch)(num_classes=classes)
    return getattr(torchvision.models, arch)(num_classes=classes)


def main():
    arch = sys.argv[1]
    *frames, pixels = map(int, sys.argv[2].split("x"))
    batch, threads, steps = map(int, sys.argv[3:6])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layout = torch.channels_last_3d if frames else torch.channels_last
    net = network(arch, frames[0] if frames else 0, pixels, 10).to(memory_format=layout).train()
    optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9, weight_decay=1e-4, nesterov=True)
    images = torch.randint(0, 256, (batch, *frames, pixels, pixels, 3), dtype=torch.uint8)
    labels = torch.randint(0, 10, (batch,))
    if arch in DENSE:
        labels = torch.randint(0, make_vectors.CLASSES, (batch, *frames, pixels, pixels))
    ones = [1] * (len(frames) + 2)
    mean = torch.tensor([122.655, 116.535, 104.04]).view(1, 3, *ones)
    std = torch.tensor([59.415, 58.395, 58.65]).view(1, 3, *ones)
    started = processor = 0
    for i in range(steps + 3):
        if i == 3:
            started, processor = time.perf_counter(), time.process_time()
        x = images.movedim(-1, 1).float().sub_(mean).div_(std)
        optimizer.zero_grad(set_to_none=True)
        loss = make_vectors.loss_of(net, x, labels, 0)
        loss.backward()
        optimizer.step()
        value = loss.item()
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    print("%.2f images/s, %.1f ms of processor time each, loss %.4f"
          % (steps * batch / seconds, 1e3 * processor / (steps * batch), value))


main()
