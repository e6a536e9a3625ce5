"""Order statistics of long vectors, without sorting more than is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def smallest(values: torch.Tensor, k: int) -> torch.Tensor:
    """Return the k smallest of `values` `[n]`, ascending, `[k]`; 1 <= k <= n.

    On the CPU, NumPy partitions and sorts the same memory several times faster than torch.
    """
    import torch

    if values.device.type != "cpu":
        return torch.topk(values, k, largest=False, sorted=True).values
    numbers = values.numpy()
    lowest = np.partition(numbers, k - 1)[:k] if k < numbers.size else numbers.copy()
    lowest.sort()
    return torch.from_numpy(lowest)


def leading(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return the indices of the k largest of `scores` `[n]`, largest first, `[k]`; equal scores by index.

    Args:
        scores: At least k of them are >= 0.
        k: 1 <= k <= n.
    """
    import torch

    if scores.device.type != "cpu" or scores.dtype != torch.float32:
        return torch.sort(scores, descending=True, stable=True).indices[:k]
    numbers = scores.numpy()
    bound = np.partition(numbers, numbers.size - k)[numbers.size - k]
    candidates = np.flatnonzero(numbers >= bound)
    # The bits of floats >= 0 are ordered as the floats are: score and index become one sortable integer.
    falling = np.int64(np.iinfo(np.int32).max) - numbers[candidates].view(np.int32)
    keys = (falling << 32) | candidates
    keys.sort()
    return torch.from_numpy(keys[:k] & 0xFFFFFFFF)
