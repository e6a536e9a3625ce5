"""FedLF: hand-worked layers, history and fair row, and the whole rule against CVXPY in parameter space."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
import torch

from fedpcd_baselines.fedlf import FedLF, _guard
from fedpcd_cli.api import ParameterLayout, ParameterSlot, PluginError
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, example_rounds, make_cohort


def layers_of(*sizes, tensors_per_layer=1):
    slots, offset = [], 0
    for group, size in enumerate(sizes):
        for part in range(tensors_per_layer):
            slots.append(ParameterSlot(f"{group}.{part}", (size,), offset, group))
            offset += size
    return ParameterLayout(tuple(slots))


def close(actual, expected, **tolerance):
    torch.testing.assert_close(actual, torch.as_tensor(np.asarray(expected), dtype=actual.dtype), **tolerance)


class PlainFedLF:
    """The rule in parameter space in float64, each program by CVXPY."""

    def __init__(self, spans):
        self.spans, self.last, self.round = spans, {}, {}

    def step(self, t, ids, updates, losses):
        m = len(ids)
        history = []
        if len(self.last) > m:
            window = len(self.last) // m
            history = [self.last[c] for c in sorted(self.last) if c not in ids and t - self.round[c] <= window]
        sums = losses.sum() / (losses @ losses)
        h = (losses * sums - 1) / (math.sqrt(m) * np.linalg.norm(losses))
        parts = []
        for span in self.spans:
            q = [g[span] for g in updates if np.any(g[span])]
            weights = [w for g, w in zip(updates, h, strict=True) if np.any(g[span])]
            if not q:
                parts.append(np.zeros(span.stop - span.start))
                continue
            mu = np.mean([np.linalg.norm(row) for row in q])
            q = [row * mu / np.linalg.norm(row) for row in q]
            fair = sum(w * row for w, row in zip(weights, q, strict=True))
            rows = [*q, fair * mu / np.linalg.norm(fair)] if np.linalg.norm(h) > 1e-12 else q
            rows += [g[span] * mu / np.linalg.norm(g[span]) for g in history if np.any(g[span])]
            v = np.stack(rows) / mu
            weight = cvxpy.Variable(len(rows), nonneg=True)
            problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(v.T @ weight)), [cvxpy.sum(weight) == 1])
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-14, tol_gap_rel=1e-14, tol_feas=1e-14)
            parts.append(mu * v.T @ weight.value)
        d = np.concatenate(parts)
        for client, update in zip(ids, updates, strict=True):
            self.last[client], self.round[client] = update, t
        return d * np.linalg.norm(np.mean(updates, axis=0)) / np.linalg.norm(d), history


def test_worked_example():
    expected = [[0.089422, 0.060054, 0.156621, 0.036973], [0.177794, 0.002233, -0.020625, 0.207265]]
    rounds = aggregate_all(FedLF(), example_rounds(), n_clients=2, cohort_size=2)
    for (aggregation, _), u in zip(rounds, expected, strict=True):
        close(0.1 * aggregation.direction, u, rtol=0, atol=5e-7)


def test_fragments_get_equal_length_by_hand():
    # Lengths 3 and 4, both rescaled to 3.5: the shortest vector between is (1.75, 1.75). The mean (1.5, 2) is
    # 2.5 long. Equal losses: no fair row.
    cohort = make_cohort([[3, 0], [0, 4]], received_losses=[2, 2])
    aggregation = aggregate_once(FedLF(), cohort)
    close(aggregation.direction, [2.5 / math.sqrt(2)] * 2)
    assert aggregation.diagnostics["fair_row"] is False


def test_the_fair_row_by_hand():
    # F = (2, 1): h is proportional to 3/5 F - 1 = (1/5, -2/5), so the fair row is (1, -2)/√5. With (1, 0) and
    # (0, 1) the shortest vector lies halfway between (0, 1) and the fair row: (1/√5, 1 - 2/√5)/2, and (1, 0) is
    # ahead of it: 1/(2√5) = .224 > ||.||² = .053. The mean is √½ long.
    cohort = make_cohort([[1, 0], [0, 1]], received_losses=[2, 1])
    halfway = np.array([1 / math.sqrt(5), 1 - 2 / math.sqrt(5)])
    close(aggregate_once(FedLF(), cohort).direction, halfway / np.linalg.norm(halfway) * math.sqrt(0.5))


def test_layers_are_solved_separately_by_hand():
    # Layer 1: (1, 0) and (0, 1) meet in (½, ½). Layer 2: (2, 0) and (2, 0) stay (2, 0).
    # The joined (½, ½, 2, 0) is √4.5 long, and so is the mean (½, ½, 2, 0) itself.
    cohort = make_cohort([[1, 0, 2, 0], [0, 1, 2, 0]], received_losses=[1, 1], layout=layers_of(2, 2))
    close(aggregate_once(FedLF(), cohort).direction, [0.5, 0.5, 2, 0])
    # Layer 2 with (2, 0) and (4, 0): μ = 3, (3, 0). The joined (½, ½, 3, 0) is the mean too.
    cohort = make_cohort([[1, 0, 2, 0], [0, 1, 4, 0]], received_losses=[1, 1], layout=layers_of(2, 2))
    close(aggregate_once(FedLF(), cohort).direction, [0.5, 0.5, 3, 0])


def test_tensor_grouping_by_hand():
    # One layer of two tensors. By tensor: 1 and 1 give 1; 3 and -1, both rescaled to length 2, cancel.
    layout = ParameterLayout((ParameterSlot("w", (1,), 0, 0), ParameterSlot("b", (1,), 1, 0)))
    cohort = make_cohort([[1, 3], [1, -1]], received_losses=[1, 1], layout=layout)
    by_tensor = aggregate_once(FedLF(grouping="tensor"), cohort)
    close(by_tensor.direction, [math.sqrt(2), 0])  # the mean (1, 1) is √2 long
    assert by_tensor.diagnostics["zero_layers"] == [1]
    # As a layer: unit rows (1, 3)/√10 and (1, -1)/√2, halfway between.
    halfway = np.array([1, 3]) / math.sqrt(10) + np.array([1, -1]) / math.sqrt(2)
    close(aggregate_once(FedLF(), cohort).direction, halfway / np.linalg.norm(halfway) * math.sqrt(2))


def test_absent_clients_by_hand():
    # One client a round: (0, 2), (0, 2), (3, 0). In round 3 two are stored, the window is 2 rounds: rows (3, 0),
    # (0, 3), (0, 3), shortest (1.5, 1.5), at the length 3 of the mean.
    cohorts = [
        make_cohort([row], client_ids=[i], n_clients=4, round_index=i + 1, received_losses=[1])
        for i, row in enumerate([[0, 2], [0, 2], [3, 0]])
    ]
    done = [a for a, _ in aggregate_all(FedLF(), cohorts, n_clients=4, cohort_size=1)]
    close(done[1].direction, [0, 2])  # M = 1 is not more than m = 1
    close(done[2].direction, [3 / math.sqrt(2)] * 2)
    assert [a.diagnostics["history"] for a in done] == [0, 0, 2]


def test_absent_clients_expire_and_own_past_does_not_count():
    ids = [0, 1, 1, 1]
    rows = [[0, 1], [1, 0], [1, 0], [1, 0]]
    cohorts = [
        make_cohort([row], client_ids=[i], n_clients=4, round_index=t, received_losses=[1])
        for t, (i, row) in enumerate(zip(ids, rows, strict=True), start=1)
    ]
    done = [a for a, _ in aggregate_all(FedLF(), cohorts, n_clients=4, cohort_size=1)]
    # Round 3: M = 2, window 2, client 0 is 2 rounds old. Round 4: it is 3 rounds old.
    assert [a.diagnostics["history"] for a in done] == [0, 0, 1, 0]
    close(done[2].direction, [math.sqrt(0.5)] * 2)
    close(done[3].direction, [1, 0])


@pytest.mark.parametrize(
    ("rows", "merged", "expected"),
    [
        # The middle layer cancels: (1) and (-1). Joined with the last, rows (1, 2) and (-1, 2): (0, 2).
        ([[3, 1, 2], [3, -1, 2]], [[1, 2]], [3, 0, 2]),
        # The last layer cancels: joined with the one before.
        ([[3, 2, 1], [3, 2, -1]], [[1, 2]], [3, 2, 0]),
        # The first two cancel: joined with the third after two merges.
        ([[1, 1, 2], [-1, -1, 2]], [[0, 1, 2]], [0, 0, 2]),
    ],
)
def test_layers_that_stand_still_are_merged_by_hand(rows, merged, expected):
    cohort = make_cohort(rows, received_losses=[1, 1], layout=layers_of(1, 1, 1))
    aggregation = aggregate_once(FedLF(merge_zero_layers=True), cohort)
    assert aggregation.diagnostics["merged_layers"] == merged
    close(aggregation.direction, expected)
    plain = aggregate_once(FedLF(), cohort)
    close(plain.direction, expected)  # a layer that cancels symmetrically stands still either way
    assert len(plain.diagnostics["zero_layers"]) == sum(map(len, merged)) - 1


def test_a_merge_frees_a_layer():
    # Layer 1 by itself: 3 and -1 at equal length cancel. Together with layer 2: unit rows (3, 4)/5 and
    # (-1, 2)/√5, halfway between them layer 1 moves. The mean is (1, 3).
    cohort = make_cohort([[3, 4], [-1, 2]], received_losses=[1, 1], layout=layers_of(1, 1))
    assert aggregate_once(FedLF(), cohort).direction[0] == 0
    halfway = np.array([0.6, 0.8]) + np.array([-1, 2]) / math.sqrt(5)
    merged = aggregate_once(FedLF(merge_zero_layers=True), cohort).direction
    close(merged, halfway / np.linalg.norm(halfway) * np.linalg.norm([1, 3]))


def test_one_client_is_its_own_update(precision):
    cohort = make_cohort([[3, -1, 2]], received_losses=[7], layout=layers_of(1, 2), dtype=precision)
    close(aggregate_once(FedLF(), cohort).direction, [3, -1, 2])


def test_identical_clients():
    rows = [[1, 2, -2]] * 3
    close(aggregate_once(FedLF(), make_cohort(rows, received_losses=[2, 2, 2])).direction, [1, 2, -2])
    # Unequal losses: the fair row is against the common direction (Σ h < 0), nothing is fair to both.
    still = aggregate_once(FedLF(), make_cohort(rows, received_losses=[1, 2, 3]))
    assert still.direction.tolist() == [0, 0, 0]


def test_equals_cvxpy_over_rounds(random_rounds):
    layout = layers_of(6, 5, 9)
    plain, rule = PlainFedLF(layout.group_spans), FedLF()
    cohorts = list(random_rounds(6, n_clients=7, size=2, n_params=20, dtype=torch.float64))
    cohorts = [replace(cohort, layout=layout) for cohort in cohorts]
    sizes = []
    for cohort, (aggregation, _) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=7, cohort_size=2), strict=True
    ):
        expected, history = plain.step(
            cohort.round_index, cohort.client_ids, cohort.pseudo_gradients.numpy(), cohort.received_losses
        )
        close(aggregation.direction, expected, rtol=1e-5, atol=1e-6)
        assert aggregation.diagnostics["history"] == len(history)
        sizes.append(len(history))
    assert max(sizes) >= 4


def test_a_shrunken_cohort_looks_further_back(random_rounds):
    # From 3 clients to 1 the window triples: rows count again that no cohort met in between.
    layout = layers_of(16, 12)
    wide = list(random_rounds(9, n_clients=12, size=3, n_params=28, seed=3, dtype=torch.float64))
    narrow = list(random_rounds(11, n_clients=12, size=1, n_params=28, seed=4, dtype=torch.float64))[9:]
    plain, rule, n_missing = PlainFedLF(layout.group_spans), FedLF(), []
    state = rule.init(context_of(wide[0]))
    for cohort in [replace(cohort, layout=layout) for cohort in wide + narrow]:
        n_missing.append(int(np.isnan(state["grams"]).sum()))
        expected, history = plain.step(
            cohort.round_index, cohort.client_ids, cohort.pseudo_gradients.numpy(), cohort.received_losses
        )
        aggregation, state = rule.aggregate(cohort, state)
        assert aggregation.diagnostics["history"] == len(history)
        close(aggregation.direction, expected, rtol=1e-5, atol=1e-6)
    assert n_missing[9] > 0  # before the first narrow round
    seen = np.ix_(range(2), *[[entry["row"] for entry in state["clients"].values()]] * 2)
    assert np.isnan(state["grams"][seen]).sum() < n_missing[9]


@pytest.mark.parametrize("seed", range(6))
def test_no_layer_conflicts_with_anyone(random_rounds, precision, seed):
    layout = layers_of(3, 20, 40)
    stored, ages = {}, {}
    cohorts = random_rounds(6, n_clients=9, size=3, n_params=63, seed=seed, dtype=precision)
    cohorts = [replace(cohort, layout=layout) for cohort in cohorts]
    for cohort, (aggregation, _) in zip(
        cohorts, aggregate_all(FedLF(), cohorts, n_clients=9, cohort_size=3), strict=True
    ):
        d = aggregation.direction.double().numpy()
        rows = dict(zip(cohort.client_ids, cohort.pseudo_gradients.double().numpy(), strict=True))
        window = len(stored) // 3 if len(stored) > 3 else 0
        rows |= {
            c: g for c, g in stored.items() if c not in rows and window and cohort.round_index - ages[c] <= window
        }
        for span in layout.group_spans:
            for g in rows.values():
                lengths = np.linalg.norm(g[span]) * np.linalg.norm(d)
                assert g[span] @ d[span] >= -1e-6 * lengths
        for client, g in zip(cohort.client_ids, cohort.pseudo_gradients.double().numpy(), strict=True):
            stored[client], ages[client] = g, cohort.round_index
        mean = cohort.pseudo_gradients.double().mean(dim=0).norm()
        torch.testing.assert_close(aggregation.direction.double().norm(), mean, rtol=1e-5, atol=0)


def test_float32_layers_too_large_for_exact_products(random_rounds):
    n = 70_000
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(3, n, generator=generator) + 0.2
    losses = [1.0, 2.0, 1.5]
    single, double = (
        aggregate_once(FedLF(), make_cohort(rows, received_losses=losses, dtype=dtype)).direction
        for dtype in (torch.float32, torch.float64)
    )
    torch.testing.assert_close(single.double(), double, rtol=0, atol=2e-6)
    # Three rows at 120 degrees cancel: float32 products don't resolve it, the recomputed ones do.
    basis = rows[:2].double()
    basis[1] -= basis[0] * (basis[0] @ basis[1]) / (basis[0] @ basis[0])
    basis /= basis.norm(dim=1, keepdim=True)
    angles = torch.tensor([0.0, 120.0, 240.0], dtype=torch.float64).deg2rad()
    star = torch.stack([angles.cos(), angles.sin()], dim=1) @ basis
    star[0] *= 3  # the mean is not zero, the hull still holds zero
    still = aggregate_once(FedLF(), make_cohort(star, received_losses=[1, 1, 1], dtype=torch.float32))
    assert not still.direction.any()
    assert still.diagnostics["zero_layers"] == [0]


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_scales(scale, precision):
    rows = torch.tensor([[3, 0, 1], [0, 4, 1], [1, 1, -1]], dtype=torch.float64)
    plain, scaled = (
        aggregate_once(FedLF(), make_cohort(g, received_losses=[1, 2, 3], dtype=precision)).direction
        for g in (rows, rows * scale)
    )
    torch.testing.assert_close(scaled / scale, plain, rtol=1e-4, atol=1e-6)


def test_order_of_clients_does_not_matter(random_rounds, shuffled):
    cohorts = [replace(c, layout=layers_of(2, 3)) for c in random_rounds(4, dtype=torch.float64)]
    mixed = [shuffled(cohort, [2, 0, 1]) for cohort in cohorts]
    runs = [aggregate_all(FedLF(), run, n_clients=6, cohort_size=3) for run in (cohorts, mixed)]
    for (a, _), (b, _) in zip(*runs, strict=True):
        torch.testing.assert_close(a.direction, b.direction, rtol=1e-8, atol=1e-9)


def test_hard_cohorts(hard_cohort, record_is_json):
    for rule in (FedLF(), FedLF(merge_zero_layers=True)):
        state = rule.init(context_of(hard_cohort))
        for t in (1, 2):
            aggregation, state = rule.aggregate(replace(hard_cohort, round_index=t), state)
            assert torch.isfinite(aggregation.direction).all()
            assert aggregation.direction.dtype == hard_cohort.pseudo_gradients.dtype
            record_is_json(aggregation)


@pytest.mark.parametrize("losses", [[0, 0], [1e-12, 1e-12], [1e300, 1e300], [1e-300, 1e-300]])
def test_equal_losses_at_any_scale_have_no_fair_row(losses):
    aggregation = aggregate_once(FedLF(), make_cohort([[3, 0], [0, 3]], received_losses=losses))
    assert aggregation.diagnostics["fair_row"] is False
    close(aggregation.direction, [1.5, 1.5])


def test_a_client_without_a_finite_loss_is_left_out():
    cohort = make_cohort([[3, 0], [7, 7], [0, 4]], received_losses=[2, math.nan, 2])
    rule = FedLF()
    aggregation, state = rule.aggregate(cohort, rule.init(context_of(cohort)))
    close(aggregation.direction, [2.5 / math.sqrt(2)] * 2)
    assert aggregation.diagnostics["left_out"] == [1]
    assert sorted(state["clients"]) == [0, 2]
    nobody = replace(cohort, received_losses=np.full(3, math.inf))
    aggregation, after = rule.aggregate(nobody, state)
    assert after is state
    assert not aggregation.direction.any()
    with pytest.raises(PluginError, match=r"'fedlf' needs each client's training loss"):
        rule.aggregate(replace(cohort, received_losses=None), state)


def test_the_guard_is_idle_and_does_what_the_code_does():
    assert _guard(np.array([0.0, 1.0]), np.ones(2), 1.0, 5.0) == (5.0, False)
    # A conflict of .1 at factor 5: 5, 2.5, 1.25 (no longer more than twice a), then the unscaled direction.
    assert _guard(np.array([-0.1]), np.ones(1), 1.0, 5.0) == (1.0, True)
    assert _guard(np.array([-0.1]), np.ones(1), 1.0, 0.5) == (1.0, True)
    # 4e-7 is tolerated at factor 2 and below.
    assert _guard(np.array([-4e-7]), np.zeros(1), 1.0, 8.0) == (2.0, True)


def test_through_a_checkpoint(random_rounds, resumed_equals_straight):
    cohorts = [replace(cohort, layout=layers_of(2, 3)) for cohort in random_rounds(5)]
    resumed_equals_straight(FedLF(), cohorts, n_clients=6, cohort_size=3)


def test_loss_falls(quadratic_descent):
    before, after = quadratic_descent(FedLF())
    assert after < 0.5 * before


def test_needs():
    assert FedLF().needs.received_loss
    assert not FedLF().needs.full_batch_gradient
    assert FedLF(gradient="full_batch").needs.full_batch_gradient
