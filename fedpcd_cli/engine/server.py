"""The server's side of a round: check the updates, aggregate, step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fedpcd_cli.aggregators.base import Aggregator, State
from fedpcd_cli.errors import DivergedError, PluginError
from fedpcd_cli.rounds.aggregation import Aggregation
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.record import Exclusion


@dataclass(frozen=True, eq=False)
class ServerStep:
    """Result of one server step.

    Attributes:
        aggregation: What the rule returned.
        state: The rule's state for the next round.
        direction_norm: ||d||.
    """

    aggregation: Aggregation
    state: State
    direction_norm: float


def what_is_broken(kind: str, flat: torch.Tensor, names: list[tuple[str, slice]]) -> str | None:
    """Return `<kind> has NaN in <first bad tensor>` for a flat vector, `[P]`, or None if it is finite."""
    if bool(torch.isfinite(flat).all()):
        return None
    name, part = next((name, flat[span]) for name, span in names if not bool(torch.isfinite(flat[span]).all()))
    what = "NaN" if bool(torch.isnan(part).any()) else "Inf"
    return f"{kind} has {what} in {name}"


def aggregate_and_step(aggregator: Aggregator, cohort: Cohort, state: State, params: torch.Tensor) -> ServerStep:
    """Aggregate one cohort and step w_{t+1} = w_t - server_lr * local_lr * d, in place in `params`.

    Raises:
        DivergedError: The direction is not finite; `params` are left as they were.
        PluginError: The rule returned a direction of the wrong shape or kind.
    """
    aggregation, next_state = aggregator.aggregate(cohort, state)
    direction = aggregation.direction
    if not isinstance(direction, torch.Tensor) or direction.shape != params.shape:
        found = tuple(direction.shape) if isinstance(direction, torch.Tensor) else type(direction).__name__
        raise PluginError(
            f"aggregator '{aggregator.name}' must return a direction of shape [{params.numel()}]; found {found}."
        )
    norm = float(torch.linalg.vector_norm(direction))
    if not math.isfinite(norm):
        raise DivergedError(
            f"round {cohort.round_index}: the direction of '{aggregator.name}' is not finite.",
            hint="Use a smaller local.lr or server.lr.",
        )
    params.add_(direction.to(params.dtype), alpha=-cohort.server_lr * cohort.local_lr)
    return ServerStep(aggregation, next_state, norm)


def update_cosines(updates: torch.Tensor, norms: Sequence[float], step: ServerStep) -> tuple[float | None, ...]:
    """Return the cosine of each update, a row of `[m, P]`, and the direction; None where one of them is zero."""
    products = (updates @ step.aggregation.direction.to(updates.dtype)).tolist()
    lengths = [norm * step.direction_norm for norm in norms]
    cosines = [
        product / length if length > 0 else math.nan for product, length in zip(products, lengths, strict=True)
    ]
    return tuple(max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else None for cosine in cosines)


def average_buffers(rows: torch.Tensor, n_examples: np.ndarray) -> torch.Tensor:
    """Return the example-weighted mean of the clients' buffers, `[m, B]` to `[B]`."""
    weights = torch.as_tensor(n_examples / n_examples.sum(), dtype=rows.dtype, device=rows.device)
    return weights @ rows


def all_excluded_error(round_index: int, excluded: list[Exclusion]) -> DivergedError:
    """Return the error of a round in which no client was left."""
    named = "; ".join(f"client {e.client_id}: {e.reason}" for e in excluded)
    return DivergedError(
        f"round {round_index}: no client of the cohort sent a usable update ({named}).",
        hint="Use a smaller local.lr; everything up to the round before is saved.",
    )
