"""Multinomial logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedpcd_cli.models.base import ModelSpec

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class Linear(ModelSpec):
    """One affine layer on the flattened sample."""

    name = "linear"
    summary = "multinomial logistic regression"

    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        from torch import nn

        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(sample_shape), n_classes))
