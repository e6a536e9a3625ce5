"""The contract of models."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedpcd_cli.components import Component

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class ModelSpec(Component):
    """Base of everything that can be named in `model.name`. Fields are the recipe's parameters.

    Class attributes:
        summary: One line for listings.
    """

    kind: ClassVar[str] = "model"
    summary: ClassVar[str] = ""

    @abstractmethod
    def build(self, sample_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """Return the network, freshly initialized, mapping `[B, *sample_shape]` to logits `[B, n_classes]`.

        The engine calls it inside a forked random state, seeded from the run: PyTorch's own initialization
        may be used as it is. Random layers must draw from a given generator: use `fedpcd_cli.api.Dropout`.

        Raises:
            UsageError: The model can't take samples of this shape.
        """
