"""Ditto on the server is the uniform mean; what its clients train is the engine's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_baselines.ditto import Ditto
from fedpcd_cli.api import Needs, ParameterError
from fedpcd_cli.testing.cohorts import aggregate_once, example_rounds, make_cohort


def test_is_the_uniform_mean():
    # (1, 2) and (3, -4) with 1 and 99 examples: ((1 + 3) / 2, (2 - 4) / 2) all the same.
    direction = aggregate_once(Ditto(), make_cohort([[1, 2], [3, -4]], n_examples=[1, 99])).direction
    assert direction.tolist() == [2, -1]


def test_worked_example():
    # u = (Δ_1 + Δ_2) / 2, and u = 0.1 d at the local rate 0.1.
    first, second = example_rounds()
    expected = torch.tensor([[0.1, 0.05, 0.15, -0.05], [0.15, -0.1, 0.05, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(0.1 * aggregate_once(Ditto(), first).direction, expected[0])
    torch.testing.assert_close(0.1 * aggregate_once(Ditto(), second).direction, expected[1])


@pytest.mark.parametrize("lam", [0.0, 0.5, 2.0])
def test_asks_for_personal_models_only(lam):
    assert Ditto(lam=lam).needs == Needs(personal_proximal=lam)


def test_the_global_model_does_not_depend_on_lambda():
    cohort = example_rounds()[0]
    assert torch.equal(
        aggregate_once(Ditto(lam=0.0), cohort).direction, aggregate_once(Ditto(lam=2.0), cohort).direction
    )


def test_one_client_and_identical_clients():
    assert aggregate_once(Ditto(), make_cohort([[3, -1]])).direction.tolist() == [3, -1]
    assert aggregate_once(Ditto(), make_cohort([[3, -1]] * 4)).direction.tolist() == [3, -1]


def test_negative_lambda_is_refused():
    with pytest.raises(ParameterError, match=r"ditto\.lam must be at least 0; found -0\.1"):
        Ditto(lam=-0.1)


def test_order_of_clients_does_not_matter(shuffled, random_rounds):
    cohort = next(random_rounds(1, dtype=torch.float64))
    torch.testing.assert_close(
        aggregate_once(Ditto(), shuffled(cohort, (2, 0, 1))).direction, aggregate_once(Ditto(), cohort).direction
    )


def test_hard_cohorts_are_finite(hard_cohort):
    direction = aggregate_once(Ditto(), hard_cohort).direction
    assert direction.isfinite().all()
    expected = hard_cohort.pseudo_gradients.double().mean(0)
    torch.testing.assert_close(direction.double(), expected, rtol=1e-6, atol=1e-6 * float(expected.abs().max()))


def test_a_short_training_lowers_the_loss(quadratic_descent):
    before, after = quadratic_descent(Ditto())
    assert after < before / 2


def test_the_platforms_variant_moves_to_one_client_after_the_other():
    """N = 10: w <- w + (w_i - w)/10 for clients 2, 5, 7 in turn, rows given in another order."""
    displacements = {2: (1.0, 0.0), 5: (0.0, 2.0), 7: (-3.0, 1.0)}
    w = np.zeros(2)
    for client in (2, 5, 7):
        w = w + (-np.array(displacements[client]) - w) / 10
    ids = [7, 2, 5]
    cohort = make_cohort(
        torch.tensor([displacements[i] for i in ids], dtype=torch.float64),
        client_ids=ids,
        n_clients=10,
        local_lr=1.0,
    )
    rule = Ditto(ditto_variant="gfedplat", lam=0.1)
    aggregation = aggregate_once(rule, cohort)
    np.testing.assert_allclose(-aggregation.direction.numpy(), w, rtol=1e-14)
    assert rule.needs.personal_proximal is None
    assert rule.needs.repeated_step_proximal == 0.1
