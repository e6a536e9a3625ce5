"""Order statistics of long vectors, without sorting more than is asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


# Shorter vectors are partitioned outright; of longer ones this many entries are looked at first.
_SAMPLE = 8192


def smallest_sizes(values: torch.Tensor, k: int) -> torch.Tensor:
    """Return the k smallest absolute values of `values` `[n]`, ascending, `[k]`; 1 <= k <= n.

    On the CPU, NumPy sorts the same memory several times faster than torch, and in one thread: callers may run
    several side by side, where torch would start as many teams of threads.
    """
    import torch

    if values.device.type != "cpu":
        return torch.topk(values.abs(), k, largest=False, sorted=True).values
    sizes = np.abs(values.numpy())
    lowest = sizes[np.flatnonzero(sizes <= _bound(sizes, k))]
    lowest.sort()
    return torch.from_numpy(lowest[:k])


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
    candidates = np.flatnonzero(numbers >= max(0.0, -_bound(-numbers, k)))
    # The bits of floats >= 0 are ordered as the floats are: score and index become one sortable integer.
    falling = np.int64(np.iinfo(np.int32).max) - numbers[candidates].view(np.int32)
    keys = (falling << 32) | candidates
    keys.sort()
    return torch.from_numpy(keys[:k] & 0xFFFFFFFF)


def _bound(numbers: np.ndarray, k: int) -> float:
    """Return a number that at least k entries don't exceed: the k-th smallest, or a close guess from a sample."""
    n = numbers.size
    if n > 4 * _SAMPLE and k < n:
        sample = numbers[:: n // _SAMPLE]
        rank = int(sample.size * k / n + 2 * math.sqrt(sample.size))
        if rank < sample.size:
            guess = np.partition(sample, rank)[rank]
            if np.count_nonzero(numbers <= guess) >= k:
                return float(guess)
    return float(np.partition(numbers, k - 1)[k - 1])
