"""The arithmetic that all schemes stand on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.data.schemes.dealing import apportion, deal_counts, log_dirichlet, split_by_owner


@pytest.mark.parametrize(
    ("total", "weights", "expected"),
    [
        (10, [1, 1, 1], [4, 3, 3]),  # the first of equal remainders
        (10, [2, 1, 1], [5, 3, 2]),
        (7, [5, 3, 1], [4, 2, 1]),  # exact 3.89, 2.33, 0.78
        (3, [0, 1, 0], [0, 3, 0]),
        (0, [1, 2], [0, 0]),
    ],
)
def test_largest_remainder_by_hand(total, weights, expected):
    assert apportion(total, np.array(weights)).tolist() == expected


def test_ties_follow_the_given_order():
    assert apportion(4, np.ones(3), np.array([2, 1, 0])).tolist() == [1, 1, 2]


@settings(max_examples=60, deadline=None)
@given(
    total=st.integers(0, 10**6),
    weights=st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=50).filter(
        lambda w: sum(w) > 1e-3
    ),
)
def test_shares_are_exact_to_within_one(total, weights):
    weights = np.array(weights)
    shares = apportion(total, weights)
    assert shares.sum() == total
    assert np.abs(shares - total * weights / weights.sum()).max() <= 1 + 1e-6
    assert (shares[weights == 0] == 0).all()


@pytest.mark.parametrize("alpha", [1e-9, 1e-3, 0.01, 1.0, 1e3, 1e9])
def test_log_dirichlet_is_finite_and_normalized(alpha):
    logs = log_dirichlet(np.random.default_rng(0), alpha, (200, 100))
    assert np.isfinite(logs).all()
    assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_log_dirichlet_has_the_moments_of_a_dirichlet(alpha):
    shares = np.exp(log_dirichlet(np.random.default_rng(1), alpha, (20_000, 4)))
    variance = 0.25 * 0.75 / (4 * alpha + 1)
    assert shares.mean(axis=0) == pytest.approx(0.25, abs=0.015)
    assert shares.var(axis=0) == pytest.approx(variance, rel=0.06)


def test_split_by_owner_sorts_and_leaves_out():
    parts = split_by_owner(np.array([2, 0, -1, 2, 0]), 4)
    assert [part.tolist() for part in parts] == [[1, 4], [], [0, 3], []]


def test_deal_counts_deals_what_it_is_told():
    targets = np.array([0, 1, 0, 1, 0, 1])
    counts = np.array([[2, 0], [1, 2], [0, 0]])
    parts = deal_counts(targets, counts, np.random.default_rng(0))
    assert [np.bincount(targets[p], minlength=2).tolist() for p in parts] == counts.tolist()
    assert len(np.unique(np.concatenate(parts))) == 5
