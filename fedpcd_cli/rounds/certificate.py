"""The program behind one round's direction: enough to check it, explain it and solve it again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.rounds.certificate_arrays import pack, unpack
from fedpcd_cli.rounds.outcome import Residuals, SolveStatus
from fedpcd_cli.rounds.program import HalfspaceProgram


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """Constraints, multipliers and residuals of one FedPCD round, without any vector of length P.

    Constraints come in the order cohort first, cached clients after it. "Normalized" quantities are of
    g~_j = g_j / scales_j and of g~_0, the normalized average.

    Attributes:
        round_index: t.
        client_ids: Client of each constraint, int64 `[c]`.
        source_rounds: Round in which its pseudo-gradient was computed, int64 `[c]`; t for the cohort.
        weights: Its weight in the average, `[c]`; 0 for cached clients.
        norms: ||g_j||, `[c]`.
        scales: Divisor that normalized it, `[c]`.
        gram: Inner products of the normalized constraints, `[c, c]`.
        reference_products: Their inner products with g~_0, `[c]`.
        reference_norm: ||g~_0||.
        mean_norm: ||g_bar||, the length of FedAvg's direction and of the step.
        direction_norm: ||d~*|| before it is rescaled to `mean_norm`.
        tau: The recipe's tolerance.
        tau_used: Tolerance of the program recorded here; differs from `tau` only if it was relaxed.
        thresholds: tau_used * diag(gram), `[c]`.
        multipliers: μ, `[c]`, exactly 0 where not active.
        slacks: g~_j · d~* - thresholds_j, `[c]`; negative means violated.
        active: Constraints with a positive multiplier, bool `[c]`.
        primary: Whether the objective measures from g~_0; if not, d~* is the shortest admissible vector.
        normalization: `l2`, `ema` or `none`.
        epsilon: Added to every divisor.
        on_infeasible: What the recipe asked for in case of contradiction.
        status: What happened.
        feasible: Whether the program with `tau` has a solution.
        residuals: Violation of the optimality conditions.
        farkas: For contradicting constraints the λ that proves it, `[c]`; see :attr:`conflicting_ids`.
        gram_correction: Largest eigenvalue of the unit-row Gram matrix that was set to zero because it was
            within the rounding of its inner products; 0 if none was.
        solver: Name of the backend.
        seconds: Time of the solve.
        dropped_zero_ids: Clients of the cohort whose update is zero: no constraint.
    """

    round_index: int
    client_ids: np.ndarray
    source_rounds: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    scales: np.ndarray
    gram: np.ndarray
    reference_products: np.ndarray
    reference_norm: float
    mean_norm: float
    direction_norm: float
    tau: float
    tau_used: float
    thresholds: np.ndarray
    multipliers: np.ndarray
    slacks: np.ndarray
    active: np.ndarray
    primary: bool
    normalization: str
    epsilon: float
    on_infeasible: str
    status: SolveStatus
    feasible: bool
    residuals: Residuals
    farkas: np.ndarray | None
    gram_correction: float
    solver: str
    seconds: float
    dropped_zero_ids: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """c, the number of constraints."""
        return int(self.client_ids.size)

    @property
    def ages(self) -> np.ndarray:
        """Rounds since each pseudo-gradient was computed, int64 `[c]`; 0 for the cohort."""
        return np.asarray(self.round_index - self.source_rounds)

    @property
    def cached(self) -> np.ndarray:
        """Constraints that come from the history, bool `[c]`."""
        return np.asarray(self.ages > 0)

    @property
    def conflicting_ids(self) -> tuple[int, ...]:
        """Clients whose constraints can't be met together; empty if the program is feasible."""
        if self.farkas is None:
            return ()
        return tuple(int(client) for client in self.client_ids[self.farkas > 0])

    @property
    def progress_of_average(self) -> np.ndarray:
        """g~_j · g~_0 / ||g~_j||², `[c]`: what FedAvg gives each client, to be compared with tau."""
        return np.asarray(self.reference_products / np.diag(self.gram))

    @property
    def progress(self) -> np.ndarray:
        """g~_j · d~* / ||g~_j||², `[c]`: what the direction gives each client; at least tau if feasible."""
        return np.asarray((self.slacks + self.thresholds) / np.diag(self.gram))

    @property
    def correction_length(self) -> float:
        """||Aᵀμ||, how far the multipliers move the normalized direction."""
        return math.sqrt(max(0.0, float(self.multipliers @ self.gram @ self.multipliers)))

    @property
    def angle_degrees(self) -> float | None:
        """Angle between FedAvg's direction and the update's, in degrees; None if either is zero."""
        if self.reference_norm == 0 or self.direction_norm == 0:
            return None
        if not self.active.any():
            return 0.0
        along = float(self.reference_products @ self.multipliers) / self.reference_norm
        across = math.sqrt(max(0.0, self.correction_length**2 - along**2))
        return math.degrees(math.atan2(across, along + (self.reference_norm if self.primary else 0.0)))

    def program(self) -> HalfspaceProgram:
        """Return the program of the round, to be solved again without any gradient."""
        return HalfspaceProgram(
            gram=self.gram,
            reference_products=self.reference_products,
            thresholds=self.thresholds,
            primary=self.primary,
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the certificate as arrays for `np.savez`, readable without pickle, exact."""
        return pack(self)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Certificate:
        """Rebuild what :meth:`to_arrays` wrote.

        Raises:
            StoreError: An entry is missing, has the wrong shape or type, or was written by a newer version.
        """
        return cls(**unpack(arrays))
