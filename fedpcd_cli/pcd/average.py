"""The reference of a round: the average of the cohort, as products with the constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from fedpcd_cli.linalg.combine import combine
from fedpcd_cli.linalg.gram import inner_products
from fedpcd_cli.pcd.history import RoundRows
from fedpcd_cli.pcd.precision import Precision, remove_rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class Geometry:
    """Raw inner products of a round's constraints and of the average g_bar.

    Attributes:
        gram: `[c, c]`.
        products: g_j · g_bar, `[c]`.
        mean_norm: ||g_bar||; exactly 0 only if g_bar is.
        weights: Weight of each constraint in the average, `[c]`; 0 for cached ones.
        correction: Largest eigenvalue of the unit-row Gram matrix that was removed as rounding.
    """

    gram: np.ndarray
    products: np.ndarray
    mean_norm: float
    weights: np.ndarray
    correction: float


def measure(
    rows: torch.Tensor, ring: torch.Tensor | None, found: RoundRows, weights: np.ndarray, *, clean: bool
) -> Geometry:
    """Return the geometry of a round.

    Products with the average are sums of Gram rows. If the cohort's updates cancel, these sums lose their digits;
    then the average is formed once and multiplied like a row.

    Args:
        rows: The cohort's updates, `[m, P]`.
        ring: The history's rows.
        found: The round's constraints.
        weights: The cohort's weights, `[m]`.
        clean: Whether to remove rounding from the Gram matrix and everything that follows from it.
    """
    precision = Precision.of(rows.dtype)
    spread = np.zeros(found.size)
    spread[: found.fresh.size] = weights[found.fresh]
    gram, reference = found.gram, spread
    squared = float(spread @ gram @ spread)
    if squared <= precision.cancellation * float(spread @ found.norms) ** 2:
        gram = _with_average(rows, ring, found, weights)
        if gram[-1, -1] == 0:
            zero = np.zeros(found.size)
            return Geometry(gram=found.gram, products=zero, mean_norm=0.0, weights=spread, correction=0.0)
        reference = np.append(np.zeros(found.size), 1.0)
    gram, correction = remove_rounding(gram, precision.product) if clean else (gram, 0.0)
    products = gram @ reference
    return Geometry(
        gram=gram[: found.size, : found.size],
        products=products[: found.size],
        mean_norm=math.sqrt(max(0.0, float(reference @ products))),
        weights=spread,
        correction=correction,
    )


def _with_average(
    rows: torch.Tensor, ring: torch.Tensor | None, found: RoundRows, weights: np.ndarray
) -> np.ndarray:
    """Return the Gram matrix with the average as one more row, `[c + 1, c + 1]`."""
    average = combine(rows, weights)[None, :]
    largest = float(torch.linalg.vector_norm(average, ord=float("inf")))
    exact = not 1e-15 <= largest <= 1e15
    k, c = found.fresh.size, found.size
    gram = np.empty((c + 1, c + 1))
    gram[:c, :c] = found.gram
    gram[c, :k] = inner_products(average, rows, exact=exact)[0, found.fresh]
    if c > k and ring is not None:
        gram[c, k:c] = inner_products(average, ring, rows=found.slots, exact=exact)[0]
    gram[:c, c] = gram[c, :c]
    gram[c, c] = 0.0 if largest == 0 else inner_products(average, average, exact=exact)[0, 0]
    return gram
