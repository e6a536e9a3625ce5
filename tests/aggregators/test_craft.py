"""CRAFT: hand-worked steps, and the whole rule against NumPy's pseudo-inverse with the same cut-off."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedpcd_baselines.craft import CRAFT
from fedpcd_cli.api import ParameterError, ParameterLayout, ParameterSlot
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, example_rounds, make_cohort


def layers_of(*sizes):
    offsets = np.cumsum([0, *sizes])
    return ParameterLayout(tuple(ParameterSlot(str(i), (n,), int(offsets[i]), i) for i, n in enumerate(sizes)))


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(np.asarray(expected), dtype=actual.dtype), **tolerance)


class PlainCRAFT:
    """The rule with an explicit pseudo-inverse of every group's unit rows, on displacements."""

    def __init__(self, spans, server_lr, cutoff=2.0**-23):
        self.spans, self.server_lr, self.cutoff, self.x = spans, server_lr, cutoff, None

    def step(self, updates, n):
        previous = np.zeros(updates.shape[1]) if self.x is None else self.x
        self.x = np.zeros(updates.shape[1])
        for span in self.spans:
            live = [i for i, g in enumerate(updates) if np.any(g[span])]
            if not live:
                continue
            if len(live) == 1:
                self.x[span] = updates[live[0]][span]
                continue
            u = np.stack([updates[i][span] / np.linalg.norm(updates[i][span]) for i in live])
            w = n[live] / n[live].sum()
            ghat = previous[span] / (np.linalg.norm(previous[span]) or 1.0)
            inverse = np.linalg.pinv(u, rcond=max(u.shape) * self.cutoff)
            self.x[span] = ghat + inverse @ (w - u @ ghat)
        return self.server_lr * self.x


def test_worked_example():
    expected = [[0.651638, 1.164344, 0.559017, -0.559017], [0.578394, -0.597771, 0.605798, 0.465456]]
    rounds = aggregate_all(CRAFT(server_lr=1.0), example_rounds(), n_clients=2, cohort_size=2)
    for (aggregation, _), u in zip(rounds, expected, strict=True):
        close(0.1 * aggregation.direction, u, rtol=0, atol=1e-6)


def test_two_rounds_by_hand():
    # Unit rows (1, 0, 0) and (0, 1, 0), shares ¼ and ¾: x = (¼, ¾, 0). Then rows (0, 0, 1) and (1, 0, 0) with
    # equal shares and ĝ = (1, 3, 0)/√10: x keeps 3/√10 in the middle and gets ½ elsewhere.
    # Directions are x · .5 / .1, then x · .5 / .2.
    cohorts = [
        make_cohort([[7, 0, 0], [0, 2, 0]], n_examples=[1, 3], local_lr=0.1),
        make_cohort([[0, 0, 5], [3, 0, 0]], n_examples=[2, 2], local_lr=0.2, round_index=2),
    ]
    done = list(aggregate_all(CRAFT(server_lr=0.5), cohorts, n_clients=2, cohort_size=2))
    close(done[0][0].direction, [1.25, 3.75, 0])
    close(done[1][0].direction, np.array([0.5, 3 / math.sqrt(10), 0.5]) * 2.5)
    close(done[1][1]["previous"], [0.5, 3 / math.sqrt(10), 0.5])


def test_duplicates_and_contradictions_by_hand():
    # One direction twice, shares ¼ and ¾: both can't be met, least squares gives the mean ½.
    close(aggregate_once(CRAFT(server_lr=1.0), make_cohort([[4, 0], [2, 0]], n_examples=[1, 3])).direction, [5, 0])
    # Opposite directions with equal shares: least squares gives 0; with ¼ and ¾: (¼ - ¾)/2.
    opposite = [[1, 0], [-1, 0]]
    assert aggregate_once(CRAFT(), make_cohort(opposite)).direction.tolist() == [0, 0]
    close(aggregate_once(CRAFT(server_lr=1.0), make_cohort(opposite, n_examples=[1, 3])).direction, [-2.5, 0])


