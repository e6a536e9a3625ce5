"""Means over seeds: sample standard deviation, Student's interval, paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """What n numbers say about their mean.

    Attributes:
        n: How many numbers.
        mean: Their mean.
        std: Sample standard deviation (n - 1); None for a single number.
    """

    n: int
    mean: float
    std: float | None

    @property
    def half_width(self) -> float | None:
        """Half the two-sided 95% interval of the mean, t(0.975, n - 1) std / sqrt(n); None for one number."""
        if self.std is None:
            return None
        return student_quantile(self.n - 1) * self.std / math.sqrt(self.n)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the mean, for numbers that are independent and roughly normal."""
        half = self.half_width
        return None if half is None else (self.mean - half, self.mean + half)


def summarize(values: Sequence[float]) -> Summary:
    """Return mean and sample standard deviation of at least one number.

    >>> summarize([1.0, 2.0, 6.0])
    Summary(n=3, mean=3.0, std=2.6457513110645907)
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0:
        raise ValueError("no numbers to summarize")
    std = float(numbers.std(ddof=1)) if numbers.size > 1 else None
    return Summary(int(numbers.size), float(numbers.mean()), std)


def paired_difference(values: Mapping[Hashable, float], baseline: Mapping[Hashable, float]) -> Summary | None:
    """Return the summary of `values - baseline` over the keys (seeds) that both have; None if they share none."""
    common = [key for key in values if key in baseline]
    if not common:
        return None
    return summarize([values[key] - baseline[key] for key in common])


def student_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """Return t with P(|T| <= t) = confidence for Student's distribution with that many degrees of freedom."""
    # Not scipy.stats: it takes a second to load.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + confidence) / 2))
