"""The losses that clients report: who can be used, and what is said about the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedpcd_cli.api import Cohort, PluginError


@dataclass(frozen=True, eq=False)
class FiniteLosses:
    """Clients of a cohort whose loss is a finite number.

    Attributes:
        rows: Their positions in the cohort, int64 `[k]`, ascending.
        values: Their losses, float64 `[k]`.
        left_out: Ids of the other clients.
        warnings: A sentence for each of the other clients.
    """

    rows: np.ndarray
    values: np.ndarray
    left_out: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The clients left out, for the round's record; empty if there are none."""
        return {"left_out": list(self.left_out)} if self.left_out else {}

    def spread(self, values: np.ndarray, size: int) -> np.ndarray:
        """Return `values` `[k]` at their positions in the cohort, float64 `[size]`; 0 for who was left out."""
        full = np.zeros(size)
        full[self.rows] = values
        return full


def finite_losses(
    cohort: Cohort, losses: np.ndarray | None, rule: str, what: str = "training loss"
) -> FiniteLosses:
    """Return the usable ones among the losses that the cohort reported.

    A client with a NaN or infinite loss doesn't count in the round; no authors' code looks at this.

    Args:
        cohort: The round's cohort.
        losses: One of its loss vectors, float64 `[m]`.
        rule: The rule's name, for messages.
        what: What the loss is called in messages.

    Raises:
        PluginError: The cohort has no such losses: the engine computes what `needs` declares only.
    """
    if losses is None:
        raise PluginError(
            f"aggregator '{rule}' needs each client's {what}; the cohort of round {cohort.round_index} has none.",
            hint="Fill the losses that the rule's 'needs' declare.",
        )
    values = np.asarray(losses, dtype=np.float64)
    finite = np.isfinite(values)
    broken = np.flatnonzero(~finite)
    return FiniteLosses(
        rows=np.flatnonzero(finite),
        values=values[finite],
        left_out=tuple(cohort.client_ids[row] for row in broken),
        warnings=tuple(
            f"round {cohort.round_index}: client {cohort.client_ids[row]} left out: {what} is "
            f"{'NaN' if np.isnan(values[row]) else 'Inf'}"
            for row in broken
        ),
    )


def by_client(cohort: Cohort, values: np.ndarray) -> dict[str, float]:
    """Return `values` `[m]` keyed by client id, as plain JSON."""
    return {str(client_id): float(value) for client_id, value in zip(cohort.client_ids, values, strict=True)}
