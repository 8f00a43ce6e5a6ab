# SPDX-License-Identifier: BSD-2-Clause
"""Networks and optimizers as dl2 has them, for peer_steps.py and peer_train.py. As a program: the versions of PyTorch."""
import torch
import torchvision


def versions():
    return "PyTorch %s, torchvision %s, CUDA %s, cuDNN %s" % (
        torch.__version__, torchvision.__version__, torch.version.cuda, torch.backends.cudnn.version())


def model(arch, pixels, classes):
    if arch == "vit_tiny":  # dl2's, of torchvision's parts
        return torchvision.models.VisionTransformer(image_size=pixels, patch_size=8, num_layers=6, num_heads=3,
                                                    hidden_dim=192, mlp_dim=768, num_classes=classes)
    options = {"image_size": pixels} if arch.startswith("vit_") else {}
    return getattr(torchvision.models, arch)(num_classes=classes, **options)


def optimizer(name, net, rate, decay, **options):
    """Weight decay for weights of layers alone: those of two or four dimensions."""
    groups = [{"params": [p for p in net.parameters() if p.dim() in (2, 4)], "weight_decay": decay},
              {"params": [p for p in net.parameters() if p.dim() not in (2, 4)], "weight_decay": 0}]
    if name == "adamw":
        return torch.optim.AdamW(groups, rate, (0.9, 0.999), **options)
    return torch.optim.SGD(groups, rate, 0.9, **options)


if __name__ == "__main__":
    print(versions())
