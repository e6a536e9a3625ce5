"""FedPW: hand-worked weights, cuts and gains, and the whole rule against a plain loop in dense NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedpw import FedPW
from fedpcd_baselines.fedpw_tensors import Cut, adjust_tensor, count_of
from fedpcd_baselines.fedpw_weights import Consensus, blend, drop_rates, loss_shares
from fedpcd_cli.api import FedPCDError, ParameterLayout, ParameterSlot, PluginError
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, example_rounds, make_cohort


def tensors_of(*sizes):
    offsets = np.cumsum([0, *sizes])
    return ParameterLayout(tuple(ParameterSlot(str(i), (n,), int(offsets[i]), i) for i, n in enumerate(sizes)))


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(np.asarray(expected), dtype=actual.dtype), **tolerance)


class PlainFedPW:
    """The rule as published, on displacements, with full matrices and sorts."""

    def __init__(self, spans, beta=0.3, rate=0.3):
        self.spans, self.beta, self.rate = spans, beta, rate
        self.p, self.q, self.dp, self.dq, self.first = {}, {}, {}, {}, None

    def step(self, ids, updates, losses):
        m = len(ids)
        shares = losses / losses.sum()
        s = updates @ updates.sum(axis=0)
        phi = s / s.sum()
        is_first = self.first is None
        self.first = self.first or (losses.mean(), s.mean())
        for store, moving, values, beta in (
            (self.p, self.dp, shares, self.beta * losses.mean() / self.first[0]),
            (self.q, self.dq, phi, self.beta * s.mean() / self.first[1]),
        ):
            for i, value in zip(ids, values, strict=True):
                store.setdefault(i, value)
                moving[i] = (1 - beta) * moving.get(i, 0.0) + beta * value
                store[i] += moving[i]
            total = sum(store[i] for i in ids)
            for i in ids:
                store[i] /= total
        p, q = np.array([self.p[i] for i in ids]), np.array([self.q[i] for i in ids])
        if m == 1:
            weights = np.ones(1)
        else:
            sp, sq = np.std(p, ddof=1), np.std(q, ddof=1)
            weights = (sp * p + sq * q) / (sp + sq)
        if is_first:
            return weights @ updates
        inverse = 1 / np.maximum(shares, 1e-12)
        rates = np.minimum(1, m * self.rate * inverse / inverse.sum())
        return np.concatenate([self.tensor(updates[:, span], weights, rates) for span in self.spans])

    def tensor(self, x, weights, rates):
        m, n = x.shape
        masked, sizes = x.copy(), []
        for i in range(m):
            order = np.argsort(np.abs(x[i]), kind="stable")[: int(n * rates[i] + 1e-9)]
            masked[i, order] = 0
            sizes.append(np.abs(x[i])[order][::10].mean() if order.size else None)
        v = weights @ masked
        live = masked[np.any(masked, axis=1)]
        k = int(n * self.rate + 1e-9)
        if None in sizes or len(live) < 2 or m == 1 or k == 0:
            return v
        unit = live / np.linalg.norm(live, axis=1, keepdims=True)
        norms = np.linalg.norm(unit, axis=0)
        z = np.full(n, np.inf)
        z[norms > 0] = np.std(unit[:, norms > 0] / norms[norms > 0], axis=0, ddof=1)
        z = np.round(z, 12)  # columns that tie in exact arithmetic
        consensus = [j for j in np.argsort(z, kind="stable")[:k] if norms[j] > 0]
        b = np.abs(v[consensus][::10]).mean()
        ratio = np.mean(sizes) / b if b else math.inf
        if ratio < 1:
            v[consensus] *= 1 + ratio
        return v


def test_worked_example():
    expected = [[0.166667, 0, 0.166667, 0], [0.126071, -0.047859, 0.010894, 0.189106]]
    rounds = list(aggregate_all(FedPW(avg_drop_rate=0.5), example_rounds(), n_clients=2, cohort_size=2))
    for (aggregation, _), u in zip(rounds, expected, strict=True):
        close(0.1 * aggregation.direction, u, rtol=0, atol=1e-6)
    first, second = (a.diagnostics for a, _ in rounds)
    np.testing.assert_allclose(list(first["weights"].values()), [2 / 3, 1 / 3])
    np.testing.assert_allclose(list(second["weights"].values()), [0.630353, 0.369647], atol=5e-7)
    np.testing.assert_allclose(list(second["drop_rates"].values()), [0.444444, 0.555556], atol=5e-7)


def test_first_round_weights_by_hand():
    # Losses 3 and 1: ℓ = ¾, ¼. Updates (3), (1): s = 12, 4, φ = ¾, ¼: both criteria agree: p and q stay at the
    # shares after the division by their sum, λ = ¾, ¼: 9/4 + 1/4.
    cohort = make_cohort([[3], [1]], running_losses=[3, 1])
    aggregation = aggregate_once(FedPW(), cohort)
    close(aggregation.direction, [2.5])
    np.testing.assert_allclose(aggregation.client_coefficients, [0.75, 0.25])


def test_the_criterion_that_spreads_more_has_the_larger_say_by_hand():
    # p = (¾, ¼) spreads twice as much as q = (⅝, ⅜): λ_1 = ⅔ ¾ + ⅓ ⅝ = 17/24.
    np.testing.assert_allclose(blend(np.array([0.75, 0.25]), np.array([0.625, 0.375])), [17 / 24, 7 / 24])
    np.testing.assert_array_equal(blend(np.array([0.5, 0.5]), np.array([0.5, 0.5])), [0.5, 0.5])
    np.testing.assert_array_equal(blend(np.array([3.0]), np.array([-1.0])), [1.0])


def test_momenta_by_hand():
    # One weight each. Round 1 (β = ½): ℓ = (½, ½), δ = ¼, p = ¾ / 1.5 = ½. Round 2, losses (6, 2), mean 4 against 2:
    # β_ℓ = 1: δ = ℓ = (¾, ¼), p = (5/4, ¾)/2 = (⅝, ⅜).
    cohorts = [
        make_cohort([[1.0], [1.0]], running_losses=[2, 2]),
        make_cohort([[1.0], [1.0]], running_losses=[6, 2], round_index=2),
    ]
    *_, (_, state) = aggregate_all(FedPW(beta=0.5), cohorts, n_clients=2, cohort_size=2)
    assert [state["clients"][i]["loss"] for i in (0, 1)] == pytest.approx([0.625, 0.375])
    assert [state["clients"][i]["loss_momentum"] for i in (0, 1)] == pytest.approx([0.75, 0.25])
    assert state["first"] == {"loss": 2.0, "consensus": pytest.approx(0.02)}  # ‖.1 (1 + 1)‖² / 2


def test_drop_rates_by_hand():
    # ℓ = (⅔, ⅓): 1/ℓ = 1.5, 3: shares ⅓, ⅔ of 2 · .3. A loss near zero takes it all, at most 1.
    np.testing.assert_allclose(drop_rates(loss_shares(np.array([2.0, 1.0])), 0.3), [0.2, 0.4])
    rates = drop_rates(loss_shares(np.array([1e-9, 1.0, 1.0, 1.0])), 0.3)
    assert rates[0] == 1
    assert rates[1:].max() < 1e-8
    np.testing.assert_array_equal(drop_rates(loss_shares(np.zeros(4)), 0.25), [0.25] * 4)


def test_a_cut_takes_equal_entries_by_index():
    fragment = torch.tensor([2.0, -1.0, 1.0, 0.0, -1.0, 3.0])
    for count, kept in [(0, [2, -1, 1, 0, -1, 3]), (1, [2, -1, 1, 0, -1, 3]), (2, [2, 0, 1, 0, -1, 3]),
                        (3, [2, 0, 0, 0, -1, 3]), (4, [2, 0, 0, 0, 0, 3]), (6, [0] * 6)]:  # fmt: skip
        assert Cut.of(fragment, count).apply(fragment).tolist() == kept
    # Every tenth of the dropped in ascending order: 0 and 10 of 0, 1, ..., 11.
    assert Cut.of(torch.arange(20.0).flip(0), 12).dropped_size == 5.0


def test_agreed_entries_are_amplified_by_hand():
    # n = 4, every client loses one entry (its smallest, 1): a = 1. λ = ½, ½: v = (4, 4, 4, 0): entries one and
    # two agree best (equal signs and sizes, ρ = 2), entry three has a single client. The first of two equals goes
    # first: r = .25 amplifies one entry, b = 4, a/b = ¼.
    fragments = torch.tensor([[4.0, 4.0, 8.0, 1.0], [4.0, 4.0, 1.0, 8.0]])
    fragments[1, 3] = -8.0
    out = torch.zeros(4)
    report = adjust_tensor(fragments, np.array([0.5, 0.5]), np.array([0.25, 0.25]), 0.25, out)
    assert out.tolist() == [5, 4, 4, -4]
    assert (report.gain, report.amplified) == (1.25, 1)
    # r = .75: three entries, one and two and then, of the two with a single client, the first.
    out = torch.zeros(4)
    adjust_tensor(fragments, np.array([0.5, 0.5]), np.array([0.25, 0.25]), 0.75, out)
    assert out.tolist() == [5, 5, 5, -4]


@pytest.mark.parametrize(
    ("rates", "rate"),
    [([0.0, 0.5], 0.5), ([0.5, 1.0], 0.5), ([0.5, 0.5], 0.2)],
    ids=["a client loses nothing", "a client loses everything", "no consensus entry"],
)
def test_nothing_is_amplified_if_undefined(rates, rate):
    out = torch.zeros(4)
    fragments = torch.tensor([[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0]])
    report = adjust_tensor(fragments, np.array([0.5, 0.5]), np.array(rates), rate, out)
    assert report.amplified == 0
    kept = [4 - round(4 * r) for r in rates]
    expected = [sum(0.5 * (4 - j) for k in kept if j < k) for j in range(4)]
    assert out.tolist() == expected


def test_a_count_is_not_lost_to_rounding():
    shares = loss_shares(np.full(7, 0.1))
    assert all(count_of(10, r) == 3 for r in drop_rates(shares, 0.3))
    assert count_of(10, 0.2999) == 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_clients", "size"), [(4, 4), (7, 3)])
def test_equals_the_plain_rule_over_rounds(random_rounds, seed, n_clients, size):
    layout = tensors_of(40, 3, 17)
    plain, rule = PlainFedPW(layout.tensor_spans), FedPW()
    cohorts = random_rounds(6, n_clients=n_clients, size=size, n_params=60, seed=seed, dtype=torch.float64)
    drift = torch.linspace(0, 2, 60, dtype=torch.float64)  # so that some entries agree
    cohorts = [replace(c, layout=layout, pseudo_gradients=c.pseudo_gradients + drift) for c in cohorts]
    amplified = 0
    for cohort, (aggregation, _) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=n_clients, cohort_size=size), strict=True
    ):
        updates = cohort.pseudo_gradients.numpy() * cohort.local_lr
        u = plain.step(cohort.client_ids, updates, cohort.running_losses)
        close(cohort.local_lr * aggregation.direction, u, rtol=1e-9, atol=1e-12)
        amplified += aggregation.diagnostics.get("amplified", 0)
    assert amplified > 0


def test_long_tensors_in_float32_equal_the_plain_rule():
    # Long enough for the sampled bound, the integer keys and the threads.
    n, generator = 40_000, torch.Generator().manual_seed(0)
    layout = tensors_of(n)
    cohorts = [
        make_cohort(
            torch.randn(4, n, generator=generator) + torch.linspace(0, 3, n),
            running_losses=[1.0, 0.5, 1.5, 0.8],
            round_index=t,
            layout=layout,
            dtype=torch.float32,
        )
        for t in (1, 2)
    ]
    plain = PlainFedPW(layout.tensor_spans)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for cohort, (aggregation, _) in zip(
            cohorts, aggregate_all(FedPW(), cohorts, n_clients=4, cohort_size=4), strict=True
        ):
            updates = cohort.pseudo_gradients.double().numpy() * cohort.local_lr
            u = plain.step(cohort.client_ids, updates, cohort.running_losses)
            # Ranks of near ties decide which entries every tenth is, and who is last in the set.
            different = np.abs(cohort.local_lr * aggregation.direction.numpy() - u) > 1e-4
            assert different.sum() <= 2
    finally:
        torch.set_num_threads(threads)
    assert aggregation.diagnostics["amplified"] == 12_000


def test_newcomers_start_from_their_present_shares_by_hand():
    # Round 2 with clients 0 and 2: ℓ = (¼, ¾), β_ℓ = .3 · 2/1. Client 2 is new: p = ¾, δ = .6 · ¾.
    cohorts = [
        make_cohort([[1.0], [1.0]], client_ids=[0, 1], n_clients=3, running_losses=[1, 1]),
        make_cohort([[1.0], [1.0]], client_ids=[0, 2], n_clients=3, running_losses=[1, 3], round_index=2),
    ]
    first, second = (dict(s["clients"]) for _, s in aggregate_all(FedPW(), cohorts, n_clients=3, cohort_size=2))
    old = 0.5 + 0.4 * 0.15 + 0.6 * 0.25
    new = 0.75 + 0.6 * 0.75
    assert second[0]["loss"] == pytest.approx(old / (old + new))
    assert second[2]["loss"] == pytest.approx(new / (old + new))
    assert second[2]["loss_momentum"] == pytest.approx(0.45)
    assert second[1] == first[1]  # the absent client stays as it was


def test_one_client(precision):
    # Round 1: its own update. Round 2: without its ⌊3 · .4⌋ = 1 smallest entry.
    cohorts = [make_cohort([[3, -1, 2]], running_losses=[2], dtype=precision, round_index=t) for t in (1, 2)]
    done = [a for a, _ in aggregate_all(FedPW(avg_drop_rate=0.4), cohorts, n_clients=1, cohort_size=1)]
    close(done[0].direction, [3, -1, 2])
    close(done[1].direction, [3, 0, 2])


def test_identical_clients_average(precision):
    cohort = make_cohort([[1, 2, -2]] * 3, running_losses=[1, 2, 3], dtype=precision)
    close(aggregate_once(FedPW(), cohort).direction, [1, 2, -2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_updates_that_cancel_have_equal_consensus(dtype):
    # .1 + .2 - .3 is not zero in binary.
    rows = torch.tensor([[0.1, 1], [0.2, 1], [-0.3, -2]], dtype=dtype)
    consensus = Consensus.of(rows, 0.1)
    np.testing.assert_array_equal(consensus.shares, [1 / 3] * 3)
    assert consensus.mean == 0
    # After a first round without consensus, β_φ is β.
    cohorts = [
        make_cohort(rows, running_losses=[1, 1, 1], dtype=dtype),
        make_cohort(torch.ones(3, 2), running_losses=[1, 1, 1], round_index=2, dtype=dtype),
    ]
    *_, (_, state) = aggregate_all(FedPW(), cohorts, n_clients=3, cohort_size=3)
    assert state["clients"][0]["consensus_momentum"] == pytest.approx((0.7 * 0.3 + 0.3) / 3)


def test_weights_may_be_negative_and_sum_to_one():
    # Δ = (3), (-1): s = 6, -2, φ = 1.5, -.5.
    aggregation = aggregate_once(FedPW(), make_cohort([[3], [-1]], running_losses=[1, 1]))
    close(aggregation.direction, [5])
    np.testing.assert_allclose(aggregation.client_coefficients, [1.5, -0.5])


def test_a_momentum_that_overflows_is_a_named_error():
    # The first loss is tiny: β_ℓ = .3e30 per round, squared every round.
    cohorts = [
        make_cohort(
            [[1.0, 2.0], [2.0, 1.0]], running_losses=[1e-30, 1e-30] if t == 1 else [1.0, 2.0], round_index=t
        )
        for t in range(1, 40)
    ]
    directions = []
    rounds = aggregate_all(FedPW(), cohorts, n_clients=2, cohort_size=2)
    with pytest.raises(FedPCDError, match=r"fedpw, round \d+: the loss momentum must stay finite"):
        directions.extend(aggregation.direction for aggregation, _ in rounds)
    assert directions
    assert all(torch.isfinite(direction).all() for direction in directions)


def test_a_client_without_a_finite_loss_is_left_out():
    cohort = make_cohort([[3], [9], [1]], running_losses=[3, math.nan, 1])
    rule = FedPW()
    aggregation, state = rule.aggregate(cohort, rule.init(context_of(cohort)))
    close(aggregation.direction, [2.5])
    np.testing.assert_allclose(aggregation.client_coefficients, [0.75, 0, 0.25])
    assert aggregation.diagnostics["left_out"] == [1]
    assert sorted(state["clients"]) == [0, 2]
    nobody = replace(cohort, running_losses=np.full(3, math.nan))
    aggregation, after = rule.aggregate(nobody, state)
    assert after is state
    assert not aggregation.direction.any()
    with pytest.raises(PluginError, match=r"'fedpw' needs each client's running loss"):
        rule.aggregate(replace(cohort, running_losses=None), state)


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_scales(scale, precision):
    rows = torch.tensor([[3, 0, 1, 5], [0, 4, 1, 6], [1, 1, -1, 7]], dtype=torch.float64)
    results = []
    for factor in (1.0, scale):
        cohorts = [
            make_cohort(rows * factor, running_losses=[1, 2, 3], round_index=t, dtype=precision) for t in (1, 2)
        ]
        *_, (last, _) = aggregate_all(FedPW(), cohorts, n_clients=3, cohort_size=3)
        results.append(last.direction.double() / factor)
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_order_of_clients_does_not_matter(random_rounds, shuffled):
    cohorts = list(random_rounds(4, dtype=torch.float64))
    mixed = [shuffled(cohort, [2, 0, 1]) for cohort in cohorts]
    runs = [aggregate_all(FedPW(), run, n_clients=6, cohort_size=3) for run in (cohorts, mixed)]
    for (a, _), (b, _) in zip(*runs, strict=True):
        torch.testing.assert_close(a.direction, b.direction)


def test_hard_cohorts(hard_cohort, record_is_json):
    for rule in (FedPW(), FedPW(avg_drop_rate=1.0), FedPW(avg_drop_rate=0.0)):
        state = rule.init(context_of(hard_cohort))
        for t, sign in enumerate((1, -1, 1), start=1):
            cohort = replace(hard_cohort, pseudo_gradients=sign * hard_cohort.pseudo_gradients, round_index=t)
            aggregation, state = rule.aggregate(cohort, state)
            assert torch.isfinite(aggregation.direction).all()
            assert aggregation.direction.dtype == hard_cohort.pseudo_gradients.dtype
            record_is_json(aggregation)


@pytest.mark.parametrize("losses", [[0, 0, 0], [1e-300, 1, 1], [1e300, 1e300, 1e300]])
def test_extreme_losses(losses):
    cohorts = [
        make_cohort([[3, 0, 1], [0, 4, 1], [1, 1, -1]], running_losses=losses, round_index=t) for t in (1, 2, 3)
    ]
    for aggregation, _ in aggregate_all(FedPW(), cohorts, n_clients=3, cohort_size=3):
        assert torch.isfinite(aggregation.direction).all()
        assert sum(aggregation.diagnostics["weights"].values()) == pytest.approx(1)


def test_through_a_checkpoint(random_rounds, resumed_equals_straight):
    resumed_equals_straight(FedPW(), random_rounds(5), n_clients=6, cohort_size=3)


def test_loss_falls(quadratic_descent):
    before, after = quadratic_descent(FedPW())
    assert after < 0.5 * before
