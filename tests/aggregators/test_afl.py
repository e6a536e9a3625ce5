"""AFL: the mixture, its projection, the mean of iterates, and who owns what across rounds."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import torch

from fedpcd_baselines.afl import AFL
from fedpcd_cli.api import ServerContext
from fedpcd_cli.rounds.layout import ParameterLayout
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, example_rounds, make_cohort


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), **tolerance)


def nearest_in_simplex(y):
    """The projection, by a solver that knows nothing of the closed form."""
    x = cp.Variable(len(y))
    cp.Problem(cp.Minimize(cp.sum_squares(x - y)), [x >= 0, cp.sum(x) == 1]).solve(solver=cp.CLARABEL)
    return x.value


def test_worked_example():
    # Round 1: λ = (½, ½), u = (Δ_1 + Δ_2) / 2; y = (.5 + .1·2, .5 + .1·1) = (.7, .6), λ = y - .15 = (.55, .45).
    # Round 2: u = .55 Δ_1 + .45 Δ_2; y = (.55 + .15, .45 + .12) = (.7, .57), λ = y - .135 = (.565, .435).
    rounds = list(aggregate_all(AFL(gamma_lambda=0.1), example_rounds(), n_clients=2, cohort_size=2))
    close(0.1 * rounds[0][0].direction, [0.1, 0.05, 0.15, -0.05])
    close(0.1 * rounds[1][0].direction, [0.155, -0.08, 0.035, 0.21])
    np.testing.assert_allclose(rounds[0][1]["mixture"], [0.55, 0.45])
    np.testing.assert_allclose(rounds[1][1]["mixture"], [0.565, 0.435])


def test_first_round_is_the_uniform_mean():
    cohort = make_cohort([[1, 2], [3, -4]], n_examples=[1, 99], received_losses=[1, 9], n_clients=50)
    close(aggregate_once(AFL(gamma_lambda=1.0), cohort).direction, [2, -1])


def test_absent_clients_keep_a_share_and_new_ones_have_one():
    # N = 4, λ = ¼ each. Clients 1 and 3 report F = (1, 2) at γ = 0.1: y = (.25, .35, .25, .45), sum 1.3,
    # λ = y - .075 = (.175, .275, .175, .375). Then clients 0 (new) and 3: a = (.175, .375) / .55 = (7, 15) / 22.
    first = make_cohort([[1, 0], [0, 1]], client_ids=[1, 3], n_clients=4, received_losses=[1, 2])
    second = make_cohort([[22, 0], [0, 22]], client_ids=[0, 3], n_clients=4, received_losses=[0, 0], round_index=2)
    rounds = list(aggregate_all(AFL(gamma_lambda=0.1), [first, second], n_clients=4, cohort_size=2))
    np.testing.assert_allclose(rounds[0][1]["mixture"], [0.175, 0.275, 0.175, 0.375])
    close(rounds[1][0].direction, [7, 15])


@pytest.mark.parametrize("gamma", [0.01, 0.5, 20.0])
def test_mixture_is_the_nearest_point_of_the_simplex(gamma, random_rounds):
    rule = AFL(gamma_lambda=gamma)
    mixture = np.full(6, 1 / 6)
    for cohort, (_, state) in zip(
        random_rounds(4), aggregate_all(rule, random_rounds(4), n_clients=6, cohort_size=3), strict=True
    ):
        target = mixture.copy()
        target[list(cohort.client_ids)] += gamma * cohort.received_losses
        mixture = state["mixture"]
        np.testing.assert_allclose(mixture, nearest_in_simplex(target), atol=1e-6)
        assert mixture.min() >= 0
        assert mixture.sum() == pytest.approx(1, abs=1e-14)


def test_a_large_step_leaves_one_client_and_others_are_uniform_if_it_is_absent():
    # y = (1/3, 1/3 + 1000, 1/3) projects to (0, 1, 0). The clients 0 and 2 then have no mixture: ½ each.
    first = make_cohort([[1.0, 0.0]], client_ids=[1], n_clients=3, received_losses=[10])
    second = make_cohort([[2, 0], [0, 4]], client_ids=[0, 2], n_clients=3, received_losses=[1, 1], round_index=2)
    rounds = list(aggregate_all(AFL(gamma_lambda=100.0), [first, second], n_clients=3, cohort_size=2))
    assert rounds[0][1]["mixture"].tolist() == [0, 1, 0]
    assert rounds[0][0].diagnostics["mixture_support"] == 1
    close(rounds[1][0].direction, [1, 2])


def test_gamma_zero_stays_uniform(random_rounds):
    for cohort, (aggregation, state) in zip(
        random_rounds(3),
        aggregate_all(AFL(gamma_lambda=0.0), random_rounds(3), n_clients=6, cohort_size=3),
        strict=True,
    ):
        close(aggregation.direction, cohort.pseudo_gradients.mean(0))
        np.testing.assert_allclose(state["mixture"], np.full(6, 1 / 6))


def test_one_client_is_its_own_update_and_identical_clients_are_fedavg():
    assert aggregate_once(AFL(), make_cohort([[3, -1]], received_losses=[2])).direction.tolist() == [3, -1]
    cohort = make_cohort([[3, -1]] * 4, received_losses=[1, 2, 3, 4])
    for aggregation, _ in aggregate_all(AFL(gamma_lambda=0.1), [cohort] * 3, n_clients=4, cohort_size=4):
        close(aggregation.direction, [3, -1])


def play(rule, n_rounds, *, server_lr=1.0):
    """Run a few rounds as the engine does; return the iterates w_0, w_1, ... and the rule's last word."""
    params = torch.tensor([1.0, -2.0], dtype=torch.float64)
    iterates = [params.clone()]
    state = rule.init(
        ServerContext(n_clients=3, cohort_size=2, layout=ParameterLayout.single(2), params=params.clone())
    )
    generator = torch.Generator().manual_seed(0)
    for t in range(1, n_rounds + 1):
        rows = torch.randn(2, 2, generator=generator, dtype=torch.float64)
        cohort = make_cohort(
            rows,
            n_clients=3,
            round_index=t,
            local_lr=0.5 * 0.9**t,
            server_lr=server_lr,
            params=params,
            received_losses=[1.0, 2.0],
        )
        aggregation, state = rule.aggregate(cohort, state)
        params.add_(aggregation.direction, alpha=-cohort.server_lr * cohort.local_lr)
        iterates.append(params.clone())
    return torch.stack(iterates), params, state


