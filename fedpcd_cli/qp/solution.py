"""What a solver found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcd_cli.rounds.outcome import Residuals, SolveStatus

__all__ = ["Residuals", "Solution", "SolveStatus"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Multipliers of a program, or the proof that it has none.

    Attributes:
        multipliers: μ >= 0, float64 `[c]`; exactly zero where the constraint is not active. All zero if the
            program is infeasible.
        slacks: G μ + a - thresholds, float64 `[c]`; negative means violated.
        active: Constraints with a positive multiplier, bool `[c]`.
        status: What happened.
        residuals: Violation of the optimality conditions.
        farkas: For an infeasible program λ >= 0, Σλ = 1, with Aᵀλ = 0 and thresholds · λ > 0, `[c]`: no d can
            meet these clients' thresholds together.
        solver: Name of the backend.
        seconds: Time of the solve.
    """

    multipliers: np.ndarray
    slacks: np.ndarray
    active: np.ndarray
    status: SolveStatus
    residuals: Residuals
    farkas: np.ndarray | None
    solver: str
    seconds: float

    @property
    def feasible(self) -> bool:
        """Whether the program has a solution."""
        return self.farkas is None
