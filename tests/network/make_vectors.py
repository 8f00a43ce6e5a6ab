# SPDX-License-Identifier: BSD-2-Clause
"""Golden vectors of whole networks, made with PyTorch (Debian's python3-torch):

    /usr/bin/python3 make_vectors.py convnet > vectors-convnet.txt
    /usr/bin/python3 make_vectors.py resnet20 > vectors-resnet20.txt
    /usr/bin/python3 make_vectors.py convcolumn > vectors-convcolumn.txt
    /usr/bin/python3 make_vectors.py unet > vectors-unet.txt
    /usr/bin/python3 make_vectors.py unet3d_small > vectors-unet3d_small.txt

The networks are network/arch.c's, on 8x8 (resnet20, unet: 16x16) images, clips of 8 frames of 16x16, or a volume of
32x64x64, in 3 classes, in double precision, with label smoothing and
weight decay on weights of convolutions and linear layers only. The numbers that go in come from a formula that the test
repeats (`fill`), so that only results are stored: the loss, a digest of every gradient, and, after three steps, a digest of
every tensor. A digest is the sum of the elements times the same formula's numbers, and the sum of squares. For convnet,
the losses and tensors of other ways of training follow: RMSprop, clipped gradients, and all but the last layer frozen.
"""
import sys

import torch
from torch import nn

BATCH, CLASSES = 4, 3


def fill(count, seed):
    """(k * 7919 + seed * 104729) mod 2003 / 1001.5 - 1, for k = 0, 1, ..."""
    k = torch.arange(count, dtype=torch.int64)
    return ((k * 7919 + seed * 104729) % 2003).double() / 1001.5 - 1


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        fan_in = 3
        for stage in (1, 2, 3):
            out = 16 << stage
            inner = nn.Module()
            for i in (1, 2):
                setattr(inner, "conv%d" % i, nn.Conv2d(fan_in, out, 3, 1, 1, bias=False))
                setattr(inner, "bn%d" % i, nn.BatchNorm2d(out))
                fan_in = out
            setattr(self, "stage%d" % stage, inner)
        self.fc = nn.Linear(fan_in, CLASSES)

    def forward(self, x):
        for inner in (self.stage1, self.stage2, self.stage3):
            x = torch.relu(inner.bn1(inner.conv1(x)))
            x = torch.relu(inner.bn2(inner.conv2(x)))
            x = nn.functional.max_pool2d(x, 2)
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    """He et al. 2015's, with a projection where the shape changes; torchvision's names."""

    def __init__(self, fan_in, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or fan_in != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(fan_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(Block(16, 16, 1) for _ in range(3)))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class ConvColumn(nn.Module):
    """GulpIO-benchmarks'."""

    def __init__(self):
        super().__init__()
        fan_in = 3
        for i, out in enumerate((64, 128, 256, 256)):
            time = 2 if i else 1
            setattr(self, "conv_layer%d" % (i + 1), nn.Sequential(
                nn.Conv3d(fan_in, out, 3, 1, 1), nn.BatchNorm3d(out), nn.ELU(), nn.MaxPool3d((time, 2, 2))))
            fan_in = out
        self.fc5 = nn.Linear(256, 512)
        self.fc6 = nn.Linear(512, CLASSES)

    def forward(self, x):
        x = self.conv_layer4(self.conv_layer3(self.conv_layer2(self.conv_layer1(x))))
        return self.fc6(nn.functional.elu(self.fc5(x.flatten(1))))


class DoubleConv(nn.Module):
    def __init__(self, fan_in, out):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(fan_in, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    """Ronneberger et al. 2015's, with padding and batch norm; milesial's names, half the channels."""

    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(3, 32)
        for i in range(4):
            down = nn.Module()
            down.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(32 << i, 64 << i))
            setattr(self, "down%d" % (i + 1), down)
        for i in range(4):
            up = nn.Module()
            up.up = nn.ConvTranspose2d(512 >> i, 256 >> i, 2, 2)
            up.conv = DoubleConv(512 >> i, 256 >> i)
            setattr(self, "up%d" % (i + 1), up)
        self.outc = nn.Module()
        self.outc.conv = nn.Conv2d(32, CLASSES, 1)

    def forward(self, x):
        skips = [self.inc(x)]
        for down in (self.down1, self.down2, self.down3, self.down4):
            skips.append(down.maxpool_conv(skips[-1]))
        x = skips.pop()
        for up in (self.up1, self.up2, self.up3, self.up4):
            x = up.conv(torch.cat([skips.pop(), up.up(x)], 1))
        return self.outc.conv(x)


def volume_block(fan_in, out, stride):
    block = nn.Module()
    for i in (1, 2):
        setattr(block, "conv%d" % i, nn.Sequential(
            nn.Conv3d(fan_in, out, 3, stride if i == 1 else 1, 1, bias=False), nn.InstanceNorm3d(out, affine=True), nn.ReLU()))
        fan_in = out
    return block


class UNet3D(nn.Module):
    """MLPerf Training's, with a quarter of the channels."""

    def __init__(self):
        super().__init__()
        filters = [8, 16, 32, 64, 80]
        self.input_block = volume_block(3, filters[0], 1)
        self.downsample = nn.ModuleList(volume_block(i, o, 2) for i, o in zip(filters, filters[1:]))
        self.bottleneck = volume_block(filters[-1], filters[-1], 2)
        self.upsample = nn.ModuleList()
        for fan_in, out in zip([80, 80, 64, 32, 16], reversed(filters)):
            block = nn.Module()
            block.upsample_conv = nn.Sequential(nn.ConvTranspose3d(fan_in, out, 2, 2))
            inner = volume_block(2 * out, out, 1)
            block.conv1, block.conv2 = inner.conv1, inner.conv2
            self.upsample.append(block)
        self.output = nn.Module()
        self.output.conv = nn.Sequential(nn.Conv3d(filters[0], CLASSES, 1))

    def forward(self, x):
        skips = []
        for block in (self.input_block, *self.downsample, self.bottleneck):
            skips.append(block.conv2(block.conv1(x)))
            x = skips[-1]
        skips.pop()
        for block in self.upsample:
            x = block.conv2(block.conv1(torch.cat([block.upsample_conv(x), skips.pop()], 1)))
        return self.output.conv(x)


def dice_loss(logits, labels):
    """MLPerf's, without the background (class 0), over the voxels that have a label."""
    axes = tuple(range(2, logits.dim()))
    counted = (labels >= 0).unsqueeze(1)
    p = (torch.softmax(logits, 1) * counted)[:, 1:]
    t = (nn.functional.one_hot(labels.clamp(min=0), CLASSES).movedim(-1, 1) * counted)[:, 1:]
    score = (2 * (t * p).sum(axes) + 1e-6) / (t.sum(axes) + p.sum(axes) + 1e-6)
    return (1 - score).mean()


def loss_of(net, inputs, labels, smoothing):
    logits = net(inputs)
    entropy = nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing, ignore_index=-1)
    return (entropy + dice_loss(logits, labels)) / 2 if isinstance(net, UNet3D) else entropy


