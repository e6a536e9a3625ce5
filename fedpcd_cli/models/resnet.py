"""ResNet-20 and ResNet-18 with GroupNorm: no running statistics that clients would have to share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from fedpcd_cli.components import Param, Problem
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.models.image_shape import require_image

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class ResNet20(ModelSpec):
    """ResNet-20 for small images (He et al., 2016, section 4.2), GroupNorm in place of BatchNorm."""

    name = "resnet20"
    summary = "ResNet-20 (16-32-64) with GroupNorm"
    widths: ClassVar[tuple[int, ...]] = (16, 32, 64)
    blocks_per_stage: ClassVar[int] = 3

    norm_groups: Annotated[int, Param("groups of each GroupNorm; CRAFT uses 1, Reddi et al. (2021) 2", ge=1)] = 2

    def cross_check(self) -> Iterator[Problem]:
        if any(width % self.norm_groups for width in self.widths):
            yield Problem("norm_groups", f"must divide {list(self.widths)}; found {self.norm_groups}")

    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        from fedpcd_cli.models.residual import residual_network

        channels, _, _ = require_image(self.name, sample_shape, 4)
        return residual_network(channels, self.widths, self.blocks_per_stage, self.norm_groups, n_classes)


@dataclass(frozen=True, kw_only=True)
class ResNet18(ResNet20):
    """ResNet-18 with a 3x3 stem for small images, GroupNorm in place of BatchNorm."""

    name = "resnet18"
    summary = "ResNet-18 (64-128-256-512, 3x3 stem) with GroupNorm"
    widths: ClassVar[tuple[int, ...]] = (64, 128, 256, 512)
    blocks_per_stage: ClassVar[int] = 2
