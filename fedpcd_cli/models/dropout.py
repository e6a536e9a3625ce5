"""Dropout that draws from a given generator, so that a client's noise depends on its own stream alone."""

from __future__ import annotations

import torch
from torch import nn


class Dropout(nn.Module):
    """Zero each activation with probability p while training and scale the rest by 1/(1-p).

    The engine sets :attr:`generator` before it trains a client; PyTorch's own dropout layers can't be given
    one and are refused.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0.0:
            return inputs
        if self.generator is None:
            raise RuntimeError("Dropout.generator must be set before training")
        keep = torch.empty_like(inputs).bernoulli_(1.0 - self.p, generator=self.generator)
        return inputs * keep.div_(1.0 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def set_dropout_generator(module: nn.Module, generator: torch.Generator) -> None:
    """Let every :class:`Dropout` inside `module` draw from `generator`."""
    for layer in module.modules():
        if isinstance(layer, Dropout):
            layer.generator = generator
