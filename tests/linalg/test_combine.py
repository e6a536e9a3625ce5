"""Linear combinations of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.linalg.combine import combine


def test_hand_worked_sum() -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, -4.0], [10.0, 10.0]], dtype=torch.float64)
    assert combine(rows, np.array([2.0, 0.5, -0.1])).tolist() == [2.5, 1.0]


def test_rows_without_coefficient_may_hold_anything() -> None:
    rows = torch.tensor([[float("nan"), float("inf")], [1.0, 2.0]])
    assert combine(rows, np.array([0.0, 3.0])).tolist() == [3.0, 6.0]


def test_no_coefficient_gives_zero() -> None:
    rows = torch.full((2, 3), float("nan"))
    assert combine(rows, np.zeros(2)).tolist() == [0.0, 0.0, 0.0]


def test_out_is_added_to_in_place() -> None:
    rows = torch.tensor([[1.0, 1.0]])
    out = torch.tensor([5.0, 6.0])
    assert combine(rows, np.array([2.0]), out=out) is out
    assert out.tolist() == [7.0, 8.0]


def test_rows_stay_as_they_were_and_dtype_is_kept() -> None:
    rows = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    result = combine(rows, np.array([1.0, 1.0]))
    assert result.dtype == torch.float32
    assert rows.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_wrong_number_of_coefficients_is_named() -> None:
    with pytest.raises(FedPCDError, match=r"one coefficient per row, 2; found shape \(3,\)"):
        combine(torch.zeros(2, 4), np.zeros(3))
