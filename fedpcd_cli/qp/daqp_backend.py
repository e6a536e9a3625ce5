"""daqp, a dual active-set solver in C (Arnström, Bemporad, Axehill, 2022): exact active sets."""

from __future__ import annotations

import numpy as np

from fedpcd_cli.qp.scaling import UnitProgram

NAME = "daqp"
ACCURACY = 1e-9


def multipliers(program: UnitProgram) -> np.ndarray | None:
    """Return the multipliers `[k]`, or None if daqp finds no solution.

    The program is posed as a least-distance problem in the coordinates of a rank-revealing factor: its Hessian
    is the identity, whatever the rank of the Gram matrix.
    """
    import daqp

    factor = program.factor()
    k, rank = factor.shape
    _, _, flag, info = daqp.solve(
        np.eye(rank),
        np.zeros(rank),
        np.ascontiguousarray(factor),
        np.full(k, 1e30),
        program.deficits,
        np.zeros(k, dtype=np.int32),
        primal_tol=1e-12,
        dual_tol=1e-12,
        iter_limit=100 * k + 1000,
    )
    if flag != 1:
        return None
    return np.maximum(-np.asarray(info["lam"], dtype=np.float64), 0.0)
