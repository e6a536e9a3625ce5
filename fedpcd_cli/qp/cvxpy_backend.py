"""Clarabel through CVXPY: an interior-point method, independent of the default in every step."""

from __future__ import annotations

import warnings

import numpy as np

from fedpcd_cli.qp.scaling import UnitProgram

NAME = "cvxpy"
ACCURACY = 1e-6
_ZERO = 1e-8  # an interior point's multipliers are never exactly zero


def multipliers(program: UnitProgram) -> np.ndarray | None:
    """Return the multipliers `[k]`, or None if Clarabel finds no solution."""
    import cvxpy as cp

    factor = program.factor()
    y = cp.Variable(factor.shape[1])
    constraint = factor @ y >= program.deficits
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(y)), [constraint])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the residuals say better what "may be inaccurate" means
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    except cp.error.SolverError:
        return None
    if constraint.dual_value is None or problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return None
    found = np.maximum(np.asarray(constraint.dual_value, dtype=np.float64), 0.0)
    return np.where(found > _ZERO * found.max(initial=0.0), found, 0.0)
