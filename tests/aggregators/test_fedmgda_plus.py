"""FedMGDA+: hand-worked steps, both ends of epsilon, and its program against CVXPY."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import torch

from fedpcd_baselines.fedmgda_plus import FedMGDAPlus
from fedpcd_cli.api import ParameterError
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, example_rounds, make_cohort

ETA = 0.1


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), **tolerance)


def step(rule, cohort):
    """u, what the round subtracts from the model at server.lr = 1."""
    return cohort.local_lr * aggregate_once(rule, cohort).direction


def units(g):
    return g / np.linalg.norm(g, axis=1, keepdims=True)


def shortest(unit, initial, epsilon):
    """u by a general solver in parameter space."""
    weights = cp.Variable(len(unit))
    box = [weights >= np.maximum(0, initial - epsilon), weights <= np.minimum(1, initial + epsilon)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(unit.T @ weights)), [cp.sum(weights) == 1, *box])
    problem.solve(solver=cp.CLARABEL)
    return unit.T @ weights.value


def test_by_hand():
    # u_1 = (1, 0), u_2 = (3, 4) / 5. ||λ u_1 + (1 - λ) u_2||² = λ² + (1 - λ)² + 6/5 λ (1 - λ) is least at ½, by
    # symmetry: u = (4, 2) / 5. Started from (¼, ¾) with ε = 1/5, λ_1 stops at .45: u = (.45 + .33, .44).
    cohort = make_cohort([[7, 0], [30, 40]], n_examples=[1, 3])
    close(step(FedMGDAPlus(epsilon=1.0), cohort), [0.8, 0.4])
    close(step(FedMGDAPlus(epsilon=0.2, lambda0="data"), cohort), [0.78, 0.44])


@pytest.mark.parametrize(
    ("lambda0", "expected"),
    [
        # λ* = (½, ½): two unit vectors, the middle is shortest. ||Δ_1||² = .15, ||Δ_2||² = .1, then .15 and .15.
        (
            "uniform",
            [[0.229184, 0.187128, 0.416313, -0.187128], [0.387298, -0.258199, 0.129099, 0.516398]],
        ),
        # λ⁰ = (¼, ¾), ε = .1: λ* = (.35, .65), at the bound on the way to (½, ½).
        ("data", [[0.065561, 0.320726, 0.386287, -0.320726], [0.348569, -0.413118, 0.245289, 0.438938]]),
    ],
)
def test_worked_example(lambda0, expected):
    rule = FedMGDAPlus(epsilon=0.1, lambda0=lambda0)
    for (aggregation, _), u in zip(
        aggregate_all(rule, example_rounds(), n_clients=2, cohort_size=2), expected, strict=True
    ):
        close(ETA * aggregation.direction, u, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lambda0", ["uniform", "data"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 1.0])
def test_program_against_cvxpy(epsilon, lambda0):
    rng = np.random.default_rng(5)
    for m, n_params in ((2, 3), (4, 8), (6, 3), (5, 40)):
        g = rng.normal(size=(m, n_params)) * 10.0 ** rng.uniform(-3, 3, size=(m, 1)) + 0.2
        n = rng.integers(1, 100, m)
        initial = n / n.sum() if lambda0 == "data" else np.full(m, 1 / m)
        cohort = make_cohort(g, n_examples=n)
        u = step(FedMGDAPlus(epsilon=epsilon, lambda0=lambda0), cohort)
        close(u, shortest(units(g), initial, epsilon), rtol=0, atol=2e-5)


def test_epsilon_zero_is_the_mean_of_normalized_updates():
    # (3, 4) and (0, -2): ((.6, .8) + (0, -1)) / 2.
    close(step(FedMGDAPlus(epsilon=0.0), make_cohort([[3, 4], [0, -2]], n_examples=[1, 9])), [0.3, -0.1])


def test_epsilon_one_opposes_nobody():
    rng = np.random.default_rng(1)
    for _ in range(20):
        g = rng.normal(size=(4, 6))
        u = step(FedMGDAPlus(epsilon=1.0), make_cohort(g)).numpy()
        # The shortest point of a hull makes at least its own squared length with every corner.
        assert (units(g) @ u >= u @ u - 1e-12).all()


def test_weights_stay_in_the_box_and_sum_to_one(random_rounds):
    for cohort, (aggregation, _) in zip(
        random_rounds(5),
        aggregate_all(FedMGDAPlus(epsilon=0.1), random_rounds(5), n_clients=6, cohort_size=3),
        strict=True,
    ):
        weights = np.array(list(aggregation.diagnostics["weights"].values()))
        assert list(aggregation.diagnostics["weights"]) == [str(c) for c in cohort.client_ids]
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (np.abs(weights - 1 / 3) <= 0.1 + 1e-12).all()


def test_lengths_of_updates_do_not_matter():
    cohort = make_cohort([[1, 2, 0], [0, 1, -3]])
    stretched = replace(
        cohort, pseudo_gradients=cohort.pseudo_gradients * torch.tensor([[1e6], [1e-6]], dtype=torch.float64)
    )
    close(step(FedMGDAPlus(), stretched), step(FedMGDAPlus(), cohort), rtol=1e-9, atol=1e-12)


def test_one_client_and_identical_clients_step_by_eta_g():
    close(step(FedMGDAPlus(eta_g=0.5), make_cohort([[30, -40]])), [0.3, -0.4])
    close(step(FedMGDAPlus(eta_g=0.5), make_cohort([[30, -40]] * 4)), [0.3, -0.4])


def test_a_client_that_stood_still_is_left_out():
    # λ⁰ of the others is (¼, ¾) again without client 5; ε = 0 keeps it.
    cohort = make_cohort([[2, 0], [0, 0], [0, 3]], client_ids=[1, 5, 6], n_examples=[1, 50, 3])
    aggregation = aggregate_once(FedMGDAPlus(epsilon=0.0, lambda0="data"), cohort)
    close(0.1 * aggregation.direction, [0.25, 0.75])
    assert aggregation.diagnostics["zero_updates"] == [5]


def test_all_zero_and_opposite_clients_make_no_step():
    assert step(FedMGDAPlus(), make_cohort([[0, 0]] * 3)).tolist() == [0, 0]
    close(step(FedMGDAPlus(), make_cohort([[1, 2], [-3, -6]])), [0, 0], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("server_step", "lengths"),
    [
        ("decayed", [1.0, 0.5]),  # η_g η_t / η_1
        ("constant", [1.0, 1.0]),
        ("lr", [0.2, 0.1]),  # η_t: the published comparison rows
    ],
)
def test_length_of_the_step_over_rounds(server_step, lengths):
    rounds = [make_cohort([[3, 4]], round_index=t, local_lr=lr) for t, lr in ((1, 0.2), (2, 0.1))]
    done = aggregate_all(FedMGDAPlus(server_step=server_step), rounds, n_clients=1, cohort_size=1)
    for cohort, (aggregation, _), length in zip(rounds, done, lengths, strict=True):
        close(cohort.local_lr * aggregation.direction, [0.6 * length, 0.8 * length])


def test_order_of_clients_does_not_matter(shuffled, random_rounds):
    cohort = next(random_rounds(1, dtype=torch.float64))
    for rule in (FedMGDAPlus(), FedMGDAPlus(epsilon=1.0, lambda0="data")):
        close(step(rule, shuffled(cohort, (2, 0, 1))), step(rule, cohort), rtol=1e-9, atol=1e-12)


def test_resumes_to_the_bit(random_rounds, resumed_equals_straight):
    resumed_equals_straight(FedMGDAPlus(), random_rounds(3), n_clients=6, cohort_size=3)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("lambda0", ["uniform", "data"])
def test_hard_cohorts_are_finite_and_at_most_eta_g_long(hard_cohort, epsilon, lambda0, record_is_json):
    aggregation = aggregate_once(FedMGDAPlus(epsilon=epsilon, lambda0=lambda0), hard_cohort)
    assert aggregation.direction.isfinite().all()
    assert 0.1 * float(aggregation.direction.norm()) <= 1 + 1e-6
    record_is_json(aggregation)


def test_epsilon_beyond_one_is_refused():
    with pytest.raises(ParameterError, match=r"fedmgda-plus\.epsilon must be at most 1"):
        FedMGDAPlus(epsilon=1.5)


def test_a_short_training_lowers_the_loss(quadratic_descent):
    before, after = quadratic_descent(FedMGDAPlus(eta_g=0.2))
    assert after < before / 2
