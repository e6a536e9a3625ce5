"""Metrics against values worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.metrics import DEFINITIONS, Metrics, compute_metrics


def test_hand_worked_federation():
    # Accuracies 1/2, 1, 0, 3/4; pooled 4.5... counted in examples: 1+2+0+3 of 2+2+4+4.
    metrics = compute_metrics(np.array([1, 2, 0, 3]), np.array([2, 2, 4, 4]), np.array([1.0, 0.0, 8.0, 3.0]))
    assert metrics.global_accuracy == 0.5
    assert metrics.mean_accuracy == 0.5625
    assert metrics.worst10_accuracy == metrics.min_accuracy == 0.0
    assert metrics.best10_accuracy == 1.0
    # squares: .25 + 1 + 0 + .5625 = 1.8125; variance 1.8125/4 - .5625^2
    assert metrics.accuracy_std == pytest.approx((1.8125 / 4 - 0.5625**2) ** 0.5)
    assert metrics.jain_index == pytest.approx(2.25**2 / (4 * 1.8125))
    assert metrics.loss == 1.0
    assert metrics.n_evaluated == 4


def test_worst_tenth_is_rounded_up():
    # 11 clients: ceil(1.1) = 2 lowest.
    correct = np.arange(11)
    metrics = compute_metrics(correct, np.full(11, 10), np.zeros(11))
    assert metrics.worst10_accuracy == pytest.approx(0.05)
    assert metrics.best10_accuracy == pytest.approx(0.95)


def test_clients_without_test_examples_are_not_evaluated():
    metrics = compute_metrics(np.array([1, 0]), np.array([1, 0]), np.zeros(2))
    assert metrics.n_evaluated == 1
    assert metrics.mean_accuracy == 1.0


def test_jain_limits():
    one_has_all = compute_metrics(np.array([5, 0, 0, 0]), np.full(4, 5), np.zeros(4))
    assert one_has_all.jain_index == 0.25
    all_zero = compute_metrics(np.zeros(4), np.full(4, 5), np.zeros(4))
    assert all_zero.jain_index == 1.0


def test_nobody_to_evaluate():
    with pytest.raises(ValueError, match="no client holds test examples"):
        compute_metrics(np.zeros(2), np.zeros(2), np.zeros(2))


def test_every_metric_is_defined():
    assert set(DEFINITIONS) == set(Metrics.__dataclass_fields__) - {"n_evaluated"}