# Frames of a clip (1: images), pixels, steps, batch.
NETWORKS = {"convnet": (ConvNet, 1, 8, 3, BATCH), "resnet20": (ResNet20, 1, 16, 1, BATCH),
            "convcolumn": (ConvColumn, 8, 16, 1, BATCH), "unet": (UNet, 1, 16, 1, BATCH),
            "unet3d_small": (UNet3D, 32, 64, 1, 1)}


def digest(tensor, seed):
    flat = tensor.detach().reshape(-1)
    return "%.12g %.12g" % ((flat * fill(flat.numel(), seed)).sum(), (flat * flat).sum())


def fill_state(net):
    with torch.no_grad():
        for i, (name, tensor) in enumerate(state_of(net).items()):
            values = fill(tensor.numel(), i + 1).reshape(tensor.shape)
            if tensor.dim() > 1:
                values = values * (2 / (tensor.numel() // tensor.shape[0])) ** 0.5
            elif name.endswith("running_var") or (".bn" in name or "conv" in name) and name.endswith(".weight"):
                values = 1 + 0.25 * values
            else:
                values = 0.1 * values
            if isinstance(net, (UNet, UNet3D)) and name.endswith(".weight") and tensor.dim() == 1:
                values = 0.15 * values
            elif isinstance(net, (UNet, UNet3D)) and name.endswith(".bias"):
                values = values + 1 - 2.0 * (torch.arange(tensor.numel()) % 2)
            tensor.copy_(values)


def watch_margins(net):
    """
    Rounding decides on the sign of a ReLU's input near 0, and on the greater of two equal inputs of a maximum, and either
    changes gradients by percents: a float32 network that is right differs then. Norms of U-Nets have small weights and
    biases of 1 and -1 (fill_state), and here it is asserted that no input came nearer than 20 times float32's rounding.
    """
    def relu(module, inputs):
        assert inputs[0].abs().min() > 2e-5, "a ReLU's input is %g" % inputs[0].abs().min()

    def maximum(module, inputs):
        n, c, h, w = inputs[0].shape
        windows = inputs[0].reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 4).reshape(-1, 4)
        first, second = windows.topk(2, 1)[0].unbind(1)
        gap = (first - second)[first > 0].min()
        assert gap > 2e-6, "two inputs of a maximum differ by %g" % gap
    return [module.register_forward_pre_hook(relu if isinstance(module, nn.ReLU) else maximum)
            for module in net.modules() if isinstance(module, (nn.ReLU, nn.MaxPool2d))]


def state_of(net):
    return {k: v for k, v in net.state_dict().items() if "num_batches" not in k}


def groups_of(net):
    """Weight decay for weights alone. An optimizer keeps its settings in these: each needs its own."""
    return [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.01},
            {"params": [p for p in net.parameters() if p.dim() == 1]}]


