"""The program of one round (FedPCD, steps 3 and 4), posed and decided."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.pcd.average import Geometry
from fedpcd_cli.pcd.constraints import divisors
from fedpcd_cli.pcd.history import RoundRows
from fedpcd_cli.pcd.report import name_clients
from fedpcd_cli.qp.solution import Solution, SolveStatus
from fedpcd_cli.qp.solve import satisfied, solve
from fedpcd_cli.rounds.program import HalfspaceProgram

_USABLE_RESIDUAL = 1e-5  # of an inaccurate solution: a direction this close is better than giving up


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision:
    """What the round does.

    Attributes:
        solution: Multipliers of `program`; all zero if the round follows the average or makes no step.
        program: The program that they belong to: the posed one, or the one with tau = 0.
        farkas: Proof that the posed program has no solution, `[c]`.
        follows_average: The direction is the average itself.
    """

    solution: Solution
    program: HalfspaceProgram
    farkas: np.ndarray | None
    follows_average: bool


def decide(posed: Posed, found: RoundRows, *, solver: str, on_infeasible: str, round_index: int) -> Decision:
    """Solve the program and apply the rule for contradicting constraints.

    Raises:
        FedPCDError: They contradict each other and `on_infeasible` is `error`.
    """
    program = posed.program
    solution = solve(program, solver)
    farkas = solution.farkas
    if posed.geometry.mean_norm == 0:
        return Decision(solution=_at_rest(solution, program), program=program, farkas=None, follows_average=False)
    if farkas is not None and on_infeasible == "error":
        names = name_clients([int(client) for client in found.client_ids[farkas > 0]])
        raise FedPCDError(
            f"round {round_index}: {names} contradict each other: no direction gives all of them their share.",
            hint="Set aggregator.on_infeasible to fedavg or relax, or use fewer history_rounds.",
        )
    if farkas is not None and on_infeasible == "relax":
        program = program.without_thresholds()
        solution = solve(program, solver)
        if solution.status in (SolveStatus.UNCHANGED, SolveStatus.BENT):
            solution = replace(solution, status=SolveStatus.RELAXED)
    if solution.status is SolveStatus.INACCURATE and solution.residuals.worst > _USABLE_RESIDUAL:
        idle = np.zeros(program.size)
        solution = replace(solution, multipliers=idle, active=idle > 0, slacks=program.slacks(idle))
    gave_up = solution.status in (SolveStatus.INFEASIBLE, SolveStatus.INACCURATE)
    idle_round = not solution.active.any()
    if idle_round and not program.primary and not gave_up:  # with tau = 0 the shortest direction is zero
        return Decision(
            solution=_at_rest(solution, program), program=program, farkas=farkas, follows_average=False
        )
    return Decision(solution=solution, program=program, farkas=farkas, follows_average=idle_round)


def _at_rest(solution: Solution, program: HalfspaceProgram) -> Solution:
    """Return the record of a round without a step: d = 0."""
    idle = np.zeros(program.size)
    return replace(
        solution, multipliers=idle, active=idle > 0, slacks=-program.thresholds, status=SolveStatus.NO_STEP
    )