def test_who_stands_still_in_a_group_does_not_count_there():
    # Group 1: clients 0 and 1 with shares ¼, ¾. Group 2: client 2 alone, its raw displacement. Group 3: nobody.
    rows = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 3, 4, 0]]
    cohort = make_cohort(rows, n_examples=[1, 3, 96], layout=layers_of(2, 2, 1))
    rule = CRAFT(server_lr=1.0)
    aggregation, state = rule.aggregate(cohort, rule.init(context_of(cohort)))
    close(aggregation.direction, [2.5, 7.5, 3, 4, 0])
    close(state["previous"], [0.25, 0.75, 0.3, 0.4, 0])
    assert aggregation.diagnostics == {"rank": [2, 1, 0], "clients": [2, 1, 0]}
    # The previous x of a group is forgotten where one client or nobody moves, and used by its direction only.
    rows = [[0, 0, 0, 1, 2], [0, 0, 0, 1, 1], [2, 0, 0, 0, 0]]
    aggregation, state = rule.aggregate(replace(cohort, pseudo_gradients=torch.tensor(rows).double()), state)
    # Group 2: unit rows (0, 1) twice, ĝ = (.6, .8): x = (.6, mean of the shares ½). Group 3: (1) twice: ½.
    close(state["previous"], [0.2, 0, 0.6, 0.5, 0.5])


def test_one_client_takes_its_update_times_the_rate(precision):
    cohorts = [make_cohort([[3, -1, 2]], dtype=precision, round_index=t) for t in (1, 2)]
    for aggregation, _ in aggregate_all(CRAFT(server_lr=0.5), cohorts, n_clients=1, cohort_size=1):
        close(aggregation.direction, [1.5, -0.5, 1])


def test_identical_clients(precision):
    # m unit rows (1, 2, -2)/3 with equal shares 1/m: x = (1/m)(1, 2, -2)/3.
    cohort = make_cohort([[1, 2, -2]] * 3, dtype=precision, local_lr=1.0)
    close(aggregate_once(CRAFT(server_lr=1.0), cohort).direction, np.array([1, 2, -2]) / 9)


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_pseudo_inverse_over_rounds(random_rounds, seed):
    layout = layers_of(6, 1, 2, 8)
    plain = PlainCRAFT(layout.group_spans, 0.3)
    cohorts = random_rounds(5, size=4, n_params=17, seed=seed, dtype=torch.float64)
    cohorts = [replace(cohort, layout=layout) for cohort in cohorts]
    for cohort, (aggregation, state) in zip(
        cohorts, aggregate_all(CRAFT(server_lr=0.3), cohorts, n_clients=6, cohort_size=4), strict=True
    ):
        u = plain.step(cohort.pseudo_gradients.numpy() * cohort.local_lr, cohort.n_examples)
        close(cohort.local_lr * aggregation.direction, u, rtol=1e-7, atol=1e-9)
        close(state["previous"], plain.x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("gap", "rank"), [(1e-2, 3), (1e-5, 2), (0.0, 2)])
def test_the_cutoff_drops_what_nearly_parallel_clients_differ_by(gap, rank, precision):
    # 1000 parameters: singular values below 1.2e-4 of the largest are dropped.
    rows = torch.zeros(3, 1000, dtype=torch.float64)
    rows[0, 0] = rows[1, 0] = rows[2, 2] = 1.0
    rows[1, 1] = gap
    cohort = make_cohort(rows, n_examples=[1, 3, 4], local_lr=1.0, dtype=precision)
    aggregation = aggregate_once(CRAFT(server_lr=1.0), cohort)
    assert aggregation.diagnostics["rank"] == [rank]
    u = PlainCRAFT([slice(0, 1000)], 1.0).step(cohort.pseudo_gradients.double().numpy(), cohort.n_examples)
    close(aggregation.direction, u, rtol=1e-4, atol=1e-5)
    if gap == 1e-5:  # without it the two shares ⅛ and ⅜ would be met by a huge second entry
        assert aggregation.direction.abs().max() < 1
        free = aggregate_once(CRAFT(server_lr=1.0, cutoff=1e-9), cohort)
        assert free.direction.abs().max() > 1e4


