# SPDX-License-Identifier: BSD-2-Clause
"""Networks here and in torchvision: the same tensors, logits and losses.

    compare_torchvision.py SHOW_NETWORK FOLDER COMPARISON...

Weights go through FOLDER. A comparison is one argument of several words:

    tensors ARCH...                 names and shapes
    from ARCH SIZE                  torchvision's weights, our logits
    to ARCH SIZE                    ours, trained; torchvision's logits
    losses ARCH SIZE OPTIMIZER      ten steps
    strict ARCH FILE                does it load?

SIZE is PIXELS, or FRAMESxPIXELS of clips.
"""

import subprocess
import sys

import numpy
import torch
import torchvision

import safetensors_file

CLASSES = 7
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64}
show, folder = sys.argv[1:3]
torch.set_num_threads(1)


def save(path, tensors):
    file = {}
    for name, tensor in tensors.items():
        dtype = next(key for key, value in DTYPES.items() if value == tensor.dtype)
        raw = bytes(tensor.contiguous().view(torch.uint8).numpy()) if tensor.dim() else \
            tensor.numpy().tobytes()
        file[name] = (dtype, tensor.shape, raw)
    safetensors_file.write(path, file)


def load(path):
    tensors = {}
    for name, (dtype, shape, raw) in safetensors_file.read(path).items():
        assert dtype == "F32", name
        tensors[name] = torch.from_numpy(numpy.frombuffer(raw, dtype="<f4").copy()).reshape(shape)
    return tensors


