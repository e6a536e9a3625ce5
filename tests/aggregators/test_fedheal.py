"""FedHEAL: hand-worked masks and weights, and the whole rule against a plain loop with exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedheal import FedHEAL
from fedpcd_cli.api import ParameterLayout, ParameterSlot
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, example_rounds, make_cohort

TWO_TENSORS = ParameterLayout((ParameterSlot("w", (3,), 0, 0), ParameterSlot("b", (2,), 3, 0)))


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(np.asarray(expected), dtype=actual.dtype), **tolerance)


class PlainFedHEAL:
    """The rule as published, on displacements, with sign shares as fractions."""

    def __init__(self, tau, beta, spans, share="participants"):
        self.tau, self.beta, self.spans, self.share = Fraction(tau), beta, spans, share
        self.h, self.c, self.w, self.delta, self.d = {}, {}, {}, {}, {}

    def step(self, ids, updates):
        masks = {}
        for i, update in zip(ids, updates, strict=True):
            signs = [int(x >= 0) for x in update]
            if i not in self.c:
                self.c[i], self.w[i], self.delta[i] = 0, 1 / len(ids), 0.0
                masks[i] = np.ones(update.size)
                self.h[i] = [Fraction(s) for s in signs]
            else:
                r = [h if s else 1 - h for h, s in zip(self.h[i], signs, strict=True)]
                masks[i] = np.array([float(x > self.tau) for x in r])
                self.h[i] = [(h * self.c[i] + s) / (self.c[i] + 1) for h, s in zip(self.h[i], signs, strict=True)]
            self.c[i] += 1
            self.d[i] = sum(np.linalg.norm((masks[i] * update)[span]) for span in self.spans)
        total = sum(self.d[i] for i in (ids if self.share == "participants" else self.d))
        for i in ids:
            share = self.d[i] / total if total > 0 else 1 / len(ids)
            self.delta[i] = (1 - self.beta) * self.delta[i] + self.beta * share
            self.w[i] += self.delta[i]
        a = {i: self.w[i] / sum(self.w[j] for j in ids) for i in ids}
        above = sum(a[i] * masks[i] * update for i, update in zip(ids, updates, strict=True))
        below = sum(a[i] * masks[i] for i in ids)
        return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def test_worked_example():
    expected = [[0.105362, 0.045978, 0.151341, -0.045978], [0.2, 0, 0.2, 0.3]]
    weights = [[0.513405, 0.486595], [0.556736, 0.443264]]
    rounds = aggregate_all(FedHEAL(), example_rounds(), n_clients=2, cohort_size=2)
    for (aggregation, _), u, a in zip(rounds, expected, weights, strict=True):
        close(0.1 * aggregation.direction, u, rtol=0, atol=1e-6)
        np.testing.assert_allclose(list(aggregation.diagnostics["weights"].values()), a, atol=5e-7)


def test_first_round_weighs_by_distance_by_hand():
    # Distances 5 and 12 + 3 = 15 (two tensors): shares ¼ and ¾, w = ½ + .4 share = .6 and .8, a = 3/7 and 4/7.
    cohort = make_cohort([[3, 4, 0, 0, 0], [0, 0, 12, -3, 0]], layout=TWO_TENSORS)
    aggregation = aggregate_once(FedHEAL(beta=0.4), cohort)
    close(aggregation.direction, [9 / 7, 12 / 7, 48 / 7, -12 / 7, 0])
    assert aggregation.diagnostics["kept"] == {"0": 1.0, "1": 1.0}


def test_unusual_signs_drop_out_by_hand():
    # Client 0 turns its first entry from + to -, client 1 its second. Entry 1 is then client 1's alone, entry 2
    # client 0's, the third averages both with equal weights (β = 0).
    cohorts = [
        make_cohort([[1, 1, 1], [1, 1, 1]], round_index=1),
        make_cohort([[-5, 2, 2], [3, -7, 4]], round_index=2),
    ]
    done = [a for a, _ in aggregate_all(FedHEAL(beta=0.0), cohorts, n_clients=2, cohort_size=2)]
    close(done[0].direction, [1, 1, 1])
    close(done[1].direction, [3, 2, 3])
    assert done[1].diagnostics["kept"] == {"0": 2 / 3, "1": 2 / 3}


def test_an_entry_that_nobody_keeps_stands_still():
    cohorts = [make_cohort([[1, 1], [1, 1]]), make_cohort([[-1, 1], [-1, 1]], round_index=2)]
    done = [a for a, _ in aggregate_all(FedHEAL(), cohorts, n_clients=2, cohort_size=2)]
    assert done[1].direction.tolist() == [0, 1]


def test_zero_counts_as_nonnegative():
    # Seen as nonnegative once: -1 is unusual, 0 and +1 are not.
    cohorts = [make_cohort([[0, 0, 0]]), make_cohort([[-1, 0, 1]], round_index=2)]
    done = [a for a, _ in aggregate_all(FedHEAL(), cohorts, n_clients=1, cohort_size=1)]
    assert done[1].direction.tolist() == [0, 0, 1]
    assert done[1].diagnostics["kept"] == {"0": 2 / 3}


@pytest.mark.parametrize(("tau", "kept"), [(0.3, 0.0), (0.29, 1.0), (0.31, 0.0)])
def test_the_limit_is_strict_and_exact(tau, kept):
    # 3 of 10 rounds were negative: .3 is not more than .3, whatever 3/10 is in binary.
    signs = [-1.0] * 3 + [1.0] * 7 + [-1.0]
    cohorts = [make_cohort([[sign]], round_index=t) for t, sign in enumerate(signs, start=1)]
    *_, (last, _) = aggregate_all(FedHEAL(tau=tau), cohorts, n_clients=1, cohort_size=1)
    assert last.diagnostics["kept"] == {"0": kept}


def test_counts_outgrow_one_byte():
    # Always +, then - : kept is 0; the other entry alternates, so that about half of its past agrees.
    rule, state = FedHEAL(tau=0.4), None
    plain = PlainFedHEAL("0.4", 0.4, [slice(0, 2)])
    for t in range(1, 301):
        row = [1.0 if t < 300 else -1.0, float((-1) ** t)]
        cohort = make_cohort([row], round_index=t)
        state = rule.init(context_of(cohort)) if state is None else state
        aggregation, state = rule.aggregate(cohort, state)
        close(aggregation.direction, plain.step([0], [np.array(row)]))
        assert state["clients"][0]["counts"].dtype == (torch.uint8 if t <= 255 else torch.int16)
    assert state["clients"][0]["counts"].tolist() == [299, 150]


@pytest.mark.parametrize("n_rounds", [254, 255, 256, 257])
def test_tau_of_one_keeps_nothing_after_the_first_round(n_rounds):
    cohorts = [make_cohort([[1.0, -1.0]], round_index=t) for t in range(1, n_rounds + 1)]
    *_, (last, _) = aggregate_all(FedHEAL(tau=1.0), cohorts, n_clients=1, cohort_size=1)
    assert last.direction.tolist() == [0, 0]


@pytest.mark.parametrize("share", ["participants", "all_seen"])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_plain_rule_over_rounds(random_rounds, seed, share):
    rule, plain = FedHEAL(share=share), PlainFedHEAL("0.3", 0.4, TWO_TENSORS.tensor_spans, share)
    cohorts = [replace(cohort, layout=TWO_TENSORS) for cohort in random_rounds(12, seed=seed, dtype=torch.float64)]
    for cohort, (aggregation, _) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=6, cohort_size=3), strict=True
    ):
        displacements = cohort.pseudo_gradients.numpy() * cohort.local_lr
        u = plain.step(cohort.client_ids, displacements)
        close(cohort.local_lr * aggregation.direction, u, rtol=1e-12, atol=1e-15)


def test_stale_distances_of_absent_clients_by_hand():
    # Round 1, rate .1: client 0 moves 10 · .1 = 1. Round 2, rate .2: client 1 moves 15 · .2 = 3.
    # Among all seen its share is 3/4: w = 1 + .4 · .75 = 1.3; among participants 1.4.
    cohorts = [
        make_cohort([[10.0]], client_ids=[0], n_clients=2, local_lr=0.1),
        make_cohort([[15.0]], client_ids=[1], n_clients=2, local_lr=0.2, round_index=2),
    ]
    for share, weight in (("all_seen", 1.3), ("participants", 1.4)):
        *_, (_, state) = aggregate_all(FedHEAL(share=share), cohorts, n_clients=2, cohort_size=1)
        assert state["clients"][1]["weight"] == pytest.approx(weight)
        assert state["clients"][0]["weight"] == pytest.approx(1.4)


def test_one_client_and_identical_clients(precision):
    close(aggregate_once(FedHEAL(), make_cohort([[3, -1, 2]], dtype=precision)).direction, [3, -1, 2])
    close(aggregate_once(FedHEAL(), make_cohort([[1, 2, -2]] * 3, dtype=precision)).direction, [1, 2, -2])


def test_nobody_moved():
    aggregation = aggregate_once(FedHEAL(), make_cohort([[0, 0]] * 4))
    assert aggregation.direction.tolist() == [0, 0]
    assert set(aggregation.diagnostics["weights"].values()) == {0.25}


@pytest.mark.parametrize("scale", [1e-10, 1e10, 1e-25, 1e25])
def test_scales(scale, precision):
    rows = torch.tensor([[3, 0, 1], [0, 4, 1], [1, 1, -1]], dtype=torch.float64)
    plain, scaled = (
        aggregate_once(FedHEAL(), make_cohort(g, dtype=precision)).direction.double() for g in (rows, rows * scale)
    )
    torch.testing.assert_close(scaled / scale, plain, rtol=1e-5, atol=1e-6)


def test_order_of_clients_does_not_matter(random_rounds, shuffled):
    cohorts = list(random_rounds(5, dtype=torch.float64))
    mixed = [shuffled(cohort, [2, 0, 1]) for cohort in cohorts]
    runs = [aggregate_all(FedHEAL(), run, n_clients=6, cohort_size=3) for run in (cohorts, mixed)]
    for (a, _), (b, _) in zip(*runs, strict=True):
        torch.testing.assert_close(a.direction, b.direction)


def test_hard_cohorts(hard_cohort, record_is_json):
    for rule in (FedHEAL(), FedHEAL(share="all_seen", beta=1.0)):
        state = rule.init(context_of(hard_cohort))
        for sign in (1, -1, 1):
            cohort = replace(hard_cohort, pseudo_gradients=sign * hard_cohort.pseudo_gradients)
            aggregation, state = rule.aggregate(cohort, state)
            assert torch.isfinite(aggregation.direction).all()
            assert aggregation.direction.dtype == hard_cohort.pseudo_gradients.dtype
            record_is_json(aggregation)


def test_through_a_checkpoint(random_rounds, resumed_equals_straight):
    resumed_equals_straight(FedHEAL(), random_rounds(6), n_clients=6, cohort_size=3)


def test_loss_falls(quadratic_descent):
    before, after = quadratic_descent(FedHEAL())
    assert after < 0.5 * before