@pytest.mark.parametrize("server_lr", [1.0, 0.25])
@pytest.mark.parametrize("n_rounds", [0, 1, 5])
def test_evaluates_the_mean_of_all_iterates(n_rounds, server_lr):
    rule = AFL(gamma_lambda=0.1)
    iterates, params, state = play(rule, n_rounds, server_lr=server_lr)
    close(rule.evaluated_params(params, state), iterates.mean(dim=0))


def test_last_iterate_on_request_without_a_mean_in_the_state():
    rule = AFL(evaluate="last")
    iterates, params, state = play(rule, 3)
    assert torch.equal(rule.evaluated_params(params, state), iterates[-1])
    assert set(state) == {"mixture"}


def test_the_mean_does_not_alias_the_initial_model():
    cohort = make_cohort([[1.0, 2.0]], received_losses=[1], params=torch.ones(2, dtype=torch.float64))
    rule = AFL()
    rule.aggregate(cohort, rule.init(context_of(cohort)))
    assert cohort.params.tolist() == [1, 1]


def test_slots_belong_to_positions():
    # m = 2: λ = (½, ½); F = (1, 2), γ = .1: y = (.6, .7), λ = (.45, .55). Other clients inherit it by position.
    first = make_cohort([[1, 0], [0, 1]], client_ids=[1, 3], n_clients=9, received_losses=[1, 2])
    second = make_cohort([[1, 0], [0, 1]], client_ids=[0, 8], n_clients=9, received_losses=[0, 0], round_index=2)
    rule = AFL(gamma_lambda=0.1, afl_state="slot")
    rounds = list(aggregate_all(rule, [first, second], n_clients=9, cohort_size=2))
    close(rounds[1][0].direction, [0.45, 0.55])
    assert rounds[1][1]["mixture"].shape == (2,)


