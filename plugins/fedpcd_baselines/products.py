"""Inner products of updates whose squares may leave the range of float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

# Between these, squares of float32 entries lose nothing that matters to underflow or overflow.
_SAFE_SQUARES = (1e-28, 1e30)


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


def _leaves_range(squares: np.ndarray) -> bool:
    low, high = _SAFE_SQUARES
    return not bool(((squares >= low) & (squares <= high)).all())
