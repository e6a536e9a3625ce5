"""q-FedAvg against values worked by hand, its limits and the edges of its formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedpcd_baselines.qffl import QFFL
from fedpcd_cli.api import Needs, PluginError
from fedpcd_cli.testing.cohorts import aggregate_once, example_rounds, make_cohort


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), **tolerance)


def test_by_hand():
    # q = 2, η = ½, F = (1, 2), g_1 = (2, 0), g_2 = (0, 1), ||g||² = (4, 1).
    # Σ f^q g = 1·(2, 0) + 4·(0, 1) = (2, 4)
    # h_1 = 2·1·4 + 2·1 = 10, h_2 = 2·2·1 + 2·4 = 12, so u = (2, 4) / 22 and d = u / η = (2, 4) / 11.
    cohort = make_cohort([[2, 0], [0, 1]], local_lr=0.5, received_losses=[1, 2], n_examples=[1, 50])
    aggregation = aggregate_once(QFFL(q=2.0), cohort)
    close(aggregation.direction, [2 / 11, 4 / 11])
    np.testing.assert_allclose(aggregation.client_coefficients, [1 / 11, 4 / 11])


def test_worked_example():
    # Round 1, q = 1: f = (2, 1), ||g||² = (15, 10), Σ f g = 2 g_1 + g_2; Σ h = (15 + 10) + 10·(2 + 1) = 55,
    # so u = (2 g_1 + g_2) / 55 = (2 Δ_1 + Δ_2) / 5.5. Round 2: ||g||² = (15, 15), Σ h = 30 + 27 = 57,
    # so u = (1.5 Δ_1 + 1.2 Δ_2) / 5.7.
    first, second = example_rounds()
    tolerance = {"rtol": 0, "atol": 1e-6}
    close(0.1 * aggregate_once(QFFL(q=1.0), first).direction, [0.090909, 0, 0.090909, 0], **tolerance)
    close(0.1 * aggregate_once(QFFL(q=1.0), second).direction, [0.073684, -0.036842, 0.015789, 0.1], **tolerance)


def test_q_zero_is_the_uniform_mean():
    cohort = make_cohort([[1, 2], [3, -4]], n_examples=[1, 99], received_losses=[0, 7])
    close(aggregate_once(QFFL(q=0.0), cohort).direction, [2, -1])


def test_one_client_is_shorter_than_its_own_update():
    # m = 1: d = f^q g / (η q f^(q-1) ||g||² + f^q); q = 1, f = 2, η = 0.1, ||g||² = 25: 2 g / (2.5 + 2).
    cohort = make_cohort([[3, 4]], received_losses=[2])
    close(aggregate_once(QFFL(q=1.0), cohort).direction, [6 / 4.5, 8 / 4.5])


def test_identical_clients_step_along_fedavg():
    cohort = make_cohort([[3, 4]] * 3, received_losses=[2, 2, 2])
    close(aggregate_once(QFFL(q=1.0), cohort).direction, [6 / 4.5, 8 / 4.5])


@pytest.mark.parametrize("q", [0.1, 1.0, 5.0])
def test_equals_the_formula_in_plain_numpy(q):
    rng = np.random.default_rng(3)
    g, losses, lr = rng.normal(size=(4, 6)), rng.uniform(0.1, 3, 4), 0.05
    f = losses + 1e-10
    h = q * f ** (q - 1) * (g**2).sum(1) + f**q / lr
    u = (f[:, None] ** q * g).sum(0) / h.sum()
    cohort = make_cohort(g, local_lr=lr, received_losses=losses)
    close(lr * aggregate_once(QFFL(q=q), cohort).direction, u, rtol=1e-12, atol=0)


def test_never_longer_than_the_weighted_mean():
    rng = np.random.default_rng(0)
    for q in (0.1, 1.0, 5.0):
        g, losses = rng.normal(size=(5, 4)), rng.uniform(0.01, 3, 5)
        step = aggregate_once(QFFL(q=q), make_cohort(g, received_losses=losses)).direction.norm()
        weights = losses**q / (losses**q).sum()
        assert step <= np.linalg.norm(weights @ g) * (1 + 1e-9)


def test_a_large_q_leaves_the_range_of_neither_end():
    # 1e9^30 over 1e-3^30 is 1e360, beyond float64: the client with the larger loss is alone, and for it
    # d = g / (η q ||g||² / f + 1) = g / (3e-9 + 1).
    cohort = make_cohort([[1, 0], [0, 1]], received_losses=[1e9, 1e-3])
    close(aggregate_once(QFFL(q=30.0), cohort).direction, [1, 0], rtol=1e-6, atol=1e-6)


def test_no_losses_and_a_large_q_is_no_step():
    # (0 + 1e-10)^40 = 1e-400 is zero in float64: Σ h = 0.
    cohort = make_cohort([[1, 2], [3, 4]], received_losses=[0, 0])
    assert aggregate_once(QFFL(q=40.0), cohort).direction.tolist() == [0, 0]
    # While at q = 5 it is not: the clients weigh the same, h = 5 ||g||² f⁴ + 10 f⁵ is all curvature.
    # d = Σ f⁵ g / (0.1 Σ h) ~ (4, 6) f / (0.1 · 5 · (5 + 25)) = (4, 6) f / 15.
    close(aggregate_once(QFFL(q=5.0), cohort).direction, [4e-10 / 15, 6e-10 / 15], rtol=1e-6, atol=0)


def test_a_client_without_loss_freezes_the_round_and_is_named():
    # q = 0.1: f^(q-1) = 1e9 for the second client.
    cohort = make_cohort([[1, 0], [0, 1]], client_ids=[3, 8], received_losses=[1, 0])
    aggregation = aggregate_once(QFFL(), cohort)
    assert aggregation.direction.norm() < 1e-6
    assert aggregation.diagnostics["shortening"] < 1e-6
    assert "client 8" in aggregation.warnings[0]


def test_clients_with_broken_losses_are_left_out_and_named():
    cohort = make_cohort(
        [[1, 0], [5, 5], [0, 1], [9, 9]], received_losses=[1, np.nan, 1, np.inf], client_ids=[2, 4, 6, 8]
    )
    aggregation = aggregate_once(QFFL(q=0.0), cohort)
    close(aggregation.direction, [0.5, 0.5])
    assert aggregation.diagnostics["left_out"] == [4, 8]
    assert aggregation.warnings == (
        "round 1: client 4 left out: training loss is NaN",
        "round 1: client 8 left out: training loss is Inf",
    )


def test_nobody_left_is_no_step():
    cohort = make_cohort([[1, 0], [5, 5]], received_losses=[np.nan, np.nan])
    assert aggregate_once(QFFL(), cohort).direction.tolist() == [0, 0]


def test_missing_losses_are_an_error():
    with pytest.raises(PluginError, match="aggregator 'qffl' needs each client's training loss"):
        aggregate_once(QFFL(), make_cohort([[1, 0]]))


def test_order_of_clients_does_not_matter(shuffled, random_rounds):
    cohort = next(random_rounds(1, dtype=torch.float64))
    close(
        aggregate_once(QFFL(q=2.0), shuffled(cohort, (2, 0, 1))).direction,
        aggregate_once(QFFL(q=2.0), cohort).direction,
    )


@pytest.mark.parametrize("q", [0.0, 0.1, 1.0, 5.0])
def test_hard_cohorts_are_finite(hard_cohort, q, record_is_json):
    aggregation = aggregate_once(QFFL(q=q), hard_cohort)
    assert aggregation.direction.isfinite().all()
    record_is_json(aggregation)


def test_scale_of_updates_and_rate_trade_off():
    # Displacements Δ = η g alone matter at q = 0; at q > 0, g -> s g with η -> η / s² keeps η ||g||² and d / s.
    cohort = make_cohort([[1, 2], [3, -4]], received_losses=[1, 2])
    scaled = replace(cohort, pseudo_gradients=cohort.pseudo_gradients * 8, local_lr=cohort.local_lr / 64)
    close(aggregate_once(QFFL(q=1.0), scaled).direction, 8 * aggregate_once(QFFL(q=1.0), cohort).direction)


def test_asks_for_the_received_loss_only():
    assert QFFL().needs == Needs(received_loss=True)


def test_a_short_training_lowers_the_loss(quadratic_descent):
    before, after = quadratic_descent(QFFL(q=1.0))
    assert after < before / 2
