"""Unit clients in the plane, equal weights: the rule's published numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.testing.cohorts import aggregate_once, make_cohort, unit_rows


def _angle(direction: torch.Tensor) -> float:
    return math.degrees(math.atan2(float(direction[1]), float(direction[0])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("solver", ["daqp", "cvxpy"])
def test_one_client_falls_short(dtype, solver):
    cohort = make_cohort(unit_rows(10, 45, 155), dtype=dtype)
    result = aggregate_once(FedPCD(tau=0.25, solver=solver), cohort)
    certificate = result.certificate
    average = cohort.pseudo_gradients.mean(dim=0)
    assert _angle(average) == pytest.approx(58.9, abs=0.05)
    np.testing.assert_allclose(certificate.progress_of_average, [0.66, 0.97, -0.11], atol=0.005)
    assert certificate.status is SolveStatus.BENT
    assert certificate.active.tolist() == [False, False, True]
    np.testing.assert_allclose(certificate.multipliers, [0, 0, 0.36], atol=0.005)
    np.testing.assert_allclose(certificate.progress, [0.36, 0.85, 0.25], atol=0.01)
    assert certificate.progress[2] == pytest.approx(0.25, abs=1e-6)
    # By hand: with one active constraint d~* = g~_0 + mu g~_3 and mu = tau - g~_3 · g~_0.
    reference = average.double().numpy() / np.linalg.norm(average.double().numpy())
    third = unit_rows(155)[0].numpy()
    bent = reference + (0.25 - third @ reference) * third
    assert _angle(result.direction) == pytest.approx(math.degrees(math.atan2(bent[1], bent[0])), abs=1e-4)
    assert float(result.direction.norm()) == pytest.approx(float(average.norm()), rel=1e-6)
    assert certificate.angle_degrees == pytest.approx(_angle(result.direction) - _angle(average), abs=1e-4)
    assert certificate.correction_length == pytest.approx(0.25 - third @ reference, abs=1e-6)


@pytest.mark.parametrize(
    ("tau", "angle", "active"), [(0.0, 65.0, [False, False, True]), (1.0, 82.5, [True, False, True])]
)
def test_angle_of_the_direction(tau, angle, active):
    result = aggregate_once(FedPCD(tau=tau), make_cohort(unit_rows(10, 45, 155)))
    assert _angle(result.direction) == pytest.approx(angle, abs=1e-5)
    assert result.certificate.active.tolist() == active


def test_nobody_falls_short():
    cohort = make_cohort(unit_rows(35, 60, 85))
    result = aggregate_once(FedPCD(tau=0.25), cohort)
    assert result.certificate.status is SolveStatus.UNCHANGED
    np.testing.assert_array_equal(result.certificate.multipliers, 0.0)
    assert _angle(result.direction) == pytest.approx(60.0, abs=0.1)
    torch.testing.assert_close(result.direction, cohort.pseudo_gradients.mean(dim=0), rtol=1e-15, atol=1e-15)
    assert result.certificate.angle_degrees == 0.0
