"""Whole rounds: length, promise, limits, broken and extreme input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, context_of, make_cohort


def _conflicting(client: int, rng: np.random.Generator) -> np.ndarray:
    center = numpy_generator(0, "center", client % 4).standard_normal(40)
    return center + 0.5 * rng.standard_normal(40) + 0.1


def _direction_by_cvxpy(fresh, cached, weights, tau):
    """Project in parameter space, from the vectors alone."""
    import cvxpy as cp

    average = weights @ fresh
    rows = np.concatenate([fresh, cached])
    rows = rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-8)
    d = cp.Variable(rows.shape[1])
    reference = average / (np.linalg.norm(average) + 1e-8)
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(d - reference)), [rows @ d >= tau * np.sum(rows**2, axis=1)]
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status == cp.OPTIMAL
    return np.linalg.norm(average) / np.linalg.norm(d.value) * d.value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounds_equal_the_program_in_parameter_space(sample_rounds, dtype):
    cohorts = list(sample_rounds(_conflicting, n_clients=16, cohort_size=4, n_rounds=10, dtype=dtype))
    seen: dict[int, tuple[int, np.ndarray]] = {}
    bent = 0
    rule = FedPCD(tau=0.1, history_rounds=3)
    for cohort, (result, _) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=16, cohort_size=4), strict=True
    ):
        t, fresh = cohort.round_index, cohort.pseudo_gradients.double().numpy()
        cached = [row for client, (born, row) in seen.items() if t - born <= 3 and client not in cohort.client_ids]
        expected = _direction_by_cvxpy(fresh, np.array(cached).reshape(-1, 40), cohort.client_weights, tau=0.1)
        assert result.certificate.size == len(fresh) + len(cached)
        assert result.certificate.residuals.worst <= 1e-9
        np.testing.assert_allclose(
            result.direction.double().numpy(), expected, atol=2e-5 * np.linalg.norm(expected)
        )
        bent += result.certificate.status is SolveStatus.BENT
        seen |= {client: (t, row) for client, row in zip(cohort.client_ids, fresh, strict=True)}
    assert bent >= 5


def test_length_promise_and_coefficients(sample_rounds):
    cohorts = list(sample_rounds(_conflicting, n_clients=16, cohort_size=4, n_rounds=12, seed=5))
    rule = FedPCD(tau=0.2, history_rounds=0)
    for cohort, (result, _) in zip(
        cohorts, aggregate_all(rule, cohorts, n_clients=16, cohort_size=4), strict=True
    ):
        rows = cohort.pseudo_gradients
        average = torch.from_numpy(cohort.client_weights) @ rows
        assert float(result.direction.norm()) == pytest.approx(float(average.norm()), rel=1e-12)
        combined = torch.from_numpy(result.client_coefficients) @ rows
        torch.testing.assert_close(result.direction, combined, rtol=1e-12, atol=1e-12)
        if result.diagnostics["feasible"]:
            unit = rows / rows.norm(dim=1, keepdim=True)
            stretch = result.certificate.direction_norm / result.certificate.mean_norm
            assert float((unit @ result.direction).min()) * stretch >= 0.2 - 1e-7


def test_order_of_clients_does_not_matter(sample_rounds):
    for cohort in sample_rounds(_conflicting, n_clients=16, cohort_size=6, n_rounds=8, seed=2):
        order = np.array([3, 0, 5, 1, 4, 2])
        turned = make_cohort(
            cohort.pseudo_gradients[torch.from_numpy(order)],
            client_ids=[cohort.client_ids[i] for i in order],
            n_examples=cohort.n_examples[order].tolist(),
        )
        one, other = aggregate_once(FedPCD(tau=0.1), cohort), aggregate_once(FedPCD(tau=0.1), turned)
        torch.testing.assert_close(one.direction, other.direction, rtol=1e-11, atol=1e-11)


def test_no_reference_and_no_tau_makes_no_step():
    cohort = make_cohort([[1.0, 0.0], [0.0, 1.0]])
    result = aggregate_once(FedPCD(tau=0.0, primary="none"), cohort)
    assert result.direction.tolist() == [0.0, 0.0]
    assert result.diagnostics["status"] == "no_step"
    assert result.certificate.angle_degrees is None


def test_no_reference_takes_the_shortest_admissible_direction():
    cohort = make_cohort([[3.0, 0.0], [0.0, 1.0]])  # average (1.5, .5); the shortest direction is the diagonal
    result = aggregate_once(FedPCD(tau=0.5, primary="none"), cohort)
    expected = np.hypot(1.5, 0.5) / np.sqrt(2)
    np.testing.assert_allclose(result.direction.numpy(), [expected, expected], rtol=1e-7)
    assert result.certificate.angle_degrees == pytest.approx(45 - np.degrees(np.arctan2(0.5, 1.5)), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_updates_are_no_constraints_and_are_named(dtype):
    rows = [[1.0, 0.2], [0.0, 0.0], [0.3, 1.0]]
    cohort = make_cohort(rows, client_ids=[4, 7, 9], dtype=dtype)
    result = aggregate_once(FedPCD(tau=0.1), cohort)
    assert result.diagnostics["zero_clients"] == [7]
    assert result.certificate.dropped_zero_ids == (7,)
    assert result.certificate.client_ids.tolist() == [4, 9]
    np.testing.assert_allclose(result.direction.double().numpy(), np.mean(rows, axis=0), rtol=1e-6)


def test_zero_average_makes_no_step():
    for rows in ([[1.0, 2.0], [-1.0, -2.0]], [[0.0, 0.0], [0.0, 0.0]]):
        for on_infeasible in ("fedavg", "relax", "error"):
            result = aggregate_once(FedPCD(on_infeasible=on_infeasible), make_cohort(rows, dtype=torch.float32))
            assert result.direction.tolist() == [0.0, 0.0]
            assert result.diagnostics["status"] == "no_step"
            assert result.diagnostics["kkt_residual"] is None


def test_average_that_nearly_cancels_keeps_its_length():
    rng = numpy_generator(1, "cancel")
    big, small = rng.standard_normal(5000), 1e-4 * rng.standard_normal((2, 5000))
    cohort = make_cohort(np.stack([big + small[0], -big + small[1]]), dtype=torch.float32)
    result = aggregate_once(FedPCD(tau=0.0), cohort)
    average = cohort.pseudo_gradients.double().mean(dim=0)
    assert result.certificate.mean_norm == pytest.approx(float(average.norm()), rel=1e-3)
    assert result.certificate.residuals.worst <= 1e-9


@pytest.mark.parametrize("normalization", ["l2", "none", "ema"])
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_extreme_scales(normalization, scale):
    rng = numpy_generator(2, "scales")
    rows = scale * (rng.standard_normal((6, 300)) + 0.3 * rng.standard_normal(300))
    for dtype in (torch.float32, torch.float64):
        result = aggregate_once(FedPCD(tau=0.1, normalization=normalization), make_cohort(rows, dtype=dtype))
        assert result.certificate.residuals.worst <= 1e-9
        length = np.linalg.norm(rows.mean(axis=0))
        assert float(result.direction.double().norm()) == pytest.approx(length, rel=1e-5)
        json.dumps(dict(result.diagnostics), allow_nan=False)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_squares_beyond_float32(size):
    rows = np.array([[1.0, 0.1], [-0.4, 1.0], [0.2, -1.0]]) * size
    result = aggregate_once(FedPCD(tau=0.05, epsilon=1e-30), make_cohort(rows, dtype=torch.float32))
    assert result.certificate.norms[0] == pytest.approx(np.hypot(1, 0.1) * size, rel=1e-6)
    plain = aggregate_once(FedPCD(tau=0.05, epsilon=1e-30), make_cohort(rows / size))
    np.testing.assert_allclose(result.direction.double().numpy() / size, plain.direction.numpy(), rtol=1e-4)


def test_duplicated_float32_clients_behave_like_one():
    rng = numpy_generator(3, "twins")
    a, b, c = rng.standard_normal((3, 20_000)) + 0.1 * rng.standard_normal(20_000)
    b = b - 0.8 * a
    cohort = make_cohort(np.stack([a, a, b, b, c]), dtype=torch.float32)
    result = aggregate_once(FedPCD(tau=0.3), cohort)
    assert result.certificate.status is SolveStatus.BENT
    assert result.certificate.residuals.worst <= 1e-9
    unit = cohort.pseudo_gradients.double()
    unit = unit / unit.norm(dim=1, keepdim=True)
    stretch = result.certificate.direction_norm / result.certificate.mean_norm
    assert float((unit @ result.direction.double()).min()) * stretch == pytest.approx(0.3, abs=1e-5)


def test_opposite_float32_clients_are_seen_through_rounding():
    rng = numpy_generator(4, "opposite")
    a, b = rng.standard_normal((2, 20_000))
    cohort = make_cohort(np.stack([a, -3 * a, b]), client_ids=[5, 6, 7], dtype=torch.float32)
    result = aggregate_once(FedPCD(tau=0.02), cohort)
    assert result.certificate.conflicting_ids == (5, 6)
    np.testing.assert_allclose(
        result.certificate.farkas / result.certificate.farkas.sum(), [0.5, 0.5, 0.0], atol=1e-6
    )


def test_relaxing_cuts_tau_to_zero_and_says_so():
    cohort = make_cohort([[1.0, 0.0], [-1.0, 0.0], [0.3, 1.0]], client_ids=[2, 5, 8])
    result = aggregate_once(FedPCD(tau=0.02, on_infeasible="relax"), cohort)
    certificate = result.certificate
    assert (certificate.status, certificate.feasible) == (SolveStatus.RELAXED, False)
    assert (certificate.tau, certificate.tau_used) == (0.02, 0.0)
    # With tau = 0 only directions orthogonal to the two are left.
    np.testing.assert_allclose(result.direction.numpy(), [0.0, np.hypot(0.1, 1 / 3)], atol=1e-15)
    assert result.warnings == (
        "round 1: clients 2, 5 contradict each other, no direction gives all of them their share; "
        "cut tau from 0.02 to 0",
    )


def test_relaxing_may_leave_no_direction():
    result = aggregate_once(
        FedPCD(on_infeasible="relax"), make_cohort([[2.0, 0.0], [-1.0, 0.0]], dtype=torch.float32)
    )
    assert result.diagnostics["status"] == "no_step"
    assert result.direction.tolist() == [0.0, 0.0]


def test_error_names_round_and_clients_and_leaves_the_state():
    rule = FedPCD(tau=0.02, on_infeasible="error")
    cohort = make_cohort([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], client_ids=[3, 17, 4], round_index=6)
    state = rule.init(context_of(cohort))
    with pytest.raises(FedPCDError, match="round 6: clients 3, 17 contradict each other"):
        rule.aggregate(cohort, state)
    assert state["history"]["client_ids"].size == 0


def test_record_is_plain_json_and_equal_between_equal_runs(sample_rounds):
    texts = []
    for _ in range(2):
        cohorts = list(sample_rounds(_conflicting, n_clients=16, cohort_size=4, n_rounds=6))
        results = [r for r, _ in aggregate_all(FedPCD(tau=0.1), cohorts, n_clients=16, cohort_size=4)]
        texts.append(json.dumps([dict(r.diagnostics) for r in results], allow_nan=False))
        for result in results:
            facts = result.diagnostics
            assert facts["n_active"] == len(facts["multipliers"])
            assert facts["n_constraints"] == 4 + facts["n_cached"]
            assert facts["least_progress"] >= 0.1 - 1e-9
    assert texts[0] == texts[1]
