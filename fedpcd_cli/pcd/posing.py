"""The program of one round (FedPCD, step 3), posed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcd_cli.pcd.average import Geometry
from fedpcd_cli.pcd.constraints import divisors
from fedpcd_cli.pcd.history import RoundRows
from fedpcd_cli.qp.solve import satisfied
from fedpcd_cli.rounds.program import HalfspaceProgram


@dataclass(frozen=True, eq=False, kw_only=True)
class Posed:
    """A round's program and the numbers that lead back from it to raw updates.

    Attributes:
        geometry: Raw inner products.
        program: The normalized program with the recipe's tau.
        scales: Divisor of each constraint, `[c]`.
        reference_scale: Divisor of the average.
    """

    geometry: Geometry
    program: HalfspaceProgram
    scales: np.ndarray
    reference_scale: float

    @property
    def reference_norm(self) -> float:
        """||g~_0||."""
        return self.geometry.mean_norm / self.reference_scale

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be solved: the average is zero or satisfies every constraint."""
        return self.geometry.mean_norm == 0 or satisfied(self.program)


def pose(
    found: RoundRows,
    geometry: Geometry,
    moving_norms: np.ndarray | None,
    *,
    tau: float,
    normalization: str,
    epsilon: float,
    primary: bool,
) -> Posed:
    """Normalize a round's constraints and average, and pose the program."""
    norms = np.sqrt(np.diag(geometry.gram)) if found.size else np.zeros(0)
    scales = divisors(normalization, norms, moving_norms, epsilon)
    reference_scale = 1.0 if normalization == "none" else geometry.mean_norm + epsilon
    gram = geometry.gram / scales[:, None] / scales[None, :]
    program = HalfspaceProgram(
        gram=gram,
        reference_products=geometry.products / scales / reference_scale,
        thresholds=tau * np.diag(gram),
        primary=primary,
    )
    return Posed(geometry=geometry, program=program, scales=scales, reference_scale=reference_scale)
