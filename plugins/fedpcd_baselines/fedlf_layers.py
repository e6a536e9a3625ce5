"""FedLF's programs: the shortest vector between all objectives' gradients, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedpcd_baselines.fedlf_history import LayerSystem

# Squared length, relative to its terms, below which float32 products no longer resolve a sum of rows.
_UNRESOLVED = 1e-6
# ‖h‖ relative to its terms, and ‖f‖² of the fair row relative to its own, below which they are rounding.
_NO_FAIRNESS = 1e-12
_NO_FAIR_ROW = 1e-14


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerStep:
    """The solution of one program.

    Attributes:
        layers: The layers that it covers; more than one after a merge.
        coefficients: Weight of each raw row in d_l, float64 `[m + k]`; all 0 if the layers stand still.
        length: ‖d_l‖ from inner products.
        residual: Largest relative violation of the optimality conditions.
    """

    layers: tuple[int, ...]
    coefficients: np.ndarray
    length: float
    residual: float

    @property
    def is_zero(self) -> bool:
        """Whether these layers stand still."""
        return not self.coefficients.any()


def fairness_weights(losses: np.ndarray) -> np.ndarray:
    """Return h of Eq. 5 without its positive factor 1/(√m ‖F‖), float64 `[m]`; all 0 for equal losses.

    The fair row is normalized, so that only the direction of h counts; without the factor, what is rounding
    doesn't depend on the scale of the losses.
    """
    peak = float(np.abs(losses).max())
    if peak == 0:
        return np.zeros_like(losses)
    scaled = losses / peak
    h = scaled * (scaled.sum() / (scaled @ scaled)) - 1.0
    return h if np.linalg.norm(h) > _NO_FAIRNESS * math.sqrt(h.size) else np.zeros_like(h)


def solve_layers(system: LayerSystem, h: np.ndarray, *, merge: bool, vanishing: float) -> list[LayerStep]:
    """Return a step for every layer, or for every group of merged ones, in order.

    Args:
        system: The rows and their products.
        h: Weights of the cohort in the fair row, `[m]`.
        merge: Whether a layer that stands still is solved again with the next one (the last one with the
            previous).
        vanishing: ‖d_l‖ / μ_l up to which it does.
    """
    groups: list[tuple[int, ...]] = [(layer,) for layer in range(len(system.spans))]
    steps: dict[tuple[int, ...], LayerStep] = {}
    position = 0
    while position < len(groups):
        layers = groups[position]
        steps[layers] = _solve(system, layers, h, vanishing)
        if merge and steps[layers].is_zero and len(groups) > 1:
            position = min(position, len(groups) - 2)
            groups[position : position + 2] = [groups[position] + groups[position + 1]]
        else:
            position += 1
    return [steps[layers] for layers in groups]


def products_with(system: LayerSystem, steps: Iterable[LayerStep]) -> np.ndarray:
    """Return g_i · d for the cohort, float64 `[m]`."""
    m = system.cohort_size
    return np.asarray(sum(system.gram(step.layers)[:m] @ step.coefficients for step in steps))


def _solve(system: LayerSystem, layers: tuple[int, ...], h: np.ndarray, vanishing: float) -> LayerStep:
    """Solve one program, once more from float64 products if the first ones don't resolve it."""
    step, resolution = _shortest(system.gram(layers), layers, h, vanishing)
    if resolution <= _UNRESOLVED and system.rows.element_size() < 8:
        step, _ = _shortest(system.exact_gram(layers), layers, h, vanishing)
    return step


def _shortest(
    gram: np.ndarray, layers: tuple[int, ...], h: np.ndarray, vanishing: float
) -> tuple[LayerStep, float]:
    """Return the shortest vector in the hull of all rows at one length (step 3 of the rule).

    Rows are the cohort's fragments, the fair one and the history's, each rescaled to the mean length μ of the
    cohort's. The programs are solved for unit rows; fragments of length 0 are left out.

    Returns:
        The step, and the smallest squared length, relative to its terms, among the sums of rows within.
    """
    m = h.size
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    live = np.flatnonzero(norms > 0)
    still = LayerStep(layers=layers, coefficients=np.zeros(norms.size), length=0.0, residual=0.0)
    if not (live < m).any():
        return still, math.inf
    from fedpcd_cli.api import minimum_norm

    mean_length = float(norms[live[live < m]].mean())
    unit = gram[np.ix_(live, live)] / norms[live][:, None] / norms[live][None, :]
    unit[np.diag_indices_from(unit)] = 1.0
    basis, resolution = np.eye(live.size), math.inf
    weights = np.append(h, np.zeros(norms.size - m))[live]
    if weights.any():
        weights = weights / np.abs(weights).sum()
        squared = float(weights @ unit @ weights)
        resolution = squared
        if squared > _NO_FAIR_ROW:
            basis = np.vstack([basis, weights / math.sqrt(squared)])
    solution = minimum_norm(basis @ unit @ basis.T)
    resolution = min(resolution, solution.squared_norm)
    if math.sqrt(solution.squared_norm) <= vanishing:
        return still, resolution
    coefficients = np.zeros(norms.size)
    coefficients[live] = (basis.T @ solution.weights) * (mean_length / norms[live])
    length = mean_length * math.sqrt(solution.squared_norm)
    return (
        LayerStep(layers=layers, coefficients=coefficients, length=length, residual=solution.residual),
        resolution,
    )
