"""Solutions against the optimality conditions in parameter space, and against CVXPY."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.errors import FedPCDError, UsageError
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.rounds.program import HalfspaceProgram


def _admissible_direction_by_cvxpy(drawn):
    """Solve the program over d itself; return None if Clarabel finds it infeasible."""
    import cvxpy as cp

    norms = np.linalg.norm(drawn.rows, axis=1)
    used = norms > 0
    start = drawn.reference if drawn.program.primary else np.zeros_like(drawn.reference)
    scale = norms.max() if drawn.tau > 0 else max(np.linalg.norm(start), 1e-300)
    d = cp.Variable(drawn.rows.shape[1])
    constraint = (drawn.rows[used] / norms[used, None]) @ d >= drawn.tau * norms[used] / scale
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(d - start / scale)), [constraint])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    if problem.status == cp.INFEASIBLE:
        return None
    assert problem.status == cp.OPTIMAL
    return d.value * scale


@pytest.mark.parametrize("block", range(20))
def test_optimality_conditions_hold_on_random_programs(draw_program, block):
    statuses = set()
    for seed in range(20 * block, 20 * block + 20):
        drawn = draw_program(seed)
        solution = solve(drawn.program)
        statuses.add(solution.status)
        if not solution.feasible:
            continue
        assert solution.status in (SolveStatus.UNCHANGED, SolveStatus.BENT), seed
        assert solution.residuals.worst <= 1e-9, seed
        # The same conditions, recomputed from the vectors.
        direction = drawn.direction(solution.multipliers)
        norms = np.linalg.norm(drawn.rows, axis=1)
        start = drawn.direction(np.zeros_like(solution.multipliers))
        slacks = drawn.rows @ direction - drawn.tau * norms**2
        size = norms * (np.linalg.norm(direction) + np.linalg.norm(start)) + drawn.tau * norms**2
        pulled = solution.multipliers @ norms  # length of all corrections, before they cancel
        tolerance = 1e-9 * size + 1e-13 * norms * pulled
        assert (slacks >= -tolerance).all(), seed
        assert (solution.multipliers >= 0).all(), seed
        assert (np.abs(slacks[solution.active]) <= tolerance[solution.active]).all(), seed
        assert (solution.multipliers[~solution.active] == 0).all(), seed
    assert SolveStatus.BENT in statuses


def test_direction_equals_cvxpy_in_parameter_space(draw_program):
    compared = refuted = 0
    for seed in range(0, 70, 2):
        drawn = draw_program(seed, largest=12, most_params=8)
        expected = _admissible_direction_by_cvxpy(drawn)
        solution = solve(drawn.program)
        if expected is None:
            assert solution.status is SolveStatus.INFEASIBLE, seed
            refuted += 1
            continue
        found = drawn.direction(solution.multipliers)
        size = np.linalg.norm(found) + np.linalg.norm(drawn.reference)
        assert np.linalg.norm(found - expected) <= 1e-5 * size, seed
        compared += 1
    assert compared >= 15
    assert refuted >= 3


def test_cvxpy_backend_finds_the_same_direction(draw_program):
    bent = 0
    for seed in range(40, 75):
        drawn = draw_program(seed, largest=20, most_params=30)
        exact = solve(drawn.program)
        if exact.status is not SolveStatus.BENT:
            continue
        other = solve(drawn.program, "cvxpy")
        assert other.solver == "cvxpy"
        assert other.status is SolveStatus.BENT, seed
        assert other.residuals.worst <= 1e-6, seed
        ours, theirs = drawn.direction(exact.multipliers), drawn.direction(other.multipliers)
        assert np.linalg.norm(ours - theirs) <= 1e-5 * np.linalg.norm(ours), seed
        bent += 1
    assert bent >= 8


def test_order_of_constraints_does_not_matter(draw_program, pose_program):
    for seed in range(100, 120):
        drawn = draw_program(seed, largest=40)
        order = np.random.default_rng(seed).permutation(len(drawn.rows))
        turned = pose_program(drawn.rows[order], drawn.reference, drawn.tau, primary=drawn.program.primary)
        one, other = solve(drawn.program), solve(turned.program)
        assert one.status is other.status, seed
        a, b = drawn.direction(one.multipliers), turned.direction(other.multipliers)
        lengths = one.multipliers @ np.linalg.norm(drawn.rows, axis=1)
        assert np.linalg.norm(a - b) <= 1e-11 * (np.linalg.norm(a) + lengths), seed


def test_satisfied_reference_needs_no_solver(pose_program):
    drawn = pose_program(np.eye(2), np.array([0.6, 0.8]), 0.5)
    solution = solve(drawn.program)
    assert solution.status is SolveStatus.UNCHANGED
    np.testing.assert_array_equal(solution.multipliers, 0.0)
    np.testing.assert_allclose(solution.slacks, [0.1, 0.3])


def test_hand_worked_single_violation(pose_program):
    drawn = pose_program(np.eye(2), np.array([-0.5, 1.0]), 0.25)
    solution = solve(drawn.program)
    np.testing.assert_allclose(solution.multipliers, [0.75, 0.0], rtol=1e-15)
    np.testing.assert_allclose(drawn.direction(solution.multipliers), [0.25, 1.0], rtol=1e-15)
    assert solution.active.tolist() == [True, False]
    np.testing.assert_allclose(solution.slacks, [0.0, 0.75], atol=1e-15)


def test_shortest_admissible_direction_without_reference(pose_program):
    drawn = pose_program(np.eye(2), np.array([5.0, 5.0]), 0.5, primary=False)
    np.testing.assert_allclose(solve(drawn.program).multipliers, [0.5, 0.5])
    idle = pose_program(np.eye(2), np.array([5.0, 5.0]), 0.0, primary=False)
    np.testing.assert_array_equal(solve(idle.program).multipliers, 0.0)


def test_duplicates_share_one_direction(pose_program):
    row, reference = np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    once = pose_program(row[None], reference, 0.1)
    thrice = pose_program(np.stack([row] * 3), reference, 0.1)
    np.testing.assert_allclose(
        thrice.direction(solve(thrice.program).multipliers), once.direction(solve(once.program).multipliers)
    )


def test_program_without_constraints():
    empty = HalfspaceProgram(gram=np.zeros((0, 0)), reference_products=np.zeros(0), thresholds=np.zeros(0))
    solution = solve(empty)
    assert solution.status is SolveStatus.UNCHANGED
    assert solution.residuals.worst == 0


def test_unknown_solver_is_named():
    empty = HalfspaceProgram(gram=np.eye(1), reference_products=np.ones(1), thresholds=np.zeros(1))
    with pytest.raises(UsageError, match=r"Unknown solver 'dapq'\. Did you mean 'daqp'"):
        solve(empty, "dapq")


@pytest.mark.parametrize(
    ("gram", "products", "thresholds", "message"),
    [
        (np.eye(2), np.ones(3), np.ones(2), "found \\(2, 2\\), \\(3,\\)"),
        (np.eye(2) * np.nan, np.ones(2), np.ones(2), "must be finite"),
        (np.eye(2), np.ones(2), -np.ones(2), "at least 0; found -1"),
    ],
)
def test_broken_programs_are_refused(gram, products, thresholds, message):
    with pytest.raises(FedPCDError, match=message):
        HalfspaceProgram(gram=gram, reference_products=products, thresholds=thresholds)
