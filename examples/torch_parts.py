# SPDX-License-Identifier: BSD-2-Clause
"""What the examples for PyTorch share: their options, networks, loaders and outcomes of images."""
import argparse
import importlib
import os
import sys

import torch
import torchvision
from torch import distributed
from torchvision import transforms

import dl2.study
from dl2.torch import IMAGENET_MEAN, IMAGENET_STD, Loader


def parser(description):
    made = argparse.ArgumentParser(description=description, epilog="* in a study, the study's; by itself, as given")
    made.add_argument("folder", nargs="?", help="the dataset *")
    made.add_argument("--out", default=".", help="folder for result.json [.] *")
    made.add_argument("--batch", type=int, default=64, help="images in a batch of one process [64] *")
    made.add_argument("--size", type=int, default=224, help="pixels of an image's side [224] *")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="*")
    made.add_argument("--network", default="resnet18",
                      help="one of torchvision's, or MODULE:FUNCTION, called with the number of classes [resnet18]")
    made.add_argument("--weights", help="its state_dict or checkpoint.pt; in training, what doesn't fit, such as a last layer, is new")
    made.add_argument("--imagefolder", action="store_true", help="load by torchvision's ImageFolder [dl2.torch.Loader]")
    made.add_argument("--amp", action="store_true", help="compute in bfloat16 where it is exact enough")
    return made


def add_crops(made):
    made.add_argument("--crop-area", type=float, default=0.08, help="smallest part of an image that a training crop covers [0.08]")


def run_of(made, options, **more):
    """Where a study's training is, or the options are."""
    run = dl2.study.run(out=options.out, batch=options.batch, image_size=options.size, device=options.device, **more)
    if not run.val:
        made.error("which FOLDER?")
    os.makedirs(run.out, exist_ok=True)
    return run


def load(options, run, path, train, device):
    """Batches (images, targets, ...); in validation, images in the order of keys()."""
    if not options.imagefolder:
        return Loader(path, run.batch, run.image_size, train=train, drop_last=train, seed=run.seed or 0, device=device,
                      layout="channels_last", indices=True, **({"area": (options.crop_area, 1)} if train else {}))
    crop = [transforms.RandomResizedCrop(run.image_size, (options.crop_area, 1)), transforms.RandomHorizontalFlip()] if train else [
        transforms.Resize(run.image_size * 8 // 7), transforms.CenterCrop(run.image_size)]
    split = os.path.join(path, "train" if train else "val")
    data = torchvision.datasets.ImageFolder(split if os.path.isdir(split) else path, transforms.Compose([
        *crop, transforms.ToTensor(), transforms.Normalize(IMAGENET_MEAN, IMAGENET_STD)]))
    return torch.utils.data.DataLoader(data, run.batch, shuffle=train, drop_last=train)


def build(options, classes, training):
    module, colon, name = options.network.partition(":")
    if colon:
        sys.path.insert(0, "")
        network = getattr(importlib.import_module(module), name)(classes)
    else:
        network = getattr(torchvision.models, module)(num_classes=classes)
    return fill(options, network, training)


def fill(options, network, training):
    """Puts the file of weights into a network, in training as far as they fit."""
    if options.weights:
        own, given = network.state_dict(), torch.load(options.weights, map_location="cpu")
        given = given[1]["model"] if isinstance(given, tuple) else given  # train_torch.py's checkpoint
        new = [name for name in own if name not in given or given[name].shape != own[name].shape] if training else []
        if len(new) > len(own) / 2:
            sys.exit(f"{options.weights} has {len(own) - len(new)} of the {len(own)} tensors of {options.network}: another network's?")
        network.load_state_dict({**given, **{name: own[name] for name in new}}, strict=not new)
        print(f"{options.weights}: {len(own) - len(new)} of {len(own)} tensors; new: {', '.join(new) or 'none'}", flush=True)
    return network


def keys(loader):
    data = loader.dataset
    return [path for path, _ in data.samples] if isinstance(data, torchvision.datasets.ImageFolder) else data.keys


def outcomes(options, network, loader, device):
    """Whether each image is right, by its key; those of all processes. An image that cannot be read has none."""
    names, found, at = keys(loader), {}, 0
    network.eval()
    with torch.no_grad(), torch.autocast(device.split(":")[0], torch.bfloat16, enabled=options.amp):
        for images, targets, *more in loader:
            if len(images):  # a rank's last batch may be empty
                right = (network(images.to(device)).argmax(1) == targets.to(device)).tolist()
                numbers = more[0]["indices"].tolist() if more else range(at, at + len(images))
                found.update((names[i], value) for i, value, target in zip(numbers, right, targets.tolist()) if target >= 0)
                at += len(images)
    if not distributed.is_initialized():
        return found
    parts = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, found)
    return {key: value for part in parts for key, value in part.items()}
