"""A backend that fails is a status, never a missing answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedavg import FedAvg
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.qp import cvxpy_backend, daqp_backend
from fedpcd_cli.qp.finish import finish
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_once, make_cohort, unit_rows


@pytest.fixture
def broken_daqp(monkeypatch):
    """Let daqp find nothing."""
    monkeypatch.setattr(daqp_backend, "multipliers", lambda program: None)


@pytest.fixture
def broken_backends(broken_daqp, monkeypatch):
    """Let no backend find anything."""
    monkeypatch.setattr(cvxpy_backend, "multipliers", lambda program: None)


@pytest.mark.usefixtures("broken_backends")
def test_failed_solve_is_a_status(pose_program):
    drawn = pose_program(np.eye(2), np.array([-0.5, 1.0]), 0.25)
    solution = solve(drawn.program)
    assert solution.status is SolveStatus.INACCURATE
    assert solution.feasible
    np.testing.assert_array_equal(solution.multipliers, 0.0)
    assert solution.residuals.primal == pytest.approx(1.0)


@pytest.mark.usefixtures("broken_daqp")
def test_the_other_backend_steps_in(pose_program):
    drawn = pose_program(np.eye(2), np.array([-0.5, 1.0]), 0.25)
    solution = solve(drawn.program)
    assert (solution.status, solution.solver) == (SolveStatus.BENT, "cvxpy")
    np.testing.assert_allclose(solution.multipliers, [0.75, 0.0], rtol=1e-14)


@pytest.mark.usefixtures("broken_backends")
def test_contradiction_is_proved_without_the_backend(pose_program):
    drawn = pose_program(np.array([[1.0], [-1.0]]), np.ones(1), 0.1)
    assert solve(drawn.program).status is SolveStatus.INFEASIBLE


@pytest.mark.usefixtures("broken_backends")
def test_round_follows_the_average_and_says_so():
    cohort = make_cohort(unit_rows(10, 45, 155), dtype=torch.float32)
    result = aggregate_once(FedPCD(tau=0.25), cohort)
    assert torch.equal(result.direction, aggregate_once(FedAvg(), cohort).direction)
    assert result.diagnostics["status"] == "inaccurate"
    assert result.diagnostics["kkt_residual"] > 0.1
    (warning,) = result.warnings
    assert warning.startswith("round 1: solver 'daqp' stopped with a residual of ")
    assert warning.endswith("; followed the average instead")


def test_finish_recovers_from_a_wrong_active_set(pose_program):
    """From no active row at all, and from all of them, the finish reaches the solver's point."""
    for seed in range(30):
        rng = numpy_generator(seed, "independent")
        rows = rng.standard_normal((12, 40)) + 0.5 * rng.standard_normal(40)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        drawn = pose_program(rows, rng.standard_normal(40) / 6, 0.3)
        expected = solve(drawn.program).multipliers
        assert (expected > 0).any()
        for start in (np.zeros(12), np.ones(12)):
            found = finish(drawn.program.gram, drawn.program.deficits, start)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            np.testing.assert_array_equal(found > 0, expected > 0)


def test_a_finish_that_misses_never_replaces_a_better_solution(pose_program, monkeypatch):
    drawn = pose_program(np.eye(2), np.array([-0.5, 1.0]), 0.25)
    monkeypatch.setattr("fedpcd_cli.qp.solve.finish", lambda gram, deficits, start: start + 1.0)
    solution = solve(drawn.program)
    assert solution.status is SolveStatus.BENT
    np.testing.assert_allclose(solution.multipliers, [0.75, 0.0], atol=1e-12)
