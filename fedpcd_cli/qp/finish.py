"""The last digits: an active-set method on the Gram matrix itself, in float64."""

from __future__ import annotations

import numpy as np

_TOLERANCE = 1e-12


def finish(gram: np.ndarray, deficits: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return μ >= 0 minimizing ½ μᵀGμ - deficitsᵀμ, exact zeros included, from a near solution.

    This is Lawson and Hanson's method (Solving Least Squares Problems, 1974, algorithm NNLS) in Gram space: solve
    on the active rows, drop what turns negative, add the most violated row, until no row is violated. It ends
    after one solve if `start` has the right active set. Where active rows are dependent it may miss the minimum:
    the caller verifies the result.

    Args:
        gram: G with unit diagonal, `[k, k]`, positive semidefinite, possibly singular.
        deficits: `[k]`.
        start: Non-negative multipliers `[k]`.
    """
    multipliers = np.maximum(start, 0.0)
    active = multipliers > 0
    for _ in range(3 * gram.shape[0] + 30):
        multipliers, active = _solve_on(gram, deficits, multipliers, active)
        slacks = gram @ multipliers - deficits
        terms = np.abs(gram) @ multipliers + np.abs(deficits)
        violation = np.where(active, 0.0, -slacks - _TOLERANCE * terms)
        if violation.max(initial=0.0) <= 0:
            break
        active = active.copy()
        active[int(violation.argmax())] = True
    return np.where(active, multipliers, 0.0)


def _solve_on(
    gram: np.ndarray, deficits: np.ndarray, multipliers: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimize over the active rows, dropping rows until all multipliers are positive."""
    while active.any():
        index = np.flatnonzero(active)
        target = np.zeros_like(multipliers)
        target[index] = _symmetric_solve(gram[np.ix_(index, index)], deficits[index])
        negative = active & (target <= 0)
        if not negative.any():
            return target, active
        # Move towards the target until the first multiplier reaches zero; a row that just joined may be first.
        gap = multipliers[negative] - target[negative]
        fractions = np.where(gap > 0, multipliers[negative] / np.where(gap > 0, gap, 1.0), 0.0)
        length = float(fractions.min())
        multipliers = np.where(active, multipliers + length * (target - multipliers), 0.0)
        blocked = np.flatnonzero(negative)[fractions <= length]
        active = active.copy()
        active[blocked] = False
        multipliers[~active] = 0.0
    return np.zeros_like(multipliers), active


def _symmetric_solve(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve with one step of refinement; least squares where the matrix is singular."""
    try:
        factor = np.linalg.cholesky(matrix)
        if np.diag(factor).min() > 1e-7:
            inverse = np.linalg.inv(factor)
            solution = inverse.T @ (inverse @ target)
            return np.asarray(solution + inverse.T @ (inverse @ (target - matrix @ solution)))
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(matrix, target, rcond=1e-14)[0])
