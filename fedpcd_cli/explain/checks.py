"""Whether a recorded solution is one: every number computed here from the Gram matrix, none read back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.qp.infeasible import proves_infeasible
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.outcome import Residuals, SolveStatus
from fedpcd_cli.rounds.program import HalfspaceProgram

TARGET = 1e-9
"""Residuals up to here count as solved, as in the specification of the rule."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FarkasProof:
    """Clients that pull exactly apart.

    For any d, 0 = (Σ λ_j g~_j) · d would have to be at least tau Σ λ_j ||g~_j||² > 0.

    Attributes:
        client_ids: Clients with λ_j > 0, heaviest first.
        source_rounds: Round of each one's update.
        weights: λ_j, sums to 1.
        length: ||Σ λ_j g~_j|| relative to Σ λ_j ||g~_j||; 0 up to rounding.
        required: tau Σ λ_j ||g~_j||², positive.
        holds: Whether both are so.
    """

    client_ids: tuple[int, ...]
    source_rounds: tuple[int, ...]
    weights: tuple[float, ...]
    length: float
    required: float
    holds: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Checks:
    """Outcome of the checks of one round.

    Attributes:
        residuals: Violation of each optimality condition; None where the round has no solution to check.
        proof: For contradicting constraints, the Farkas certificate.
    """

    residuals: Residuals | None
    proof: FarkasProof | None

    @property
    def passed(self) -> bool:
        """Whether everything that was checked holds."""
        solved = self.residuals is None or self.residuals.worst <= TARGET
        return solved and (self.proof is None or self.proof.holds)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A second solution of the recorded program, by CVXPY.

    Attributes:
        agrees: Whether both come to the same conclusion, and where both solve it, to the same direction.
        same_outcome: Whether both find it solvable, or both not.
        multiplier_difference: Largest |μ_j - μ'_j|; None where the program has no solution.
        direction_difference: ||d~* - d~'|| relative to the longer of both and of the average.
        n_active: Active constraints of the second solution.
        status: How the second solver ended.
        unique: Whether the Gram matrix of the active constraints is regular, so that μ is unique.
        seconds: Time it took.
    """

    agrees: bool
    same_outcome: bool
    multiplier_difference: float | None
    direction_difference: float | None
    n_active: int
    status: SolveStatus
    unique: bool
    seconds: float


def posed_program(certificate: Certificate) -> HalfspaceProgram:
    """Return the program with the recipe's tau, also where the round then cut it."""
    return HalfspaceProgram(
        gram=certificate.gram,
        reference_products=certificate.reference_products,
        thresholds=certificate.tau * np.diag(certificate.gram),
        primary=certificate.primary,
    )


def solved_program(certificate: Certificate) -> HalfspaceProgram:
    """Return the program that the recorded multipliers belong to, thresholds computed anew."""
    program = posed_program(certificate)
    return program if certificate.tau_used == certificate.tau else program.without_thresholds()


def check(certificate: Certificate) -> Checks:
    """Check the recorded multipliers and slacks, and the proof of infeasibility if there is one."""
    residuals = None
    if _has_solution(certificate):
        residuals = Residuals.of(solved_program(certificate), certificate.multipliers, certificate.slacks)
    return Checks(residuals=residuals, proof=farkas_proof(certificate))


def farkas_proof(certificate: Certificate) -> FarkasProof | None:
    """Return the recorded proof of infeasibility with its numbers, None for a feasible round."""
    weights = certificate.farkas
    if weights is None:
        return None
    program = posed_program(certificate)
    order = [int(j) for j in np.argsort(-weights, kind="stable") if weights[j] > 0]
    squared = max(0.0, float(weights @ program.gram @ weights))
    return FarkasProof(
        client_ids=tuple(int(certificate.client_ids[j]) for j in order),
        source_rounds=tuple(int(certificate.source_rounds[j]) for j in order),
        weights=tuple(float(weights[j]) for j in order),
        length=math.sqrt(squared) / float(weights @ program.row_norms),
        required=float(program.thresholds @ weights),
        holds=proves_infeasible(program, weights),
    )


def verify(certificate: Certificate) -> Verification | None:
    """Solve the recorded program again with CVXPY, which takes a second or two to load.

    Returns None for a round whose average is zero: nothing was solved.
    """
    if certificate.mean_norm == 0:
        return None
    program = solved_program(certificate) if _has_solution(certificate) else posed_program(certificate)
    second = solve(program, "cvxpy")
    has_solution = _has_solution(certificate)
    same = second.feasible == has_solution
    active = certificate.active | second.active
    unique = _is_regular(program.gram[np.ix_(active, active)])
    multipliers = direction = None
    if has_solution and second.feasible:
        moved = certificate.multipliers - second.multipliers
        multipliers = float(np.abs(moved).max(initial=0.0))
        size = max(
            certificate.reference_norm,
            program.direction_norm(certificate.multipliers, certificate.reference_norm),
            program.direction_norm(second.multipliers, certificate.reference_norm),
        )
        direction = math.sqrt(max(0.0, float(moved @ program.gram @ moved))) / (size or 1.0)
    return Verification(
        agrees=same and (direction is None or direction <= 1e-6),
        same_outcome=same,
        multiplier_difference=multipliers,
        direction_difference=direction,
        n_active=int(second.active.sum()),
        status=second.status,
        unique=unique,
        seconds=second.seconds,
    )


def _has_solution(certificate: Certificate) -> bool:
    """Whether the record claims a solution: not where constraints contradict or there is no average."""
    if certificate.mean_norm == 0:
        return False
    return certificate.status is not SolveStatus.INFEASIBLE


def _is_regular(gram: np.ndarray) -> bool:
    if gram.size == 0:
        return True
    norms = np.sqrt(np.diag(gram))
    return bool(np.linalg.eigvalsh(gram / norms[:, None] / norms[None, :])[0] > 1e-9)
