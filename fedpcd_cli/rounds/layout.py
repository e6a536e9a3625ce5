"""How a model's trainable parameters lie in one flat vector."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ParameterSlot:
    """One parameter tensor inside the flat vector.

    Attributes:
        name: Its name in the model, `"conv1.weight"`.
        shape: Its shape.
        offset: Its first position in the flat vector.
        group: Index of the layer group it belongs to.
    """

    name: str
    shape: tuple[int, ...]
    offset: int
    group: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> slice:
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class ParameterLayout:
    """The fixed order of all trainable parameters, contiguous from 0 to P.

    A layer group holds the weight and bias of one module; a normalization layer belongs to the convolution
    before it. Groups are contiguous and numbered in order.
    """

    slots: tuple[ParameterSlot, ...]

    @property
    def n_params(self) -> int:
        """P, the length of the flat vector."""
        return self.slots[-1].offset + self.slots[-1].size if self.slots else 0

    @property
    def group_spans(self) -> tuple[slice, ...]:
        """One slice of the flat vector per layer group."""
        spans: dict[int, slice] = {}
        for slot in self.slots:
            start = spans[slot.group].start if slot.group in spans else slot.offset
            spans[slot.group] = slice(start, slot.offset + slot.size)
        return tuple(spans[group] for group in sorted(spans))

    @property
    def tensor_spans(self) -> tuple[slice, ...]:
        """One slice of the flat vector per parameter tensor."""
        return tuple(slot.span for slot in self.slots)

    @classmethod
    def single(cls, n_params: int, name: str = "params") -> ParameterLayout:
        """Return the layout of one unnamed vector of length P."""
        return cls((ParameterSlot(name, (n_params,), 0, 0),))
