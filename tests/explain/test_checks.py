"""Checks find what is wrong, and the proof of infeasibility is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedpcd_cli.explain.checks import check, verify
from fedpcd_cli.rounds.outcome import Residuals, SolveStatus


def test_a_solution_passes(in_the_plane):
    found = check(in_the_plane(10, 45, 155, tau=0.25))
    assert found.passed
    assert found.proof is None
    assert found.residuals.worst < 1e-14


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        (lambda c: {"multipliers": c.multipliers * 1.01}, {"stationarity", "gap"}),
        (lambda c: {"multipliers": np.zeros(3), "slacks": c.reference_products - 0.25}, {"primal"}),
        (lambda c: {"slacks": c.slacks + 0.1}, {"stationarity"}),
        (lambda c: {"multipliers": np.array([-0.1, 0, 0.36])}, {"dual"}),
    ],
)
def test_damage_is_found_whatever_the_record_says(in_the_plane, damage, broken):
    certificate = in_the_plane(10, 45, 155, tau=0.25)
    clean = Residuals(stationarity=0.0, primal=0.0, dual=0.0, complementarity=0.0, gap=0.0)
    found = check(replace(certificate, residuals=clean, **damage(certificate)))
    assert not found.passed
    for name in broken:
        assert getattr(found.residuals, name) > 1e-4, name


def test_exactly_opposite_clients_are_named_with_their_weights(in_the_plane):
    # 0 and 180 degrees cancel exactly; the third is free.
    found = check(in_the_plane(0, 180, 80, tau=0.1))
    assert found.residuals is None
    assert found.proof.client_ids == (0, 1)
    assert found.proof.weights == pytest.approx((0.5, 0.5))
    assert found.proof.length < 1e-8
    assert found.proof.required == pytest.approx(0.1)
    assert found.passed


def test_three_clients_that_surround_the_origin(in_the_plane):
    found = check(in_the_plane(90, 210, 330, 91, tau=0.2))
    assert set(found.proof.client_ids) <= {0, 1, 2, 3}
    rows = np.array([[np.cos(np.deg2rad(a)), np.sin(np.deg2rad(a))] for a in (90, 210, 330, 91)])
    weighted = sum(w * rows[client] for w, client in zip(found.proof.weights, found.proof.client_ids, strict=True))
    np.testing.assert_allclose(weighted, 0, atol=1e-7)


def test_a_false_proof_fails(in_the_plane):
    certificate = in_the_plane(0, 180, 80, tau=0.1)
    found = check(replace(certificate, farkas=np.array([0.0, 0.5, 0.5])))
    assert not found.proof.holds
    assert not found.passed


def test_a_relaxed_round_is_checked_against_the_program_it_solved(in_the_plane):
    certificate = in_the_plane(0, 180, 80, tau=0.1, on_infeasible="relax")
    assert certificate.status is SolveStatus.RELAXED
    found = check(certificate)
    assert found.passed
    assert found.residuals is not None
    assert found.proof.required == pytest.approx(0.1)


@pytest.mark.parametrize("params", [{}, {"tau": 0.25}, {"tau": 1.0}, {"tau": 0.3, "primary": "none"}])
def test_cvxpy_agrees(in_the_plane, params):
    certificate = in_the_plane(10, 45, 155, **params)
    found = verify(certificate)
    assert found.agrees
    assert found.unique
    assert found.multiplier_difference < 1e-6
    assert found.direction_difference < 1e-7
    assert found.n_active == certificate.active.sum()


def test_cvxpy_disagrees_with_a_wrong_record(in_the_plane):
    certificate = in_the_plane(10, 45, 155, tau=0.25)
    found = verify(replace(certificate, multipliers=certificate.multipliers + np.array([0, 0, 0.01])))
    assert not found.agrees
    assert found.multiplier_difference == pytest.approx(0.01, rel=1e-4)
    # The direction moved by 0.01 along a unit row.
    assert found.direction_difference * max(1.0, certificate.direction_norm) == pytest.approx(0.01, rel=1e-2)


def test_cvxpy_finds_no_solution_either(in_the_plane):
    found = verify(in_the_plane(0, 180, 80, tau=0.1))
    assert found.agrees
    assert found.same_outcome
    assert found.multiplier_difference is None


def test_dependent_constraints_are_said_to_be(in_the_plane):
    # The same client twice: μ can be shared in any way, the direction is the same.
    found = verify(in_the_plane(10, 155, 155, 10, 10, 10, 45, tau=0.25))
    assert found.agrees
    assert not found.unique


def test_nothing_to_verify_without_an_average(that_cancels):
    certificate = that_cancels
    assert check(certificate).residuals is None
    assert verify(certificate) is None
