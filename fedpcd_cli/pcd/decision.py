"""What a round does with its program (FedPCD, step 4). Nothing here needs a vector of length P, nor torch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.pcd.report import name_clients
from fedpcd_cli.qp.solution import Solution, SolveStatus
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.program import HalfspaceProgram

_USABLE_RESIDUAL = 1e-5  # of an inaccurate solution: a direction this close is better than giving up


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


def decide(
    program: HalfspaceProgram,
    *,
    mean_norm: float,
    client_ids: np.ndarray,
    solver: str,
    on_infeasible: str,
    round_index: int,
) -> Decision:
    """Solve the program and apply the rule for contradicting constraints.

    Args:
        program: The posed program.
        mean_norm: ||g_bar||; if 0 the round makes no step.
        client_ids: Client of each constraint, `[c]`.
        solver: Name of the backend.
        on_infeasible: `fedavg`, `relax` or `error`.
        round_index: t, for the message.

    Raises:
        FedPCDError: They contradict each other and `on_infeasible` is `error`.
    """
    solution = solve(program, solver)
    farkas = solution.farkas
    if mean_norm == 0:
        return Decision(solution=_at_rest(solution, program), program=program, farkas=None, follows_average=False)
    if farkas is not None and on_infeasible == "error":
        names = name_clients([int(client) for client in client_ids[farkas > 0]])
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
