"""What constraints are divided by."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.components import ParameterError
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.pcd.constraints import divisors, ema_norms, empty_ema, update_ema
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, make_cohort


def test_moving_norms_by_hand():
    """beta = .8: after squares 4 and 9, v = .8 * .2 * 4 + .2 * 9 = 2.44, corrected by 1 - .64."""
    once = update_ema(empty_ema(), [7, 3], np.array([4.0, 1.0]), 0.8)
    np.testing.assert_allclose(ema_norms(once, np.array([7, 3]), 0.8), [2.0, 1.0])
    twice = update_ema(once, [7, 5], np.array([9.0, 16.0]), 0.8)
    np.testing.assert_allclose(ema_norms(twice, np.array([3, 5, 7]), 0.8), [1.0, 4.0, np.sqrt(2.44 / 0.36)])
    assert twice["client_ids"].tolist() == [3, 5, 7]
    assert twice["counts"].tolist() == [1, 1, 2]


def test_beta_zero_forgets_everything():
    ema = update_ema(update_ema(empty_ema(), [1], np.array([4.0]), 0.0), [1], np.array([25.0]), 0.0)
    assert ema_norms(ema, np.array([1]), 0.0).tolist() == [5.0]


def test_divisors():
    norms = np.array([2.0, 5.0])
    assert divisors("l2", norms, None, 0.5).tolist() == [2.5, 5.5]
    assert divisors("ema", norms, np.array([1.0, 3.0]), 0.5).tolist() == [1.5, 3.5]
    assert divisors("none", norms, None, 0.5).tolist() == [1.0, 1.0]


def test_epsilon_is_added_to_the_norm():
    certificate = aggregate_once(FedPCD(epsilon=1e-3), make_cohort([[3.0, 4.0]])).certificate
    assert certificate.scales.tolist() == [5.001]
    assert certificate.gram[0, 0] == pytest.approx((5 / 5.001) ** 2, rel=1e-14)
    assert certificate.reference_norm == pytest.approx(5 / 5.001, rel=1e-14)


def test_no_normalization_keeps_raw_products():
    rows = np.array([[3.0, 4.0], [0.5, -1.0]])
    certificate = aggregate_once(FedPCD(normalization="none"), make_cohort(rows)).certificate
    np.testing.assert_allclose(certificate.gram, rows @ rows.T)
    np.testing.assert_allclose(certificate.reference_products, rows @ rows.mean(axis=0))
    np.testing.assert_allclose(certificate.thresholds, 0.02 * np.array([25.0, 1.25]))
    assert certificate.reference_norm == pytest.approx(certificate.mean_norm)


def test_first_round_of_ema_is_l2_and_later_ones_remember():
    rows = [np.array([[2.0, 0.0]]), np.array([[0.0, 6.0]])]
    cohorts = [make_cohort(row, client_ids=[4], round_index=t) for t, row in enumerate(rows, start=1)]
    rule = FedPCD(normalization="ema", ema_beta=0.8)
    first, second = (r.certificate for r, _ in aggregate_all(rule, cohorts, n_clients=5, cohort_size=1))
    assert first.scales[0] == pytest.approx(2.0)
    assert second.scales[0] == pytest.approx(np.sqrt((0.8 * 0.2 * 4 + 0.2 * 36) / 0.36))


def test_moving_norm_of_a_cached_client_is_that_of_its_last_round():
    rule = FedPCD(normalization="ema", ema_beta=0.8)
    cohorts = [
        make_cohort([[2.0, 0.0]], client_ids=[0], round_index=1, n_clients=3),
        make_cohort([[0.0, 6.0]], client_ids=[0], round_index=2, n_clients=3),
        make_cohort([[1.0, 1.0]], client_ids=[1], round_index=3, n_clients=3),
    ]
    *_, (result, _) = aggregate_all(rule, cohorts, n_clients=3, cohort_size=1)
    expected = np.sqrt((0.8 * 0.2 * 4 + 0.2 * 36) / 0.36)
    np.testing.assert_allclose(result.certificate.scales, [np.sqrt(2), expected], rtol=1e-7)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tau": 1.5}, "fedpcd.tau must be at most 1; found 1.5"),
        ({"tau": -0.1}, "fedpcd.tau must be at least 0; found -0.1"),
        ({"history_rounds": -1}, "fedpcd.history_rounds must be at least 0; found -1"),
        ({"normalization": "l1"}, "fedpcd.normalization must be one of 'l2', 'ema' or 'none'; found 'l1'"),
        ({"ema_beta": 1.0}, "fedpcd.ema_beta must be less than 1; found 1.0"),
        ({"epsilon": 0.0}, "fedpcd.epsilon must be greater than 0; found 0.0"),
    ],
)
def test_parameters_out_of_range(params, message):
    with pytest.raises(ParameterError) as caught:
        FedPCD(**params)
    assert str(caught.value) == message
