"""Farkas certificates, checked on the vectors and against a linear program."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.qp.infeasible import farkas_certificate, proves_infeasible
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.outcome import SolveStatus


def _margin(rows: np.ndarray) -> float:
    """Return the largest t for which some |d|_inf <= 1 has u_j · d >= t for all unit rows, by HiGHS."""
    from scipy.optimize import linprog

    norms = np.linalg.norm(rows, axis=1)
    unit = rows[norms > 0] / norms[norms > 0, None]
    k, d = unit.shape
    result = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-unit, np.ones((k, 1))]),
        b_ub=np.zeros(k),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )
    return float(result.x[-1])


def test_every_claim_is_true_and_none_is_missed(draw_program):
    refuted = solvable = 0
    for seed in range(200, 300):
        drawn = draw_program(seed, largest=40, most_params=30)
        if drawn.tau == 0:
            assert solve(drawn.program).feasible, seed
            continue
        margin = _margin(drawn.rows)
        solution = solve(drawn.program)
        if solution.feasible:
            assert margin > 1e-7, seed
            solvable += 1
            continue
        assert margin < 1e-7, seed
        refuted += 1
        weights = solution.farkas
        assert solution.status is SolveStatus.INFEASIBLE
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1.0)
        lengths = weights @ np.linalg.norm(drawn.rows, axis=1)
        assert np.linalg.norm(drawn.rows.T @ weights) <= 1e-6 * lengths, seed
        assert drawn.program.thresholds @ weights > 0, seed
        np.testing.assert_array_equal(solution.multipliers, 0.0)
    assert refuted >= 15
    assert solvable >= 15


def test_two_opposite_clients(pose_program):
    drawn = pose_program(np.array([[1.0, 0.0], [-4.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1.0]), 0.02)
    solution = solve(drawn.program)
    assert solution.status is SolveStatus.INFEASIBLE
    np.testing.assert_allclose(solution.farkas, [0.8, 0.2, 0.0], atol=1e-12)


def test_three_clients_at_120_degrees(pose_program):
    angles = np.deg2rad([90.0, 210.0, 330.0])
    drawn = pose_program(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([0.0, 1.0]), 0.1)
    np.testing.assert_allclose(solve(drawn.program).farkas, [1 / 3] * 3, atol=1e-12)


def test_nearly_opposite_clients_are_still_solved(pose_program):
    angles = np.deg2rad([0.0, 179.9])
    drawn = pose_program(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([1.0, 0.0]), 0.1)
    solution = solve(drawn.program)
    assert solution.status is SolveStatus.BENT
    assert solution.residuals.worst <= 1e-9
    assert (drawn.rows @ drawn.direction(solution.multipliers)).min() == pytest.approx(0.1, rel=1e-9)


def test_infeasible_for_one_tau_is_infeasible_for_all(pose_program):
    """d may have any length, so a contradiction never depends on the size of tau."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    for tau in (1e-12, 0.3, 1.0):
        assert solve(pose_program(rows, np.array([0.0, 1.0]), tau).program).status is SolveStatus.INFEASIBLE
    relaxed = pose_program(rows, np.array([0.0, 1.0]), 0.3).program.without_thresholds()
    assert solve(relaxed).status is SolveStatus.UNCHANGED


def test_feasible_programs_have_no_certificate(pose_program):
    assert farkas_certificate(pose_program(np.eye(3), np.ones(3), 0.5).program) is None
    opposite = pose_program(np.array([[1.0], [-1.0]]), np.ones(1), 0.0)
    assert farkas_certificate(opposite.program) is None


def test_wrong_proofs_are_rejected(pose_program):
    program = pose_program(np.array([[1.0], [-1.0]]), np.ones(1), 0.5).program
    assert proves_infeasible(program, np.array([0.5, 0.5]))
    assert not proves_infeasible(program, np.array([0.6, 0.4]))
    assert not proves_infeasible(program, np.array([-0.5, -0.5]))
    assert not proves_infeasible(program, np.zeros(2))
