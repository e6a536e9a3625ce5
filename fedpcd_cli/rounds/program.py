"""The quadratic program of one round, in Gram space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.errors import FedPCDError


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfspaceProgram:
    """min over d of ½||d - g_0||² subject to g_j · d >= thresholds_j for every constraint j.

    Only inner products are kept. With A the matrix of constraint rows, the minimizer is d = g_0 + Aᵀμ for the
    multipliers μ >= 0 that minimize ½ μᵀGμ - (thresholds - a)ᵀμ, and the slacks are s = Gμ + a - thresholds.

    Attributes:
        gram: G = A Aᵀ, float64 `[c, c]`, symmetric positive semidefinite; symmetrized here and nowhere else.
        reference_products: a = A g_0, float64 `[c]`.
        thresholds: tau * diag(G), float64 `[c]`, never negative.
        primary: Whether g_0 is in the objective. If not, the program asks for the shortest admissible d.

    Raises:
        FedPCDError: Shapes disagree, values are not finite, or a threshold is negative.
    """

    gram: np.ndarray
    reference_products: np.ndarray
    thresholds: np.ndarray
    primary: bool = True

    def __post_init__(self) -> None:
        gram = np.asarray(self.gram, dtype=np.float64)
        products = np.asarray(self.reference_products, dtype=np.float64)
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        c = thresholds.size
        if gram.shape != (c, c) or products.shape != (c,) or thresholds.shape != (c,):
            raise FedPCDError(
                "A half-space program needs gram [c, c], reference_products [c] and thresholds [c]; "
                f"found {gram.shape}, {products.shape} and {thresholds.shape}."
            )
        if not (np.isfinite(gram).all() and np.isfinite(products).all() and np.isfinite(thresholds).all()):
            raise FedPCDError("A half-space program must be finite; found NaN or Inf among its inner products.")
        if c and thresholds.min() < 0:
            raise FedPCDError(f"Thresholds must be at least 0; found {thresholds.min():.6g}.")
        object.__setattr__(self, "gram", gram if np.array_equal(gram, gram.T) else (gram + gram.T) / 2)
        object.__setattr__(self, "reference_products", products)
        object.__setattr__(self, "thresholds", thresholds)

    @property
    def size(self) -> int:
        """c, the number of constraints."""
        return int(self.thresholds.size)

    @property
    def linear(self) -> np.ndarray:
        """Products of the constraints with the point that the objective measures from, `[c]`."""
        return self.reference_products if self.primary else np.zeros_like(self.reference_products)

    @property
    def deficits(self) -> np.ndarray:
        """What that point lacks to meet each threshold, `[c]`; positive means violated."""
        return np.asarray(self.thresholds - self.linear)

    @property
    def row_norms(self) -> np.ndarray:
        """||g_j||, `[c]`."""
        return np.sqrt(np.maximum(np.diag(self.gram), 0.0))

    def slacks(self, multipliers: np.ndarray) -> np.ndarray:
        """Return G μ + a - thresholds, `[c]`; negative means violated."""
        return np.asarray(self.gram @ multipliers - self.deficits)

    def direction_norm(self, multipliers: np.ndarray, reference_norm: float) -> float:
        """Return ||d|| of the direction that multipliers `[c]` give.

        Args:
            multipliers: μ.
            reference_norm: ||g_0||, which the program itself doesn't hold.
        """
        squared = float(multipliers @ self.gram @ multipliers)
        if self.primary:
            squared += reference_norm**2 + 2.0 * float(self.reference_products @ multipliers)
        return math.sqrt(max(0.0, squared))

    def without_thresholds(self) -> HalfspaceProgram:
        """Return the program with every threshold at 0: always feasible, d = 0 satisfies it."""
        return HalfspaceProgram(
            gram=self.gram,
            reference_products=self.reference_products,
            thresholds=np.zeros_like(self.thresholds),
            primary=self.primary,
        )
