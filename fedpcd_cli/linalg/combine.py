"""Linear combinations of long rows: the one place where a direction of length P is formed."""

from __future__ import annotations

import numpy as np
import torch

from fedpcd_cli.errors import FedPCDError


def combine(rows: torch.Tensor, coefficients: np.ndarray, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return the sum of `coefficients[j] * rows[j]`, `[P]`, in the rows' dtype.

    Terms are added in order of j, one row at a time, so that equal inputs give equal bits whatever the number
    of threads. Rows with a zero coefficient are not read: they may hold anything.

    Args:
        rows: `[k, P]`.
        coefficients: float64 `[k]`.
        out: Add to this vector, in place, instead of starting at zero.

    Raises:
        FedPCDError: The number of coefficients is not the number of rows.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    if values.shape != (rows.shape[0],):
        raise FedPCDError(f"combine needs one coefficient per row, {rows.shape[0]}; found shape {values.shape}.")
    for j in np.flatnonzero(values):
        coefficient = float(values[j])
        if out is None:
            out = rows[j] * coefficient
        else:
            out.add_(rows[j], alpha=coefficient)
    return torch.zeros_like(rows[0]) if out is None else out
