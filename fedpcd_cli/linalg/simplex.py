"""Projection onto the probability simplex."""

from __future__ import annotations

import numpy as np


def project_simplex(y: np.ndarray) -> np.ndarray:
    """Return the point of the probability simplex nearest to `y`, float64 `[k]`.

    With s = y sorted in descending order and rho the largest k for which s_k + (1 - s_1 - ... - s_k) / k > 0,
    every entry is shifted by c = (1 - s_1 - ... - s_rho) / rho and cut at zero (Duchi et al., ICML 2008).
    """
    values = np.asarray(y, dtype=np.float64)
    values = values - values.max()  # a common shift changes nothing but keeps large entries accurate
    ordered = np.sort(values)[::-1]
    shifts = (1.0 - np.cumsum(ordered)) / np.arange(1, values.size + 1)
    rho = int(np.flatnonzero(ordered + shifts > 0)[-1])
    return np.asarray(np.maximum(values + shifts[rho], 0.0))