def train(net, inputs, labels, optimizer, steps=3, gradients=False, limit=None):
    """Prints the losses, with `gradients` those of the first step, and the tensors that it comes to."""
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net, inputs, labels, 0.1)
        loss.backward()
        print("loss", "%.12g" % loss.item())
        if step == 0 and gradients:
            for name, tensor in net.named_parameters():
                print("gradient", name, digest(tensor.grad, 7))
        if limit:
            nn.utils.clip_grad_norm_(net.parameters(), limit)
        optimizer.step()
    for name, tensor in state_of(net).items():
        print("value", name, digest(tensor, 7))


def main():
    network, frames, pixels_a_side, steps, batch = NETWORKS[sys.argv[1]]
    net = network().double().train()
    fill_state(net)
    margins = watch_margins(net)
    # That seed from 99 to 1499 with which the inputs of ReLUs in resnet20's step keep farthest from 0: at least 5 times as
    # far as float32 is wrong there. Nearer ones change gradients by percents where rounding decides on their sign.
    pixels = ((fill(batch * frames * pixels_a_side ** 2 * 3, 723) + 1) * 127).floor()
    images = pixels.reshape(batch, frames, pixels_a_side, pixels_a_side, 3).permute(0, 4, 1, 2, 3)
    mean = torch.tensor([122.0, 116.0, 104.0]).double().view(1, 3, 1, 1, 1)
    std = torch.tensor([59.0, 58.0, 60.0]).double().view(1, 3, 1, 1, 1)
    inputs = (images - mean) / std
    if frames == 1:
        inputs = inputs[:, :, 0]
    labels = torch.tensor([0, 2, 1, 2])
    if "unet" in sys.argv[1]:  # of each pixel; every eleventh has none
        k = torch.arange(batch * frames * pixels_a_side ** 2)
        labels = torch.where(k % 11 == 3, torch.tensor(-1), (k // 5 + k // 37) % 3)
        labels = labels.reshape((batch,) + (frames,) * (frames > 1) + (pixels_a_side,) * 2)
    train(net, inputs, labels, torch.optim.SGD(groups_of(net), 0.01, momentum=0.9, nesterov=True), steps, True)
    net.eval()
    for hook in margins:
        hook.remove()
    loss = loss_of(net, inputs, labels, 0)
    print("evaluation", "%.12g" % loss.item())
    if sys.argv[1] != "convnet":
        return
    net.train()
    fill_state(net)
    print("rmsprop", 0)
    train(net, inputs, labels, torch.optim.RMSprop(groups_of(net), 1e-3, 0.9, 1e-2, momentum=0.5))
    fill_state(net)
    print("clip", 0)
    train(net, inputs, labels, torch.optim.SGD(groups_of(net), 0.05, momentum=0.9), limit=0.25)
    fill_state(net)
    print("freeze", 0)
    net.eval()
    for name, tensor in net.named_parameters():
        tensor.requires_grad_(name.startswith("fc."))
        tensor.grad = None
    train(net, inputs, labels, torch.optim.SGD(groups_of(net), 0.2, momentum=0.9))


if __name__ == "__main__":
    main()
