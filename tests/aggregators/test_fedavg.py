"""FedAvg against hand-worked means."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedavg import FedAvg
from fedpcd_cli.testing.cohorts import aggregate_once, example_rounds, make_cohort


@pytest.mark.parametrize(("which", "step"), [(0, [0.0, 0.125, 0.125, -0.125]), (1, [0.125, -0.2, 0.125, 0.15])])
def test_worked_example(which, step):
    """u = local_lr * d of the example with n = (1, 3)."""
    cohort = example_rounds()[which]
    direction = aggregate_once(FedAvg(), cohort).direction
    np.testing.assert_allclose(cohort.local_lr * direction.numpy(), step, atol=1e-15)


def test_uniform_weights_ignore_examples():
    cohort = make_cohort([[1.0, 0.0], [0.0, 3.0]], n_examples=[1, 99])
    result = aggregate_once(FedAvg(weights="uniform"), cohort)
    assert result.direction.tolist() == [0.5, 1.5]
    assert result.client_coefficients.tolist() == [0.5, 0.5]


def test_weights_sum_to_one_over_the_cohort():
    cohort = make_cohort([[4.0], [8.0]], n_examples=[30, 10])
    result = aggregate_once(FedAvg(), cohort)
    assert result.client_coefficients.tolist() == [0.75, 0.25]
    assert result.direction.tolist() == [5.0]


def test_one_client_is_followed_exactly():
    cohort = make_cohort([[0.1, -0.7, 3.3]], n_examples=[17], dtype=torch.float32)
    assert torch.equal(aggregate_once(FedAvg(), cohort).direction, cohort.pseudo_gradients[0])


def test_no_movement_makes_no_step():
    assert aggregate_once(FedAvg(), make_cohort(np.zeros((3, 2)))).direction.tolist() == [0.0, 0.0]


def test_state_stays_empty_and_rows_stay_as_they_were():
    cohort = make_cohort([[1.0, 2.0], [3.0, 4.0]])
    _, state = FedAvg().aggregate(cohort, {})
    assert state == {}
    assert cohort.pseudo_gradients.tolist() == [[1.0, 2.0], [3.0, 4.0]]
