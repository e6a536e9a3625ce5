"""Solve a half-space program: check, scale, call a backend, finish, verify."""

from __future__ import annotations

import time
from types import ModuleType

import numpy as np

from fedpcd_cli.errors import UsageError, did_you_mean
from fedpcd_cli.qp import cvxpy_backend, daqp_backend
from fedpcd_cli.qp.finish import finish
from fedpcd_cli.qp.infeasible import farkas_certificate
from fedpcd_cli.qp.scaling import UnitProgram
from fedpcd_cli.qp.solution import Residuals, Solution, SolveStatus
from fedpcd_cli.rounds.program import HalfspaceProgram

_BACKENDS: dict[str, ModuleType] = {backend.NAME: backend for backend in (daqp_backend, cvxpy_backend)}
_SATISFIED = 1e-12


def solve(program: HalfspaceProgram, solver: str = "daqp") -> Solution:
    """Return the multipliers of a program, always with a status and its residuals.

    A reference that satisfies every constraint is returned without a solve. Otherwise the multipliers come from
    the backend; those of `daqp` are finished to full float64 accuracy on the Gram matrix, those of `cvxpy` are
    left as they are, as an independent check. A program without solution comes back as `INFEASIBLE` with its
    Farkas certificate. One that `daqp` can neither solve nor a certificate refute, because rows are nearly
    dependent, is given to `cvxpy`; if that fails too it comes back as `INACCURATE`.

    Raises:
        UsageError: There is no such solver.
    """
    if solver not in _BACKENDS:
        raise UsageError(f"Unknown solver '{solver}'.{did_you_mean(solver, _BACKENDS)}")
    started = time.perf_counter()
    multipliers = np.zeros(program.size)
    status, farkas = SolveStatus.UNCHANGED, None
    if not satisfied(program):
        multipliers, status = _bend(program, _BACKENDS[solver])
        if status is SolveStatus.INACCURATE:
            farkas = farkas_certificate(program)
            if farkas is not None:
                multipliers, status = np.zeros(program.size), SolveStatus.INFEASIBLE
            elif solver == daqp_backend.NAME:
                second, second_status = _bend(program, cvxpy_backend, polish=True)
                if _worst_residual(program, second) < _worst_residual(program, multipliers):
                    multipliers, status, solver = second, second_status, cvxpy_backend.NAME
    slacks = program.slacks(multipliers)
    return Solution(
        multipliers=multipliers,
        slacks=slacks,
        active=multipliers > 0,
        status=status,
        residuals=Residuals.of(program, multipliers, slacks),
        farkas=farkas,
        solver=solver,
        seconds=time.perf_counter() - started,
    )


def satisfied(program: HalfspaceProgram) -> bool:
    """Whether the reference itself meets every threshold, up to rounding."""
    return not falls_short(program).any()


def falls_short(program: HalfspaceProgram) -> np.ndarray:
    """Return which thresholds the reference itself does not meet, beyond rounding, bool `[c]`."""
    allowance = _SATISFIED * (np.abs(program.linear) + program.thresholds)
    return np.asarray(program.deficits > np.where(program.thresholds > 0, allowance, 0.0))


def _bend(
    program: HalfspaceProgram, backend: ModuleType, *, polish: bool = False
) -> tuple[np.ndarray, SolveStatus]:
    """Return the best multipliers that were found, and whether they are good enough."""
    unit = UnitProgram.of(program)
    found = backend.multipliers(unit) if unit.rows.size else None
    if found is None:
        return np.zeros(program.size), SolveStatus.INACCURATE
    candidates = [found]
    if polish or backend is daqp_backend:
        candidates.insert(0, finish(unit.gram, unit.deficits, found))
    candidates = [unit.original(candidate, program.size) for candidate in candidates]
    residuals = [_worst_residual(program, candidate) for candidate in candidates]
    best = int(np.argmin(residuals))
    accurate = residuals[best] <= backend.ACCURACY
    return candidates[best], SolveStatus.BENT if accurate else SolveStatus.INACCURATE


def _worst_residual(program: HalfspaceProgram, multipliers: np.ndarray) -> float:
    return Residuals.of(program, multipliers, program.slacks(multipliers)).worst
