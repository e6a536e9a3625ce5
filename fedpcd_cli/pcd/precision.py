"""What rounding in the rows' dtype does to inner products and sums of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Precision:
    """Limits below which a computed number is rounding.

    Attributes:
        product: Error of an inner product of unit rows.
        cancellation: ||g_bar||² relative to the square of the mean norm, below which the Gram matrix no longer
            resolves it and the average is formed explicitly.
        vanishing: Length of a sum of rows relative to the rows, below which it is zero.
    """

    product: float
    cancellation: float
    vanishing: float

    @classmethod
    def of(cls, dtype: torch.dtype) -> Precision:
        """Return the limits for rows of this dtype."""
        if dtype == torch.float64:
            return cls(product=0.0, cancellation=1e-10, vanishing=1e-10)
        return cls(product=2.0**-22, cancellation=5e-3, vanishing=4e-6)


def remove_rounding(gram: np.ndarray, error: float) -> tuple[np.ndarray, float]:
    """Return the Gram matrix with eigenvalues at rounding level set to zero, and the largest one removed.

    Inner products of float32 rows make duplicated or opposite rows look slightly independent, and a Gram matrix
    slightly indefinite; the program would bend towards that noise. The test is on unit rows, `[c, c]`; a matrix
    whose eigenvalues are all above the noise comes back as it is.
    """
    norms = np.sqrt(np.diag(gram))
    limit = error * float(np.sqrt(norms.size))
    if error == 0 or norms.size == 0:
        return gram, 0.0
    unit = gram / norms[:, None] / norms[None, :]
    try:
        np.linalg.cholesky(unit - limit * np.eye(norms.size))
    except np.linalg.LinAlgError:
        pass
    else:
        return gram, 0.0
    values, vectors = np.linalg.eigh(unit)
    noise = values <= limit
    if not noise.any():
        return gram, 0.0
    kept = vectors[:, ~noise] * np.sqrt(values[~noise])
    cleaned = (kept @ kept.T) * norms[:, None] * norms[None, :]
    return cleaned, float(np.abs(values[noise]).max())
