"""Clarabel through CVXPY: an interior-point method, independent of the default in every step."""

from __future__ import annotations

import warnings

import numpy as np

from fedpcd_cli.qp.scaling import UnitProgram

NAME = "cvxpy"
ACCURACY = 1e-6
_TOLERANCES = (1e-12, 1e-10, 1e-8)  # it gives up where rounding keeps it from the first
_ZERO = 1e-8  # an interior point's multipliers are never exactly zero


def multipliers(program: UnitProgram) -> np.ndarray | None:
    """Return the multipliers `[k]`, or None if Clarabel finds no solution."""
    import cvxpy as cp

    factor = program.factor()
    y = cp.Variable(factor.shape[1])
    constraint = factor @ y >= program.deficits
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(y)), [constraint])
    for tolerance in _TOLERANCES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the residuals say better what "may be inaccurate" means
                problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
        except cp.error.SolverError:
            continue
        if constraint.dual_value is not None and problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            break
    else:
        return None
    found = np.maximum(np.asarray(constraint.dual_value, dtype=np.float64), 0.0)
    return np.where(found > _ZERO * found.max(initial=0.0), found, 0.0)