def test_slots_without_a_client_keep_theirs():
    # Three slots, two clients left: a = (1/3, 1/3) / (2/3); y = (1/3 + .1, 1/3 + .2, 1/3), λ = y - .1.
    rule = AFL(gamma_lambda=0.1, afl_state="slot")
    cohort = make_cohort([[2, 0], [0, 2]], received_losses=[1, 2], n_clients=9)
    aggregation, state = rule.aggregate(cohort, rule.init(context_of(cohort, cohort_size=3)))
    close(aggregation.direction, [1, 1])
    np.testing.assert_allclose(state["mixture"], np.array([1, 1, 1]) / 3 + [0, 0.1, -0.1])


def test_clients_with_broken_losses_count_in_nothing():
    # N = 3, client 1 is out: a = (½, ½) for 0 and 2; y = (1/3 + .1, 1/3, 1/3 + .2), λ = y - .1.
    cohort = make_cohort([[2, 0], [7, 7], [0, 2]], received_losses=[1, np.nan, 2])
    rule = AFL(gamma_lambda=0.1)
    aggregation, state = rule.aggregate(cohort, rule.init(context_of(cohort)))
    close(aggregation.direction, [1, 1])
    np.testing.assert_allclose(state["mixture"], np.array([1, 1, 1]) / 3 + [0, -0.1, 0.1])
    assert aggregation.warnings == ("round 1: client 1 left out: training loss is NaN",)


def test_nobody_left_changes_nothing():
    cohort = make_cohort([[2, 0], [7, 7]], received_losses=[np.inf, np.nan])
    rule = AFL()
    before = rule.init(context_of(cohort))
    aggregation, after = rule.aggregate(cohort, before)
    assert aggregation.direction.tolist() == [0, 0]
    assert after["mixture"].tolist() == [0.5, 0.5]
    assert after["steps"] == 0


def test_order_of_clients_does_not_matter(shuffled, random_rounds):
    rule = AFL(gamma_lambda=0.3)
    straight = aggregate_all(rule, random_rounds(3, dtype=torch.float64), n_clients=6, cohort_size=3)
    turned = (shuffled(cohort, (1, 2, 0)) for cohort in random_rounds(3, dtype=torch.float64))
    for (a, s), (b, t) in zip(straight, aggregate_all(rule, turned, n_clients=6, cohort_size=3), strict=True):
        close(a.direction, b.direction)
        np.testing.assert_allclose(s["mixture"], t["mixture"], atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"afl_state": "slot"}, {"evaluate": "last"}])
def test_resumes_to_the_bit(options, random_rounds, resumed_equals_straight):
    rule = AFL(gamma_lambda=0.2, **options)
    resumed_equals_straight(rule, random_rounds(4), n_clients=6, cohort_size=3)


@pytest.mark.parametrize("gamma", [0.01, 1e6])
def test_hard_cohorts_are_finite(hard_cohort, gamma, record_is_json):
    rule = AFL(gamma_lambda=gamma)
    second = replace(hard_cohort, round_index=2)
    for aggregation, state in aggregate_all(
        rule, [hard_cohort, second], n_clients=9, cohort_size=hard_cohort.size
    ):
        assert aggregation.direction.isfinite().all()
        assert state["mean"].isfinite().all()
        assert sum(aggregation.diagnostics["weights"].values()) == pytest.approx(1, abs=1e-12)
        record_is_json(aggregation)


def test_a_short_training_lowers_the_loss(quadratic_descent):
    before, after = quadratic_descent(AFL(gamma_lambda=0.01))
    assert after < before / 2
