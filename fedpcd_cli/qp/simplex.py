"""The shortest vector in a (box-restricted) convex hull, from the Gram matrix of its corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcd_cli.errors import FedPCDError

_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class SimplexSolution:
    """A minimizer of lambda' G lambda over the simplex.

    Attributes:
        weights: lambda, float64 `[k]`, sums to 1; entries at a bound equal it exactly.
        squared_norm: lambda' G lambda, never negative.
        residual: Largest violation of the optimality conditions, relative to the terms that form each one.
        iterations: Steps of the exact finish after the warm start.
    """

    weights: np.ndarray
    squared_norm: float
    residual: float
    iterations: int


def minimum_norm(
    gram: np.ndarray,
    *,
    lower: float | np.ndarray | None = None,
    upper: float | np.ndarray | None = None,
) -> SimplexSolution:
    """Return the minimizer of ½ λᵀGλ subject to Σλ = 1 and lower <= λ <= upper.

    The dual active-set solver daqp, on a slightly shifted G, guesses which entries lie at a bound; a primal
    active-set method on G itself finishes in float64. G may be singular (the minimizing vector is unique, λ need
    not be) and of any scale.

    Args:
        gram: G, symmetric positive semidefinite, float64 `[k, k]`.
        lower: Smallest allowed entries, 0 by default.
        upper: Largest allowed entries, 1 by default.

    Raises:
        FedPCDError: G is not square or not finite, or no λ satisfies the bounds.
    """
    g = np.asarray(gram, dtype=np.float64)
    k = g.shape[0]
    if g.shape != (k, k) or k == 0 or not np.isfinite(g).all():
        raise FedPCDError(f"minimum_norm needs a finite square Gram matrix; found shape {g.shape}.")
    low = np.broadcast_to(np.asarray(0.0 if lower is None else lower, dtype=np.float64), (k,)).copy()
    high = np.broadcast_to(np.asarray(1.0 if upper is None else upper, dtype=np.float64), (k,)).copy()
    rounding = 1e-12 * max(1.0, float(np.abs(low).sum()), float(np.abs(high).sum()))
    if (low > high).any() or low.sum() > 1 + rounding or high.sum() < 1 - rounding:
        raise FedPCDError(
            "minimum_norm needs lower <= upper, sum(lower) <= 1 <= sum(upper); "
            f"found sums {low.sum():.6g} and {high.sum():.6g}."
        )
    scale = float(np.abs(np.diag(g)).max())
    g = (g + g.T) / (2 * scale) if scale > 0 else np.zeros_like(g)
    zero_corner = (np.diag(g) == 0) & (high >= 1)
    if zero_corner.any() and not low.any():  # nothing is shorter than a zero row
        corner = np.zeros(k)
        corner[int(zero_corner.argmax())] = 1.0
        return SimplexSolution(weights=corner, squared_norm=0.0, residual=0.0, iterations=0)
    start = _feasible(_warm_start(g, low, high) if k > 1 else np.ones(1), low, high)
    weights, iterations = _finish(g, start, low, high)
    return SimplexSolution(
        weights=weights,
        squared_norm=max(0.0, float(weights @ g @ weights)) * scale,
        residual=_residual(g, weights, low, high),
        iterations=iterations,
    )


def _warm_start(g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return daqp's minimizer for a slightly shifted G, or the uniform weights if it gives up."""
    import daqp

    k = g.shape[0]
    sense = np.zeros(k + 1, dtype=np.int32)
    sense[k] = 5  # equality
    for shift in (1e-10, 1e-6):  # zero in the hull of many corners makes it cycle at the smaller one
        solution, _, flag, _ = daqp.solve(
            g + shift * np.eye(k),
            np.zeros(k),
            np.ones((1, k)),
            np.append(high, 1.0),
            np.append(low, 1.0),
            sense,
            primal_tol=1e-12,
            dual_tol=1e-13,
        )
        if flag == 1 and np.isfinite(solution).all():
            return np.asarray(solution)
    return np.full(k, 1.0 / k)


