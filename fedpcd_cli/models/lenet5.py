"""LeNet-5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.models.image_shape import conv5_pool_side, require_image

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class LeNet5(ModelSpec):
    """LeNet-5 (LeCun et al., 1998), with ReLU and max pooling as federated-learning code uses it.

    The first convolution is padded to 32 pixels' worth for 28-pixel images, both are for smaller ones.
    """

    name = "lenet5"
    summary = "LeNet-5 with ReLU and max pooling"

    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        from torch import nn

        channels, height, width = require_image(self.name, sample_shape, 4)
        side = min(height, width)
        padding = (0 if side >= 32 else 2, 0 if side >= 28 else 2)
        sides = [conv5_pool_side(conv5_pool_side(s, padding[0]), padding[1]) for s in (height, width)]
        return nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=padding[0]),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5, padding=padding[1]),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * sides[0] * sides[1], 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, n_classes),
        )
