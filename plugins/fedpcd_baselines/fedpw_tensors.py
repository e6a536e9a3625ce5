"""FedPW's parameter side: drop small entries, amplify where the clients agree; one tensor at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedpcd_baselines.order import leading, smallest
from fedpcd_baselines.products import squared_norms

if TYPE_CHECKING:
    import torch

_EVERY = 10  # the authors average every tenth of the sorted entries


@dataclass(frozen=True)
class TensorReport:
    """What happened to one tensor.

    Attributes:
        gain: 1 + a/b, the factor of the consensus entries; 1 if they were left alone.
        amplified: How many entries were multiplied by it.
    """

    gain: float = 1.0
    amplified: int = 0


def count_of(n: int, rate: float) -> int:
    """Return ⌊n · rate⌋; a product that misses a whole number by rounding counts as that number."""
    return math.floor(n * rate * (1 + 1e-12))


def adjust_tensor(
    fragments: torch.Tensor, weights: np.ndarray, rates: np.ndarray, rate: float, out: torch.Tensor
) -> TensorReport:
    """Write the adjusted step of one tensor into `out` (steps 6 to 9).

    Args:
        fragments: The clients' updates of the tensor, `[m, n]`.
        weights: λ, `[m]`.
        rates: r_i, the share of its entries that each client loses, `[m]`.
        rate: r, the share of entries that may be amplified.
        out: Zeros, `[n]`.
    """
    m, n = fragments.shape
    counts = [count_of(n, r) for r in rates.tolist()]
    chosen = count_of(n, rate)
    amplifies = m > 1 and min(counts) > 0 and chosen > 0
    agreement = _Agreement(out) if amplifies else None
    dropped_sizes = []
    for fragment, weight, count in zip(fragments, weights.tolist(), counts, strict=True):
        masked, dropped_size = drop_smallest(fragment, count)
        dropped_sizes.append(dropped_size)
        out.add_(masked, alpha=weight)
        if agreement is not None:
            agreement.add(masked)
    if agreement is None or agreement.n_rows < 2:
        return TensorReport()
    consensus = agreement.consensus(chosen)
    if consensus.numel() == 0:
        return TensorReport()
    reference = float(out[consensus[::_EVERY]].abs().mean())
    ratio = sum(dropped_sizes) / m / reference if reference > 0 else math.inf
    if not ratio < 1:
        return TensorReport()
    out[consensus] *= 1 + ratio
    return TensorReport(gain=1 + ratio, amplified=consensus.numel())


def drop_smallest(fragment: torch.Tensor, count: int) -> tuple[torch.Tensor, float]:
    """Return the fragment `[n]` without its `count` smallest entries, and the mean size of every tenth of those.

    Among entries of equal size the first ones go first.
    """
    import torch

    if count == 0:
        return fragment, 0.0
    sizes = fragment.abs()
    lowest = smallest(sizes, count)
    dropped_size = float(lowest[::_EVERY].mean())
    bound = lowest[-1]
    kept = sizes > bound
    surplus = fragment.numel() - count - int(torch.count_nonzero(kept))
    if surplus > 0:
        kept[torch.nonzero(sizes == bound)[-surplus:, 0]] = True
    return fragment * kept, dropped_size


class _Agreement:
    """How much the clients' masked fragments of one tensor agree in each entry.

    With every fragment at length one and every column x divided by its norm, the sample variance of a column is
    (1 - ρ/m) / (m - 1) for ρ = (Σ x)² / Σ x²: the smallest deviations are the largest ρ, and two sums per
    column are all that has to be kept. A column with a single entry has ρ = 1 exactly, so that ties stay ties.
    """

    def __init__(self, like: torch.Tensor) -> None:
        import torch

        self.n_rows = 0
        self._total = torch.zeros_like(like)
        self._squares = torch.zeros_like(like)

    def add(self, masked: torch.Tensor) -> None:
        """Add one client's fragment, `[n]`; one that is zero has no say."""
        length = math.sqrt(squared_norms(masked[None])[0])
        if length == 0:
            return
        unit = masked / length
        self._total.add_(unit)
        self._squares.addcmul_(unit, unit)
        self.n_rows += 1

    def consensus(self, count: int) -> torch.Tensor:
        """Return the entries that agree most, most agreed first, `count` of them or as many as are not zero."""
        import torch

        alive = self._squares > 0
        count = min(count, int(torch.count_nonzero(alive)))
        scores = torch.where(alive, self._total.square_().div_(self._squares), -1.0)
        return leading(scores, count) if count else alive.nonzero()[:, 0]
