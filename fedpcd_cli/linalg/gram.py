"""Inner products of long vectors, in one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

# A chunk of columns of the smaller operand stays in a core's level-2 cache while the larger one streams past it.
# All chunks of a block are one batched product: threads meet once per block, not once per chunk, which is what
# keeps the speed on a machine that does other work too.
_CACHE_BYTES = 160 * 1024
_SMALLEST_CHUNK = 512
_ACCELERATOR_CHUNK = 1 << 18
_BLOCK_BYTES = 8 * 1024 * 1024  # of partial results, and of rows gathered or widened at a time


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
    chunk = _chunk_columns(a, min(total.shape))
    copies = index is not None or a.dtype != (total.dtype if wide else torch.float32)
    block = _block_columns(total, chunk, n_rows if copies else 0)
    gathered = b.new_empty(0 if index is None else n_rows * min(block, last - first))
    for start in range(first, last, block):
        stop = min(start + block, last)
        left, right = a[:, start:stop], b[:, start:stop]
        if isinstance(index, torch.Tensor):
            place = gathered[: n_rows * (stop - start)].view(n_rows, stop - start)
            right = torch.index_select(right, 0, index, out=place)
        if wide:
            total += left.to(total.dtype) @ right.to(total.dtype).T
        else:
            _add_chunked(total, left.float(), right.float(), chunk)
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


def _add_chunked(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor, chunk: int) -> None:
    """Add `left @ right.T` to the total, in float32 within a chunk of columns and in the total's type across."""
    n_chunks = left.shape[1] // chunk
    body = n_chunks * chunk
    if n_chunks:
        partial = torch.bmm(
            left[:, :body].view(-1, n_chunks, chunk).permute(1, 0, 2),
            right[:, :body].view(-1, n_chunks, chunk).permute(1, 2, 0),
        )
        total += partial.sum(dim=0, dtype=total.dtype)
    if body < left.shape[1]:
        total += left[:, body:] @ right[:, body:].T


def _chunk_columns(rows: torch.Tensor, smaller: int) -> int:
    if rows.device.type != "cpu":
        return _ACCELERATOR_CHUNK
    return max(_SMALLEST_CHUNK, _CACHE_BYTES // (smaller * rows.element_size()))


def _block_columns(total: torch.Tensor, chunk: int, copied_rows: int) -> int:
    """Return how many columns to take at a time: whole chunks, bounded by what a block needs beside its input."""
    chunks = max(1, _BLOCK_BYTES // (4 * total.numel()))
    if copied_rows:
        chunks = min(chunks, max(1, _BLOCK_BYTES // (4 * copied_rows * chunk)))
    return chunks * chunk


def _accumulator(rows: torch.Tensor) -> torch.dtype:
    return torch.float32 if rows.device.type == "mps" else torch.float64  # MPS has no float64
