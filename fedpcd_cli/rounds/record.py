"""The record of one round: what happened, without anything that differs between two equal runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """A sampled client that did not count in the round, and why."""

    client_id: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """One line of `rounds.jsonl`. Times are kept elsewhere, so that equal runs have equal bytes.

    Attributes:
        round_index: t, counted from 1.
        client_ids: Clients whose updates counted, `[m]`.
        n_examples: Their training examples, `[m]`.
        excluded: Sampled clients that did not count.
        local_lr: Learning rate of the clients in this round.
        update_norms: ||g_i||, `[m]`.
        update_cosines: Cosine of each g_i and d, `[m]`; None where one of them is zero.
        training_loss: Mean mini-batch loss of the cohort during local training, weighted by examples.
        direction_norm: ||d||.
        diagnostics: What the aggregator has to say.
        warnings: Sentences that were shown to the user.
    """

    round_index: int
    client_ids: tuple[int, ...]
    n_examples: tuple[int, ...]
    excluded: tuple[Exclusion, ...]
    local_lr: float
    update_norms: tuple[float, ...]
    update_cosines: tuple[float | None, ...]
    training_loss: float | None
    direction_norm: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, in a fixed order."""
        return {
            "round": self.round_index,
            "client_ids": list(self.client_ids),
            "n_examples": list(self.n_examples),
            "excluded": [{"client_id": e.client_id, "reason": e.reason} for e in self.excluded],
            "local_lr": self.local_lr,
            "update_norms": list(self.update_norms),
            "update_cosines": list(self.update_cosines),
            "training_loss": self.training_loss,
            "direction_norm": self.direction_norm,
            "diagnostics": dict(self.diagnostics),
            "warnings": list(self.warnings),
        }