def run(*arguments):
    """Lines of show_network, by their first word."""
    done = subprocess.run([show, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    lines = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        lines.setdefault(key, []).append(value)
    return lines


def images(batch, size):
    *frames, pixels = map(int, size.split("x"))
    shape = [batch, *frames, pixels, pixels, 3]
    i = numpy.arange(numpy.prod(shape), dtype=numpy.int64)
    x = ((i * 7919 + i // 977 * 104729) % 251).reshape(shape)
    x = (x - numpy.array([122.5, 116.5, 104])) / numpy.array([59.5, 58.5, 58])
    return torch.from_numpy(x.astype("float32")).movedim(-1, 1).contiguous()


def family(arch):
    return torchvision.models.video if arch == "r3d_18" else torchvision.models


class GatedBottleneck(torchvision.models.resnet.Bottleneck):
    """ResNeXt's with squeeze and excitation, in timm's order and names."""

    def __init__(self, fan_in, planes, *arguments, **named):
        super().__init__(fan_in, planes, *arguments, **named)
        self.se = torchvision.ops.SqueezeExcitation(4 * planes, planes // 4)
        if self.downsample:
            self.downsample = self._modules.pop("downsample")  # the last

    def forward(self, x):
        y = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        return self.relu(self.se(self.bn3(self.conv3(y))) + (self.downsample(x) if self.downsample else x))


def conv_norm(module, name, number, fan_in, out, kernel=1, stride=1, groups=1):
    module.add_module(name, torch.nn.Conv2d(fan_in, out, kernel, stride, kernel // 2, groups=groups, bias=False))
    module.add_module(f"bn{number}", torch.nn.BatchNorm2d(out))


class LiteBlock(torch.nn.Module):
    def __init__(self, fan_in, expansion, kernel, stride, out):
        super().__init__()
        inner, more, self.same = expansion * fan_in, expansion > 1, stride == 1 and fan_in == out
        if more:
            conv_norm(self, "conv_pw", 1, fan_in, inner)
        conv_norm(self, "conv_dw", 1 + more, inner, inner, kernel, stride, inner)
        conv_norm(self, "conv_pwl" if more else "conv_pw", 2 + more, inner, out)

    def forward(self, x):
        y, layers = x, list(self.children())
        for conv, norm in zip(layers[:-2:2], layers[1:-2:2]):
            y = torch.nn.functional.relu6(norm(conv(y)))
        y = layers[-1](layers[-2](y))
        return x + y if self.same else y


class Lite0(torch.nn.Module):
    """timm's efficientnet_lite0, in its order and names."""

    def __init__(self):
        super().__init__()
        conv_norm(self, "conv_stem", 1, 3, 32, 3, 2)
        fan_in, stages = 32, []
        for expansion, kernel, stride, out, blocks in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
                                                       (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
            stages.append(torch.nn.Sequential(*(LiteBlock(out if i else fan_in, expansion, kernel, 1 if i else stride, out)
                                                for i in range(blocks))))
            fan_in = out
        self.blocks = torch.nn.Sequential(*stages)
        conv_norm(self, "conv_head", 2, fan_in, 1280)
        self.classifier = torch.nn.Linear(1280, CLASSES)

    def forward(self, x):
        x = self.blocks(torch.nn.functional.relu6(self.bn1(self.conv_stem(x))))
        return self.classifier(torch.nn.functional.relu6(self.bn2(self.conv_head(x))).mean((2, 3)))


def model(arch, size="224"):
    torch.manual_seed(1)
    if arch == "seresnext50_32x4d":
        return torchvision.models.ResNet(GatedBottleneck, [3, 4, 6, 3], CLASSES, groups=32, width_per_group=4)
    if arch == "efficientnet_lite0":
        return Lite0()
    if arch == "vit_tiny":
        net = torchvision.models.VisionTransformer(image_size=int(size), patch_size=8, num_layers=6, num_heads=3,
                                                   hidden_dim=192, mlp_dim=768, num_classes=CLASSES)
    elif arch.startswith("vit_"):
        net = getattr(torchvision.models, arch)(image_size=int(size), num_classes=CLASSES)
    else:
        return getattr(family(arch), arch)(num_classes=CLASSES)
    torch.nn.init.normal_(net.heads.head.weight, std=0.05)  # else all logits are 0
    return net


def close(got, want, what, within):
    got = numpy.array(got, dtype=float)
    worst = numpy.abs(got - want).max() / numpy.abs(want).max()
    print(f"{what}: {worst:.1e}")
    if not worst <= within:
        sys.exit(f"{what}: {got} instead of {want}")


def logits(net, x):
    net.eval()
    with torch.no_grad():
        return net(x).numpy().ravel()


def compare_tensors(*archs):
    for arch in archs:
        want = {name: list(tensor.shape) for name, tensor in model(arch).state_dict().items()
                if not name.endswith("num_batches_tracked")}
        lines = run("tensors", arch, CLASSES)
        got = {name: [int(n) for n in shape[0].split()] for name, shape in lines.items()}
        if list(got.items()) != list(want.items()):
            sys.exit(f"{arch}: {set(got) ^ set(want)} {[n for n in got if got[n] != want.get(n)]}")


def compare_from(arch, size):
    net, x, path = model(arch, size), images(3, size), f"{folder}/{arch}.safetensors"
    with torch.no_grad():
        for _ in range(3 if list(net.buffers()) else 0):  # running statistics that aren't those of no data
            net(x)
    want = logits(net, x)
    save(path, net.state_dict())
    close(run("logits", arch, CLASSES, size, 3, path)["logit"], want, f"{arch} here", 1e-4)


def compare_to(arch, size):
    net, path = model(arch, size), f"{folder}/{arch}.safetensors"
    got = run("sgd", arch, CLASSES, size, 3, "-", path)
    net.load_state_dict(load(path), strict=True)
    close(got["logit"], logits(net, images(3, size)), f"{arch} in torchvision", 1e-4)


def compare_losses(arch, size, optimizer):
    net, x, path = model(arch, size), images(16, size), f"{folder}/{arch}.safetensors"
    for name, p in net.named_parameters():
        if name.endswith("bn3.weight"):  # as they are, fifty layers make chaos of rounding, in PyTorch too
            torch.nn.init.constant_(p, 0.2)
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    save(path, net.state_dict())
    for module in net.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0
    # ReLUs whose input is zero but for rounding open or not: at rates of 1e-3, ten steps make of that differences
    # of 1e-2, between PyTorch's own float32 and float64 too. At this one the loss falls by a fifth at least.
    decayed = [p for p in net.parameters() if p.dim() in (2, 4, 5)]
    others = [p for p in net.parameters() if p.dim() not in (2, 4, 5)]
    groups = [{"params": decayed, "weight_decay": 1e-3}, {"params": others, "weight_decay": 0}]
    optimizer_of = {"sgd": lambda: torch.optim.SGD(groups, lr=3e-5, momentum=0.9),
                    "adamw": lambda: torch.optim.AdamW(groups, lr=3e-5, betas=(0.9, 0.99))}
    steps = optimizer_of[optimizer]()
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    labels, want = torch.arange(16) * 5 % CLASSES, []
    for _ in range(10):
        steps.zero_grad()
        loss = loss_of(net(x), labels)
        loss.backward()
        steps.step()
        want.append(loss.item())
    got = run(optimizer, arch, CLASSES, size, 16, path, f"{folder}/trained.safetensors")["loss"]
    print("losses", *(f"{loss:.4f}" for loss in want))
    worst = max(abs(float(g) - w) for g, w in zip(got, want))
    print(f"{arch}, ten steps of {optimizer}: losses within {worst:.1e}")
    after = load(f"{folder}/trained.safetensors")
    far, moved = (sum((tensors[name] - p).double().square().sum() for name, p in net.named_parameters()).sqrt().item()
                  for tensors in (after, before))
    print(f"weights apart by {far / moved:.1e} of what they moved")
    if len(got) != 10 or not worst <= 1e-3 or not far <= 0.1 * moved or not want[9] < want[0]:
        sys.exit(f"{arch}: losses {got} instead of {want}")


def compare_strict(arch, path):
    state = {k: v for k, v in load(path).items() if not k.startswith("momentum.")}
    net = getattr(family(arch), arch)(num_classes=len(state["fc.bias"]))
    net.load_state_dict(state, strict=True)


for comparison in sys.argv[3:]:
    what, *arguments = comparison.split()
    globals()[f"compare_{what}"](*arguments)
