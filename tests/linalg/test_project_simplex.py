"""Projection onto the probability simplex, against its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.linalg.simplex import project_simplex


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0.2, 0.8], [0.2, 0.8]),
        ([0.5, 0.7], [0.4, 0.6]),
        ([2.0, 0.0], [1.0, 0.0]),
        ([1.0, 1.0, -5.0], [0.5, 0.5, 0.0]),
        ([-3.0], [1.0]),
        ([0.5 + 0.1 * 2.0, 0.5 + 0.1 * 1.0], [0.55, 0.45]),
    ],
)
def test_hand_worked_points(y: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(project_simplex(np.array(y)), expected, atol=1e-15)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_is_the_nearest_point(values: list[float]) -> None:
    y = np.array(values)
    x = project_simplex(y)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0, abs=1e-9)
    # Nearest: (y - x) · (corner - x) <= 0 for every corner of the simplex.
    gaps = (y - x) - (y - x) @ x
    assert gaps.max() <= 1e-8 * (1 + np.abs(y).max())
