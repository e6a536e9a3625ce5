"""Fully connected network with ReLU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from fedpcd_cli.components import Param
from fedpcd_cli.models.base import ModelSpec

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class MLP(ModelSpec):
    """The 784-200-200-10 network of the fair-FL papers, at any input and output size (FedLF's code, MLP)."""

    name = "mlp"
    summary = "fully connected network, ReLU (default 200-200)"

    hidden: Annotated[tuple[Annotated[int, Param("width", ge=1)], ...], Param("width of each hidden layer")] = (
        200,
        200,
    )
    dropout: Annotated[float, Param("probability after each hidden layer", ge=0, lt=1)] = 0.0

    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        from torch import nn

        from fedpcd_cli.models.dropout import Dropout

        widths = (math.prod(sample_shape), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for n_in, n_out in pairwise(widths):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
            if self.dropout > 0:
                layers.append(Dropout(self.dropout))
        return nn.Sequential(*layers, nn.Linear(widths[-1], n_classes))
