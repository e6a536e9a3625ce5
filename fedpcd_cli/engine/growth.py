"""Watches for client updates that grow without bound."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

WINDOW = 10
FACTOR = 20.0


class GrowthWatch:
    """Warns when the median client norm has grown 20-fold within 10 rounds.

    A bent step keeps the length of the average while it follows stale, conflicting clients; with too large a
    local rate the clients then diverge within a few rounds. Growth from the small updates of a nearly converged
    model is no alarm: the median must also be higher than ever before.

    Args:
        medians: Medians of the last rounds, oldest first, as a checkpoint kept them.
        peak: Highest median of the run.
        warned: Whether the warning was already given.
    """

    def __init__(self, medians: Sequence[float] = (), peak: float = 0.0, warned: bool = False) -> None:
        self.medians = list(medians)[-WINDOW:]
        self.peak = peak
        self.warned = warned

    def state(self) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {"medians": self.medians, "peak": self.peak, "warned": self.warned}

    def observe(self, norms: Sequence[float]) -> str | None:
        """Take the client norms of one round and return the warning, once per run, if it is due."""
        if not norms:
            return None
        median = statistics.median(norms)
        past = [value for value in self.medians if value > 0]
        self.medians = [*self.medians, median][-WINDOW:]
        is_highest = median > self.peak
        self.peak = max(self.peak, median)
        if self.warned or not is_highest or not past or median < FACTOR * min(past):
            return None
        self.warned = True
        return (
            f"The median client update has grown {median / min(past):.0f}-fold within {WINDOW} rounds "
            f"({min(past):.3g} to {median:.3g}): training is about to diverge. Use a smaller local.lr."
        )