def test_a_large_group_in_float32(random_rounds):
    n = 300_000  # above this, the cut-off is coarse enough for float32 products
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4, n, generator=generator) + 0.5
    rows[1] = rows[0] + 0.01 * rows[1]
    cohorts = [make_cohort(rows * t, n_examples=[1, 2, 3, 4], round_index=t, dtype=torch.float32) for t in (1, 2)]
    plain = PlainCRAFT([slice(0, n)], 0.1)
    for cohort, (aggregation, _) in zip(
        cohorts, aggregate_all(CRAFT(), cohorts, n_clients=4, cohort_size=4), strict=True
    ):
        u = plain.step(cohort.pseudo_gradients.double().numpy() * 0.1, cohort.n_examples)
        assert aggregation.diagnostics["rank"] == [3]
        close(0.1 * aggregation.direction, u, rtol=0, atol=1e-5 * np.abs(u).max())


@pytest.mark.parametrize("seed", range(5))
def test_alignment_is_exact_for_independent_clients(random_rounds, precision, seed):
    layout = layers_of(9, 12)
    cohorts = random_rounds(4, size=3, n_params=21, seed=seed, dtype=precision)
    cohorts = [replace(cohort, layout=layout) for cohort in cohorts]
    for cohort, (_, state) in zip(
        cohorts, aggregate_all(CRAFT(), cohorts, n_clients=6, cohort_size=3), strict=True
    ):
        x, g = state["previous"].double().numpy(), cohort.pseudo_gradients.double().numpy()
        for span in layout.group_spans:
            wanted = cohort.client_weights * np.linalg.norm(g[:, span], axis=1)
            np.testing.assert_allclose(
                g[:, span] @ x[span], wanted, rtol=3e-5 if precision == torch.float32 else 1e-9
            )


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_lengths_do_not_matter(scale, precision):
    rows = torch.tensor([[3, 0, 1], [0, 4, 1], [1, 1, -1]], dtype=torch.float64)
    plain, scaled = (
        aggregate_once(CRAFT(), make_cohort(g, dtype=precision)).direction for g in (rows, rows * scale)
    )
    torch.testing.assert_close(scaled, plain, rtol=1e-5, atol=1e-6)


def test_order_of_clients_does_not_matter(random_rounds, shuffled):
    cohorts = list(random_rounds(4, dtype=torch.float64))
    mixed = [shuffled(cohort, [2, 0, 1]) for cohort in cohorts]
    runs = [aggregate_all(CRAFT(), run, n_clients=6, cohort_size=3) for run in (cohorts, mixed)]
    for (a, _), (b, _) in zip(*runs, strict=True):
        torch.testing.assert_close(a.direction, b.direction, rtol=1e-8, atol=1e-9)


def test_hard_cohorts(hard_cohort, record_is_json):
    for rule in (CRAFT(), CRAFT(cutoff=0.0), CRAFT(cutoff=1.0)):
        state = rule.init(context_of(hard_cohort))
        for sign in (1, -1, 1):
            cohort = replace(hard_cohort, pseudo_gradients=sign * hard_cohort.pseudo_gradients)
            aggregation, state = rule.aggregate(cohort, state)
            assert torch.isfinite(aggregation.direction).all()
            assert aggregation.direction.dtype == hard_cohort.pseudo_gradients.dtype
            record_is_json(aggregation)


def test_through_a_checkpoint(random_rounds, resumed_equals_straight):
    cohorts = [replace(cohort, layout=layers_of(2, 3)) for cohort in random_rounds(5)]
    resumed_equals_straight(CRAFT(), cohorts, n_clients=6, cohort_size=3)


def test_loss_falls(quadratic_descent):
    before, after = quadratic_descent(CRAFT(server_lr=0.1))
    assert after < 0.5 * before


def test_the_rate_is_positive():
    with pytest.raises(ParameterError, match=r"craft.server_lr must be greater than 0; found 0.0"):
        CRAFT(server_lr=0.0)
