"""FedFV: hand-worked projections, and the whole rule against a plain loop in parameter space."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedfv import FedFV
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, example_rounds, make_cohort


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), **tolerance)


class PlainFedFV:
    """The rule as published, client by client, on displacements in float64."""

    def __init__(self, alpha, tau, external):
        self.alpha, self.tau, self.external = alpha, tau, external
        self.last_update, self.last_round = {}, {}

    def step(self, t, ids, updates, losses):
        for client, update in zip(ids, updates, strict=True):
            self.last_update[client], self.last_round[client] = update, t
        order = sorted(range(len(ids)), key=lambda i: losses[i])
        keep = order[math.ceil((len(ids) - 1) * (1 - self.alpha)) :] if self.alpha > 0 else []
        projected = [update.copy() for update in updates]
        for i in range(len(ids)):
            for j in order:
                if i in keep or i == j:
                    continue
                product = updates[j] @ projected[i]
                if product < 0:
                    projected[i] -= product / (updates[j] @ updates[j]) * updates[j]
        mean = np.mean(projected, axis=0)
        if t >= self.tau:
            ages = range(self.tau, 0, -1) if self.external == "v1.0" else range(self.tau - 1, -1, -1)
            for age in ages:
                against = [
                    self.last_update[c] for c, s in self.last_round.items()
                    if s == t - age and self.last_update[c] @ mean < 0
                ]  # fmt: skip
                total = np.sum(against, axis=0) if against else np.zeros_like(mean)
                if total @ mean < 0:
                    mean = mean - (total @ mean) / (total @ total) * total
        return mean / np.linalg.norm(mean) * np.linalg.norm(np.mean(updates, axis=0))


def test_two_clients_by_hand():
    # g_1 = (4, 0), g_2 = (-2, 2), product -8: p_1 = g_1 + 8/8 g_2 = (2, 2), p_2 = g_2 + 8/16 g_1 = (0, 2).
    # v = (1, 2), mean (1, 1): d = (1, 2) √(2/5).
    cohort = make_cohort([[4, 0], [-2, 2]], received_losses=[1, 2])
    close(aggregate_once(FedFV(alpha=0.0), cohort).direction, np.array([1, 2]) * math.sqrt(2 / 5))


def test_the_largest_loss_is_kept_by_hand():
    # As above with p_2 = g_2: v = ((2, 2) + (-2, 2)) / 2 = (0, 2): d = (0, √2).
    cohort = make_cohort([[4, 0], [-2, 2]], received_losses=[1, 2], client_ids=[3, 5])
    aggregation = aggregate_once(FedFV(alpha=0.1), cohort)
    close(aggregation.direction, [0, math.sqrt(2)])
    assert aggregation.diagnostics["kept"] == [5]
    assert aggregation.diagnostics["projections"] == 1


def test_order_follows_the_losses_by_hand():
    # g_1 = (1, 0), g_2 = (-1, 1), g_3 = (-1, -1), losses so that 3 comes before 2 for g_1:
    # off g_3: (1, 0) + ½(-1, -1) = (½, -½); then g_2: product -1: (½, -½) + ½(-1, 1) = (0, 0).
    # g_2 off g_3: product 0; off g_1: product -1: (0, 1). g_3, met by the same order 3, 2, 1: off g_2: 0;
    # off g_1: (0, -1). v = (0, 0): no step, although the mean is (-1/3, 0).
    cohort = make_cohort([[1, 0], [-1, 1], [-1, -1]], received_losses=[3, 2, 1])
    assert aggregate_once(FedFV(alpha=0.0), cohort).direction.tolist() == [0, 0]
    # With client 1 kept (the largest loss): v = (1, 0) / 3, rescaled to 1/3.
    close(aggregate_once(FedFV(alpha=0.1), cohort).direction, [1 / 3, 0])


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        # Δ_1·Δ_2 = -.04, ||Δ||² = .15, .1: p_1 = Δ_1 + .4 Δ_2, p_2 = Δ_2 + .2667 Δ_1. Round 2: product 0.
        (0.0, [[0.089642, 0.059761, 0.149404, -0.059761], [0.15, -0.1, 0.05, 0.2]]),
        # Client 1 has the larger loss and stays.
        (0.1, [[0.120268, 0.026726, 0.146994, -0.026726], [0.15, -0.1, 0.05, 0.2]]),
    ],
)
def test_worked_example(alpha, expected):
    rounds = aggregate_all(FedFV(alpha=alpha), example_rounds(), n_clients=2, cohort_size=2)
    for (aggregation, _), u in zip(rounds, expected, strict=True):
        close(0.1 * aggregation.direction, u, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("m", "n_kept"), [(1, 1), (2, 1), (5, 1), (10, 1), (11, 2)])
def test_how_many_are_kept(m, n_kept):
    cohort = make_cohort(torch.eye(m), received_losses=range(m))
    assert aggregate_once(FedFV(alpha=0.1), cohort).diagnostics["kept"] == list(range(m - n_kept, m))
    assert aggregate_once(FedFV(alpha=0.0), cohort).diagnostics["kept"] == []


def two_rounds(second_client):
    return (
        make_cohort([[0, -1]], client_ids=[0], n_clients=3, received_losses=[1]),
        make_cohort([[1, 1]], client_ids=[second_client], n_clients=3, received_losses=[1], round_index=2),
    )


def test_conflict_with_an_absent_client_by_hand():
    # v = (1, 1); client 0's (0, -1) makes -1 with it: v + (0, -1) = (1, 0), at the length √2 of the mean.
    done = list(aggregate_all(FedFV(), two_rounds(second_client=1), n_clients=3, cohort_size=1))
    close(done[0][0].direction, [0, -1])
    close(done[1][0].direction, [math.sqrt(2), 0])
    assert done[1][0].diagnostics["external_conflicts"] == {"1": [0]}


def test_a_client_is_never_in_conflict_with_its_own_past():
    done = list(aggregate_all(FedFV(), two_rounds(second_client=0), n_clients=3, cohort_size=1))
    close(done[1][0].direction, [1, 1])
    assert list(done[1][1]["rounds"]) == [2]


def test_scale_and_rate_of_earlier_updates_cancel():
    second = two_rounds(second_client=1)[1]
    longer = make_cohort([[0, -9]], client_ids=[0], n_clients=3, received_losses=[1], local_lr=3.0)
    done = list(aggregate_all(FedFV(), [longer, second], n_clients=3, cohort_size=1))
    close(done[1][0].direction, [math.sqrt(2), 0])


def test_flgo_looks_at_the_current_cohort_by_hand():
    # α = 1 keeps everybody: v = mean = (-1, 1). In FLGo's version g_1 = (2, 0), product -2, is in conflict:
    # v + ½ (2, 0) = (0, 1), at length √2. In v1.0 nobody is absent and v stays. Both only from round τ + 1 on.
    def cohort(t):
        return make_cohort([[2, 0], [-4, 2]], received_losses=[1, 2], round_index=t)

    for external, expected in (("flgo", [0, math.sqrt(2)]), ("v1.0", [-1, 1])):
        rule = FedFV(alpha=1.0, fedfv_external=external)
        done = list(aggregate_all(rule, [cohort(1), cohort(2)], n_clients=2, cohort_size=2))
        close(done[0][0].direction, [-1, 1])
        close(done[1][0].direction, expected)


@pytest.mark.parametrize("external", ["v1.0", "flgo"])
@pytest.mark.parametrize("tau", [0, 1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_equals_the_published_loop(alpha, tau, external, random_rounds):
    plain = PlainFedFV(alpha, tau, external)
    rule = FedFV(alpha=alpha, tau=tau, fedfv_external=external)
    cohorts = list(random_rounds(8, n_clients=9, size=4, seed=tau, dtype=torch.float64))
    for cohort, (aggregation, state) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=9, cohort_size=4), strict=True
    ):
        updates = cohort.local_lr * cohort.pseudo_gradients.numpy()
        u = plain.step(cohort.round_index - 1, cohort.client_ids, updates, cohort.received_losses)
        close(cohort.local_lr * aggregation.direction, u, rtol=1e-9, atol=1e-12)
        assert len(state["rounds"]) <= tau


def test_external_conflicts_happen_in_that_comparison(random_rounds):
    cohorts = list(random_rounds(8, n_clients=9, size=4, seed=1, dtype=torch.float64))
    done = aggregate_all(FedFV(tau=2), cohorts, n_clients=9, cohort_size=4)
    assert sum(bool(a.diagnostics["external_conflicts"]) for a, _ in done) >= 3


def test_two_clients_do_not_conflict_with_the_result():
    rng = np.random.default_rng(2)
    for _ in range(20):
        g = rng.normal(size=(2, 3))
        direction = aggregate_once(FedFV(alpha=0.0), make_cohort(g, received_losses=[1, 2])).direction
        assert (g @ direction.numpy() >= -1e-12).all()


def test_length_is_that_of_the_uniform_mean(random_rounds):
    for cohort, (aggregation, _) in zip(
        random_rounds(6),
        aggregate_all(FedFV(tau=2), random_rounds(6), n_clients=6, cohort_size=3),
        strict=True,
    ):
        close(aggregation.direction.norm(), float(cohort.pseudo_gradients.mean(0).norm()), rtol=1e-5, atol=0)


def test_one_client_is_its_own_update_and_identical_clients_are_fedavg():
    close(aggregate_once(FedFV(), make_cohort([[3, -1]], received_losses=[1])).direction, [3, -1])
    close(aggregate_once(FedFV(), make_cohort([[3, -1]] * 4, received_losses=[1, 2, 3, 4])).direction, [3, -1])


def test_without_conflicts_it_is_the_uniform_mean():
    cohort = make_cohort([[1, 0], [0, 1], [1, 1]], n_examples=[1, 9, 90], received_losses=[3, 1, 2])
    close(aggregate_once(FedFV(alpha=0.0), cohort).direction, [2 / 3, 2 / 3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_cancels_is_no_step_even_in_rounded_numbers(dtype):
    # Opposite directions, mean not zero: p_1 = p_2 = 0 exactly, and rounding must not be blown up to ||mean||.
    row = torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=dtype)
    cohort = make_cohort(torch.stack([row, -2.3 * row]), received_losses=[1, 2], dtype=dtype)
    assert not aggregate_once(FedFV(alpha=0.0), cohort).direction.any()


def test_nearly_opposite_clients_keep_their_small_difference():
    # g_1 = (1, 0), g_2 = (-1, s): p_1 = g_1 + g_2 / (1 + s²) = (s², s) / (1 + s²), p_2 = (0, s).
    # v = (s²/(1+s²), s + s/(1+s²)) / 2, mean (0, s/2). s = 1e-3 is far above float32's rounding.
    s = 1e-3
    v = np.array([s * s / (1 + s * s), s + s / (1 + s * s)]) / 2
    cohort = make_cohort([[1, 0], [-1, s]], received_losses=[1, 2], dtype=torch.float32)
    close(aggregate_once(FedFV(alpha=0.0), cohort).direction, v / np.linalg.norm(v) * s / 2, rtol=1e-3, atol=1e-7)


def test_clients_with_broken_losses_count_in_nothing():
    first = make_cohort([[9, 9], [0, -1]], client_ids=[1, 0], n_clients=4, received_losses=[float("nan"), 1])
    second = make_cohort([[-1, 1]], client_ids=[2], n_clients=4, received_losses=[1], round_index=2)
    done = list(aggregate_all(FedFV(), [first, second], n_clients=4, cohort_size=2))
    close(done[0][0].direction, [0, -1])
    assert done[0][0].warnings == ("round 1: client 1 left out: training loss is NaN",)
    # Client 1's (9, 9) is not remembered: only (0, -1) conflicts with (-1, 1).
    close(done[1][0].direction, [-math.sqrt(2), 0])


def test_nobody_left_is_no_step_and_keeps_the_memory():
    first = two_rounds(1)[0]
    broken = make_cohort([[1, 1]], client_ids=[2], n_clients=3, received_losses=[float("inf")], round_index=2)
    third = make_cohort([[1, 1]], client_ids=[1], n_clients=3, received_losses=[1], round_index=3)
    done = list(aggregate_all(FedFV(tau=2), [first, broken, third], n_clients=3, cohort_size=1))
    assert done[1][0].direction.tolist() == [0, 0]
    close(done[2][0].direction, [math.sqrt(2), 0])  # two rounds back


def test_order_of_clients_does_not_matter_even_with_equal_losses(shuffled):
    rng = np.random.default_rng(4)
    rounds = [
        make_cohort(rng.normal(size=(3, 4)), client_ids=ids, n_clients=6, received_losses=[1, 1, 2], round_index=t)
        for t, ids in ((1, [0, 1, 2]), (2, [2, 3, 5]))
    ]
    turned = [shuffled(cohort, (1, 2, 0)) for cohort in rounds]
    for (a, _), (b, _) in zip(
        aggregate_all(FedFV(), rounds, n_clients=6, cohort_size=3),
        aggregate_all(FedFV(), turned, n_clients=6, cohort_size=3),
        strict=True,
    ):
        close(a.direction, b.direction, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("external", ["v1.0", "flgo"])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_resumes_to_the_bit(tau, external, random_rounds, resumed_equals_straight):
    rule = FedFV(tau=tau, fedfv_external=external)
    resumed_equals_straight(rule, random_rounds(6), n_clients=6, cohort_size=3)


@pytest.mark.parametrize(
    ("options", "keeps"),
    [
        ({}, True),
        ({"tau": 0}, False),
        ({"fedfv_external": "flgo"}, False),
        ({"tau": 2, "fedfv_external": "flgo"}, True),
    ],
)
def test_keeps_the_update_matrix_only_if_a_later_round_reads_it(options, keeps, random_rounds):
    rule = FedFV(**options)
    assert rule.needs.keeps_updates is keeps
    assert rule.needs.received_loss
    for _, state in aggregate_all(rule, random_rounds(3), n_clients=6, cohort_size=3):
        assert bool(state["rounds"]) is keeps


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_hard_cohorts_are_finite_and_as_long_as_their_mean(hard_cohort, alpha, record_is_json):
    aggregation = aggregate_once(FedFV(alpha=alpha), hard_cohort)
    mean = float(hard_cohort.pseudo_gradients.double().mean(0).norm())
    assert aggregation.direction.isfinite().all()
    assert float(aggregation.direction.double().norm()) in (0.0, pytest.approx(mean, rel=1e-5))
    record_is_json(aggregation)


def test_a_short_training_lowers_the_loss(quadratic_descent):
    before, after = quadratic_descent(FedFV())
    assert after < before / 2