def _feasible(weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Snap entries to near bounds, then share what is missing from sum 1 over the room that is left."""
    snap = 1e-9
    weights = np.clip(weights, low, high)
    weights = np.where(weights - low <= snap, low, np.where(high - weights <= snap, high, weights))
    interior = (weights > low) & (weights < high)
    for usable in (interior, np.ones_like(interior)):
        missing = 1.0 - float(weights.sum())
        if abs(missing) <= 1e-15 * weights.size:
            break  # rounding: touching an entry at a bound would free it
        room = np.where(usable, high - weights if missing > 0 else weights - low, 0.0)
        if room.sum() > 0:
            weights = np.clip(weights + np.sign(missing) * room * min(1.0, abs(missing) / room.sum()), low, high)
    return weights


def _finish(g: np.ndarray, weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, int]:
    """Primal active-set method from a feasible point: exact up to rounding, for any positive semidefinite G."""
    free = (weights > low) & (weights < high)
    limit = 20 * weights.size + 50
    for iteration in range(limit):
        step = _step(g, weights, free)
        length, blocked = _longest(weights, step, low, high, free)
        weights = weights + length * step
        if blocked.any():
            weights = np.where(blocked, np.where(step < 0, low, high), weights)
            free = free & ~blocked
            continue
        released = _release(g, weights, low, high, free)
        if not released.any():
            return weights, iteration
        free = free | released
    return weights, limit


def _step(g: np.ndarray, weights: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the step to the minimizer over the free entries with their sum kept."""
    step = np.zeros_like(weights)
    index = np.flatnonzero(free)
    if index.size < 2:
        return step
    block = g[np.ix_(index, index)]
    norms = np.sqrt(np.diag(block))
    inverse = 1.0 / np.where(norms > 0, norms, 1.0)  # unit rows, so that short clients are solved as exactly
    ones = inverse / inverse.max()
    gradient = block @ weights[index] + g[np.ix_(index, np.flatnonzero(~free))] @ weights[~free]
    system = np.zeros((index.size + 1, index.size + 1))
    system[:-1, :-1] = inverse[:, None] * block * inverse[None, :]
    system[:-1, -1] = system[-1, :-1] = ones
    # The multiplier of the sum is near the gradient's smallest entry at the solution; any shift is allowed.
    shift = gradient.min()
    target = np.append((shift - gradient) * inverse, 0.0)
    solution = np.linalg.lstsq(system, target, rcond=1e-15)[0][:-1] * inverse
    step[index] = solution
    largest = index[int(np.abs(weights[index]).argmax())]
    step[largest] -= solution.sum()  # the sum is kept to the last bit that matters
    return step


def _longest(
    weights: np.ndarray, step: np.ndarray, low: np.ndarray, high: np.ndarray, free: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the largest fraction of the step, at most 1, that keeps the bounds, and the entries that stop it."""
    room = np.where(step < 0, weights - low, high - weights)
    moving = free & (np.abs(step) > np.finfo(np.float64).tiny)
    fraction = np.full(weights.size, np.inf)
    fraction[moving] = room[moving] / np.abs(step[moving])
    length = min(1.0, float(fraction.min(initial=np.inf)))
    return length, moving & (fraction <= length) & (fraction < np.inf) & (length < 1.0)


def _release(
    g: np.ndarray, weights: np.ndarray, low: np.ndarray, high: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """Return the bound entries whose release lowers the norm most: one, or a pair if nothing else is free."""
    gradient = g @ weights
    tolerance = _TOLERANCE * (np.abs(g) @ np.abs(weights))
    room_up = (weights < high) & (high > low)
    room_down = (weights > low) & (high > low)
    released = np.zeros(weights.size, dtype=bool)
    level = gradient[free].mean() if free.any() else None
    rise = np.where(room_up & ~free, gradient + tolerance, np.inf)  # wants to grow if below the level
    fall = np.where(room_down & ~free, gradient - tolerance, -np.inf)
    if level is None:
        if np.isfinite(rise.min()) and np.isfinite(fall.max()) and rise.min() < fall.max():
            released[[int(rise.argmin()), int(fall.argmax())]] = True
        return released
    slack = _TOLERANCE * abs(level)
    gain_rise, gain_fall = level - slack - rise.min(), fall.max() - level - slack
    if max(gain_rise, gain_fall) > 0:
        released[int(rise.argmin()) if gain_rise >= gain_fall else int(fall.argmax())] = True
    return released


def _residual(g: np.ndarray, weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Return the largest relative violation: growing entry j at the cost of entry i must not pay off."""
    gradient = g @ weights
    size = np.abs(g) @ np.abs(weights)
    can_grow, can_shrink = weights < high, weights > low
    worst = abs(float(weights.sum()) - 1.0)
    if can_grow.any() and can_shrink.any():
        i = int(np.where(can_shrink, gradient, -np.inf).argmax())
        j = int(np.where(can_grow, gradient, np.inf).argmin())
        terms = float(size[i] + size[j])
        if terms > 0:
            worst = max(worst, (gradient[i] - gradient[j]) / terms)
    return worst
