"""FedPW's parameter side: drop small entries, amplify where the clients agree; one tensor at a time."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedpcd_baselines.order import leading, smallest_sizes
from fedpcd_baselines.products import squared_norms

if TYPE_CHECKING:
    import torch

_EVERY = 10  # the authors average every tenth of the sorted entries
_LONG = 1 << 15


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
    cuts = _cuts(fragments, counts)
    for fragment, weight, cut in zip(fragments, weights.tolist(), cuts, strict=True):
        masked = cut.apply(fragment)
        out.add_(masked, alpha=weight)
        if agreement is not None:
            agreement.add(masked)
    if agreement is None or agreement.n_rows < 2:
        return TensorReport()
    consensus = agreement.consensus(chosen)
    if consensus.numel() == 0:
        return TensorReport()
    reference = float(out[consensus[::_EVERY]].abs().mean())
    ratio = sum(cut.dropped_size for cut in cuts) / m / reference if reference > 0 else math.inf
    if not ratio < 1:
        return TensorReport()
    out[consensus] *= 1 + ratio
    return TensorReport(gain=1 + ratio, amplified=consensus.numel())


@dataclass(frozen=True)
class Cut:
    """Which entries of a fragment are dropped: the `count` smallest, of equal ones the first.

    Attributes:
        count: k_i.
        bound: Size of the largest dropped entry.
        dropped_size: Mean size of every tenth dropped entry, in ascending order.
    """

    count: int
    bound: float = 0.0
    dropped_size: float = 0.0

    @classmethod
    def of(cls, fragment: torch.Tensor, count: int) -> Cut:
        """Return the cut of the `count` smallest entries of a fragment, `[n]`."""
        if count == 0:
            return cls(count=0)
        lowest = smallest_sizes(fragment, count)
        return cls(count=count, bound=float(lowest[-1]), dropped_size=float(lowest[::_EVERY].mean()))

    def apply(self, fragment: torch.Tensor) -> torch.Tensor:
        """Return the fragment with the dropped entries at zero."""
        import torch

        if self.count == 0:
            return fragment
        masked = torch.nn.functional.hardshrink(fragment, self.bound)  # one pass: x where |x| > bound, else 0
        surplus = fragment.numel() - self.count - int(torch.count_nonzero(masked))
        if surplus > 0:
            spared = torch.nonzero(fragment.abs() == self.bound)[-surplus:, 0]
            masked[spared] = fragment[spared]
        return masked


def _cuts(fragments: torch.Tensor, counts: list[int]) -> list[Cut]:
    """Return each client's cut; long tensors on the CPU are sorted side by side, which torch wouldn't do."""
    import torch

    threads = min(torch.get_num_threads(), len(counts))
    if fragments.device.type != "cpu" or fragments.shape[1] < _LONG or threads < 2:
        return [Cut.of(fragment, count) for fragment, count in zip(fragments, counts, strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(Cut.of, fragments, counts))


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
