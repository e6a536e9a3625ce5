"""Shortest points of (box-restricted) convex hulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.qp.simplex import minimum_norm
from fedpcd_cli.seeds import numpy_generator


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[2.0, 0.0]], [1.0]),
        ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5]),
        ([[1.0, 0.0], [0.0, 2.0]], [0.8, 0.2]),
        ([[1.0, 0.0], [3.0, 0.5]], [1.0, 0.0]),
        ([[1.0, 0.0], [-1.0, 0.0]], [0.5, 0.5]),
        ([[1.0, 0.0], [0.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 0.0]),
    ],
)
def test_hand_worked_hulls(rows, expected):
    a = np.array(rows)
    solution = minimum_norm(a @ a.T)
    np.testing.assert_allclose(solution.weights, expected, atol=1e-14)
    assert solution.squared_norm == pytest.approx(np.sum((np.array(expected) @ a) ** 2), abs=1e-15)


def test_box_of_the_published_example():
    """FedMGDA+ with epsilon = .1 around (.25, .75): lambda* = (.35, .65)."""
    moved = np.array([[0.3, -0.1, 0.2, 0.1], [-0.1, 0.2, 0.1, -0.2]])
    unit = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    solution = minimum_norm(unit @ unit.T, lower=[0.15, 0.65], upper=[0.35, 0.85])
    assert solution.weights.tolist() == [0.35, 0.65]
    np.testing.assert_allclose(solution.weights @ unit, [0.065561, 0.320726, 0.386287, -0.320726], atol=1e-6)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6))
def test_optimal_among_all_exchanges(seed):
    rng = numpy_generator(seed, "hull")
    k, d = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    rows = rng.standard_normal((k, d)) + rng.choice([0.0, 0.5, 3.0]) * rng.standard_normal(d)
    if seed % 3 == 0:
        rows[rng.integers(0, k)] = rows[0]
    if seed % 5 == 0:
        rows *= 10 ** rng.uniform(-2, 2, size=(k, 1))
    rows *= 10.0 ** rng.uniform(-10, 10)
    reach = float(rng.choice([0.0, 0.05, 0.3, 1.0]))
    lower, upper = np.maximum(0.0, 1 / k - reach), np.minimum(1.0, 1 / k + reach)
    solution = minimum_norm(rows @ rows.T, lower=lower, upper=upper)
    weights = solution.weights
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert weights.min() >= lower
    assert weights.max() <= upper
    assert solution.residual <= 1e-9
    # No exchange of weight between two corners shortens the point (checked on the vectors).
    point = weights @ rows
    products = rows @ point
    gives, takes = weights > lower, weights < upper
    if gives.any() and takes.any():
        size = np.abs(rows @ rows.T) @ weights
        worst, best = np.where(gives, products, -np.inf).argmax(), np.where(takes, products, np.inf).argmin()
        assert products[worst] - products[best] <= 1e-9 * (size[worst] + size[best])


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_scale_changes_nothing_but_the_norm(scale):
    rows = numpy_generator(3, "scale").standard_normal((12, 5))
    plain, scaled = minimum_norm(rows @ rows.T), minimum_norm(scale * (rows @ rows.T))
    np.testing.assert_allclose(scaled.weights @ rows, plain.weights @ rows, atol=1e-12)


def test_agrees_with_cvxpy():
    import cvxpy as cp

    rows = numpy_generator(4, "hull").standard_normal((20, 30)) + 0.5
    weights = cp.Variable(20)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(rows.T @ weights)), [cp.sum(weights) == 1, weights >= 0, weights <= 0.1]
    )
    problem.solve(solver=cp.CLARABEL)
    found = minimum_norm(rows @ rows.T, upper=0.1)
    np.testing.assert_allclose(found.weights, weights.value, atol=1e-5)
    assert found.squared_norm == pytest.approx(problem.value, rel=1e-7)


def test_zero_gram_is_feasible():
    solution = minimum_norm(np.zeros((3, 3)), upper=0.5)
    assert solution.weights.sum() == pytest.approx(1.0)
    assert solution.squared_norm == 0


@pytest.mark.parametrize(
    ("gram", "bounds"),
    [
        (np.zeros((2, 3)), {}),
        (np.full((2, 2), np.nan), {}),
        (np.eye(2), {"upper": 0.4}),
        (np.eye(2), {"lower": 0.6}),
        (np.eye(2), {"lower": [0.5, 0.1], "upper": [0.4, 1.0]}),
    ],
)
def test_impossible_input_is_refused(gram, bounds):
    with pytest.raises(FedPCDError, match="minimum_norm needs"):
        minimum_norm(gram, **bounds)
