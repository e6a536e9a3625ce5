"""The two-convolution network of the fair-FL papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fedpcd_cli.components import Param
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.models.image_shape import conv5_pool_side, require_image

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class CNN(ModelSpec):
    """conv 5x5-64, pool, conv 5x5-64, pool, fc 384, fc 192 (FedLF's and CRAFT's code; 797,962 parameters on
    CIFAR-10). Images under 16 pixels are padded by 2 before each convolution. With `dropout` on, 0.2 of the
    first and 0.5 of the second hidden layer are dropped, as FedLF's code does at `dropout: true`.
    """

    name = "cnn"
    summary = "conv 5x5-64, pool, conv 5x5-64, pool, fc 384, fc 192"

    dropout: Annotated[bool, Param("drop 0.2 of fc 384 and 0.5 of fc 192 while training")] = False

    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        from torch import nn

        from fedpcd_cli.models.dropout import Dropout

        channels, height, width = require_image(self.name, sample_shape, 4)
        padding = 0 if min(height, width) >= 16 else 2
        sides = [conv5_pool_side(conv5_pool_side(side, padding), padding) for side in (height, width)]
        drop = [Dropout(0.2), Dropout(0.5)] if self.dropout else [nn.Identity(), nn.Identity()]
        return nn.Sequential(
            nn.Conv2d(channels, 64, 5, padding=padding),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 5, padding=padding),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * sides[0] * sides[1], 384),
            drop[0],
            nn.ReLU(),
            nn.Linear(384, 192),
            drop[1],
            nn.ReLU(),
            nn.Linear(192, n_classes),
        )
