"""From multipliers to the direction: the one combination of rows of length P (FedPCD, step 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fedpcd_cli.linalg.combine import combine
from fedpcd_cli.pcd.decision import Decision
from fedpcd_cli.pcd.history import RoundRows
from fedpcd_cli.pcd.posing import Posed
from fedpcd_cli.pcd.precision import Precision
from fedpcd_cli.qp.solution import SolveStatus


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """The direction of a round.

    Attributes:
        direction: d, `[P]`.
        coefficients: Weight of each update of the cohort in it, `[m]`.
        normalized_length: ||d~*||, 0 if the round makes no step.
    """

    direction: torch.Tensor
    coefficients: np.ndarray
    normalized_length: float


def form(
    rows: torch.Tensor,
    ring: torch.Tensor | None,
    found: RoundRows,
    weights: np.ndarray,
    posed: Posed,
    decision: Decision,
) -> Step:
    """Return the direction that was decided on, with the length of the average.

    Args:
        rows: The cohort's updates, `[m, P]`.
        ring: The history's rows.
        found: The round's constraints.
        weights: The cohort's weights in the average, `[m]`.
        posed: The round's program.
        decision: Its multipliers.
    """
    nothing = Step(
        direction=torch.zeros_like(rows[0]), coefficients=np.zeros(rows.shape[0]), normalized_length=0.0
    )
    if decision.follows_average:
        return Step(direction=combine(rows, weights), coefficients=weights, normalized_length=posed.reference_norm)
    if decision.solution.status is SolveStatus.NO_STEP:
        return nothing
    multipliers, length = decision.solution.multipliers, posed.geometry.mean_norm
    normalized_length = decision.program.direction_norm(multipliers, posed.reference_norm)
    coefficients = multipliers / posed.scales
    if decision.program.primary:
        coefficients = coefficients + posed.geometry.weights / posed.reference_scale
    # Rows are combined at the scale of the average, so that what is short afterwards is rounding.
    coefficients = coefficients * (
        length / (posed.reference_norm if decision.program.primary else normalized_length)
    )
    k = found.fresh.size
    own = np.zeros(rows.shape[0])
    own[found.fresh] = coefficients[:k]
    direction = combine(rows, own)
    if ring is not None and coefficients[k:].any():
        cached = np.zeros(ring.shape[0])
        cached[found.slots] = coefficients[k:]
        combine(ring, cached, out=direction)
    relative = float(torch.linalg.vector_norm(direction / length))  # squares of `length` itself may leave float32
    if relative <= Precision.of(rows.dtype).vanishing:
        return nothing
    return Step(
        direction=direction.mul_(1.0 / relative),
        coefficients=own / relative,
        normalized_length=normalized_length,
    )
