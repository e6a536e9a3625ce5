"""Inner products against float64 matrix products."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_cli.linalg.gram import gram_matrix, inner_products
from fedpcd_cli.seeds import torch_generator


def _rows(k: int, n: int, dtype: torch.dtype = torch.float32, name: str = "rows") -> torch.Tensor:
    return torch.randn(k, n, generator=torch_generator(0, name, k, n), dtype=dtype)


def test_hand_worked_products() -> None:
    a = torch.tensor([[1.0, 2.0, 3.0]])
    b = torch.tensor([[1.0, 0.0, -1.0], [0.5, 0.5, 0.5]])
    np.testing.assert_array_equal(inner_products(a, b), [[-2.0, 3.0]])


@pytest.mark.parametrize("n", [1, 511, 40_000, 70_001])
def test_float32_products_agree_with_float64_across_chunks(n: int) -> None:
    a, b = _rows(3, n, name="a"), _rows(7, n, name="b")
    expected = a.double().numpy() @ b.double().numpy().T
    scale = np.linalg.norm(a.numpy(), axis=1)[:, None] * np.linalg.norm(b.numpy(), axis=1)[None, :]
    assert np.abs((inner_products(a, b) - expected) / scale).max() < 2e-7


def test_float64_rows_and_exact_products_keep_float64_accuracy() -> None:
    a, b = _rows(3, 5000, torch.float64, "a"), _rows(4, 5000, torch.float64, "b")
    np.testing.assert_allclose(inner_products(a, b), a.numpy() @ b.numpy().T, rtol=0, atol=1e-11)
    wide = inner_products(a.float(), b.float(), exact=True)
    np.testing.assert_allclose(wide, a.float().double().numpy() @ b.float().double().numpy().T, rtol=0, atol=1e-11)


def test_exact_products_survive_squares_beyond_float32() -> None:
    rows = torch.full((1, 4), 1e25)
    assert inner_products(rows, rows, exact=True)[0, 0] == pytest.approx(4e50, rel=1e-6)


def test_span_uses_only_its_columns() -> None:
    a, b = _rows(2, 100, torch.float64, "a"), _rows(3, 100, torch.float64, "b")
    expected = a[:, 20:55].numpy() @ b[:, 20:55].numpy().T
    np.testing.assert_allclose(inner_products(a, b, span=slice(20, 55)), expected, atol=1e-13)
    assert not inner_products(a, b, span=slice(20, 20)).any()


@pytest.mark.parametrize("index", [[2, 3, 4], [5, 1, 3], [0], []])
def test_row_index_selects_without_reading_other_rows(index: list[int]) -> None:
    a, b = _rows(2, 30_000, name="a"), _rows(6, 30_000, name="b")
    expected = inner_products(a, b[index])
    unused = [row for row in range(6) if row not in index]
    b[unused] = float("nan")
    np.testing.assert_allclose(inner_products(a, b, rows=index), expected, rtol=1e-6, atol=1e-2)


def test_half_precision_rows_are_widened() -> None:
    rows = torch.full((1, 4096), 1.0, dtype=torch.bfloat16)
    assert inner_products(rows, rows)[0, 0] == 4096.0


def test_gram_matrix_is_exactly_symmetric() -> None:
    gram = gram_matrix(_rows(9, 20_000))
    np.testing.assert_array_equal(gram, gram.T)
