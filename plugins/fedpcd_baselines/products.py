"""Inner products of updates whose squares may leave the range of float32."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

# Between these, squares of float32 entries lose nothing that matters to underflow or overflow.
_SAFE_SQUARES = (1e-28, 1e30)
# Squared length of a mean over the squared mean length, below which a Gram matrix of float32 rows has lost it.
_CANCELLATION = 5e-3


def gram_in_range(rows: torch.Tensor) -> np.ndarray:
    """Return the Gram matrix of the rows, float64 `[m, m]`, for updates of any scale.

    Products are formed in float32 first and once more in float64 if a row's square is out of range.
    """
    from fedpcd_cli.api import gram_matrix

    gram = gram_matrix(rows)
    return gram_matrix(rows, exact=True) if _leaves_range(np.diag(gram)) else gram


def squared_norms(rows: torch.Tensor) -> np.ndarray:
    """Return ||row||² of each row, float64 `[m]`, for updates of any scale."""
    from fedpcd_cli.api import inner_products

    def measure(row: torch.Tensor, exact: bool) -> float:
        return float(inner_products(row[None], row[None], exact=exact)[0, 0])

    squares = [measure(row, exact=False) for row in rows]
    return np.array(
        [
            measure(row, exact=True) if _leaves_range(np.array(s)) else s
            for row, s in zip(rows, squares, strict=True)
        ]
    )


def mean_length(rows: torch.Tensor, gram: np.ndarray, used: np.ndarray) -> float:
    """Return the length of the uniform mean of the used rows; formed explicitly where the rows cancel."""
    from fedpcd_cli.api import combine

    weights = np.zeros(gram.shape[0])
    weights[used] = 1.0 / used.size
    square = float(weights @ gram @ weights)
    if square <= _CANCELLATION * float(weights @ np.sqrt(np.diag(gram))) ** 2:
        square = float(squared_norms(combine(rows, weights)[None])[0])
    return math.sqrt(square)


def _leaves_range(squares: np.ndarray) -> bool:
    low, high = _SAFE_SQUARES
    return not bool(((squares >= low) & (squares <= high)).all())
