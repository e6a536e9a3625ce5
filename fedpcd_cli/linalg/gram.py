"""Inner products of long vectors, in one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

# A column chunk of the smaller operand stays in a core's level-2 cache while the larger one streams past it;
# an accelerator wants few, large products instead.
_CACHE_BYTES = 512 * 1024
_ACCELERATOR_COLUMNS = 1 << 18
_SMALLEST_CHUNK = 512


def inner_products(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    span: slice | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
    exact: bool = False,
) -> np.ndarray:
    """Return all inner products between the rows of `a` and the rows of `b`, float64 `[a, b]`.

    Products of float32 rows are formed in float32 within a chunk of columns and added up in float64 across
    chunks; float64 rows are multiplied in float64. Nothing of length P is copied.

    Args:
        a: `[a, P]`.
        b: `[b, P]`, same dtype and device as `a`.
        span: Columns to use; all if None.
        rows: Rows of `b` to use, in this order; the result is then `[a, len(rows)]`. Other rows are not read.
        exact: Convert each chunk to float64 first: slower, for values whose squares leave the float32 range.
    """
    first, last, _ = (span or slice(None)).indices(a.shape[1])
    index = _row_index(b, rows)
    n_rows = b.shape[0] if index is None else _length(index)
    if a.shape[0] == 0 or n_rows == 0 or last <= first:
        return np.zeros((a.shape[0], n_rows))
    if isinstance(index, slice):
        b, index = b[index], None
    wide = exact or a.dtype == torch.float64
    total = torch.zeros((a.shape[0], n_rows), dtype=_accumulator(a), device=a.device)
    step = _columns_per_chunk(a, min(a.shape[0], n_rows))
    for start in range(first, last, step):
        stop = min(start + step, last)
        left, right = a[:, start:stop], b[:, start:stop]
        if isinstance(index, torch.Tensor):
            right = right.index_select(0, index)
        if wide:
            left, right = left.to(total.dtype), right.to(total.dtype)
        elif left.dtype not in (torch.float32, torch.float64):
            left, right = left.float(), right.float()
        total += left @ right.T
    return total.cpu().numpy().astype(np.float64, copy=False)


def gram_matrix(rows: torch.Tensor, *, span: slice | None = None, exact: bool = False) -> np.ndarray:
    """Return the Gram matrix of the rows, float64 `[k, k]`, exactly symmetric."""
    products = inner_products(rows, rows, span=span, exact=exact)
    return np.asarray((products + products.T) / 2)


def _row_index(b: torch.Tensor, rows: Sequence[int] | np.ndarray | None) -> slice | torch.Tensor | None:
    """Return None for all rows in order, a slice for neighbors, else an index to gather by."""
    if rows is None:
        return None
    index = np.asarray(rows, dtype=np.int64)
    if index.size and np.array_equal(index, np.arange(index[0], index[0] + index.size)):
        return slice(int(index[0]), int(index[-1]) + 1)
    return torch.from_numpy(index.copy()).to(b.device)


def _length(index: slice | torch.Tensor) -> int:
    return index.stop - index.start if isinstance(index, slice) else int(index.numel())


def _columns_per_chunk(rows: torch.Tensor, smaller: int) -> int:
    if rows.device.type != "cpu":
        return _ACCELERATOR_COLUMNS
    return max(_SMALLEST_CHUNK, _CACHE_BYTES // (smaller * rows.element_size()))


def _accumulator(rows: torch.Tensor) -> torch.dtype:
    return torch.float32 if rows.device.type == "mps" else torch.float64  # MPS has no float64
