"""What the round would have been: against the rule itself, run on the changed cohort or with the changed setting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.what_if import Change, angle_between, contradicts_at_every_tau, tau_sweep, what_if
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.seeds import numpy_generator


def angle_at(certificate, tau):
    return what_if(certificate, Change(tau=tau)).angle_degrees


def test_nothing_changed_is_the_round_itself(with_history):
    recorded = with_history(tau=0.1)
    again = what_if(recorded, Change())
    assert not Change()
    np.testing.assert_allclose(again.multipliers, recorded.multipliers, atol=1e-14)
    assert again.direction_norm == pytest.approx(recorded.direction_norm)
    assert again.status is recorded.status
    assert angle_between(recorded, again) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("change", [{"tau": 0.0}, {"tau": 0.3}, {"tau": 1.0}, {"primary": "none"}])
def test_another_setting_is_what_the_rule_does_with_it(with_history, change):
    settings = {"tau": 0.1, "primary": "fedavg", **change}
    expected = with_history(**settings)
    found = what_if(with_history(tau=0.1), Change(tau=settings["tau"], primary=settings["primary"] == "fedavg"))
    np.testing.assert_allclose(found.multipliers, expected.multipliers, atol=1e-10)
    np.testing.assert_array_equal(found.active, expected.active)
    np.testing.assert_allclose(found.slacks, expected.slacks, atol=1e-10)
    assert found.status is expected.status
    assert found.direction_norm == pytest.approx(expected.direction_norm)
    assert found.angle_degrees == pytest.approx(expected.angle_degrees)


@pytest.mark.parametrize("window", [0, 1, 2])
def test_a_shorter_history_is_what_the_rule_does_with_it(with_history, window):
    expected = with_history(tau=0.2, history_rounds=window)
    found = what_if(with_history(tau=0.2), Change(history_rounds=window))
    assert found.client_ids.tolist() == expected.client_ids.tolist()
    np.testing.assert_allclose(found.multipliers, expected.multipliers, atol=1e-10)
    assert found.status is expected.status


def test_without_a_client_only_its_constraint_goes(in_the_plane):
    recorded = in_the_plane(10, 45, 155, tau=0.25)
    found = what_if(recorded, Change(without=(2,)))
    assert found.client_ids.tolist() == [0, 1]
    assert found.status is SolveStatus.UNCHANGED
    np.testing.assert_array_equal(found.reference_products, recorded.reference_products[:2])
    assert found.angle_degrees == 0
    assert angle_between(recorded, found) == pytest.approx(recorded.angle_degrees)


def test_angle_between_two_answers_by_hand(in_the_plane):
    recorded = in_the_plane(10, 45, 155, tau=0)  # 65.0 degrees
    found = what_if(recorded, Change(tau=1.0))  # 82.5 degrees
    assert angle_between(recorded, found) == pytest.approx(17.5, abs=1e-5)


@pytest.mark.parametrize("on_infeasible", ["fedavg", "relax"])
def test_contradicting_clients_do_what_the_recipe_says(in_the_plane, on_infeasible):
    found = what_if(in_the_plane(0, 180, 80, tau=0, on_infeasible=on_infeasible), Change(tau=0.2))
    assert not found.feasible
    assert set(found.conflicting_ids) == {0, 1}
    assert found.status is (SolveStatus.INFEASIBLE if on_infeasible == "fedavg" else SolveStatus.RELAXED)
    assert what_if(found, Change(without=(0,))).feasible


def test_the_shortest_direction_with_tau_zero_is_no_step(in_the_plane):
    found = what_if(in_the_plane(10, 45, 155, tau=0.25), Change(tau=0.0, primary=False))
    assert found.status is SolveStatus.NO_STEP
    assert found.direction_norm == 0
    assert found.angle_degrees is None


def test_sweep_of_the_worked_example(in_the_plane):
    points = {point.tau: point for point in tau_sweep(in_the_plane(10, 45, 155, tau=0.25))}
    assert points[0.0].angle_degrees + 58.9206 == pytest.approx(65.0, abs=1e-3)
    assert points[1.0].angle_degrees + 58.9206 == pytest.approx(82.5, abs=1e-3)
    assert (points[0.0].n_active, points[1.0].n_active) == (1, 2)
    assert [tau for tau, point in points.items() if point.recorded] == [0.25]
    assert list(points) == sorted(points)
    for tau, point in points.items():
        assert point.least_progress == pytest.approx(tau, abs=1e-7)
    # One active constraint: the correction is tau - g~_3 · g~_0 long.
    assert points[0.1].correction_length == pytest.approx(0.1 + 0.105907, abs=1e-5)


def test_contradiction_does_not_depend_on_tau(in_the_plane):
    certificate = in_the_plane(0, 180, 80, tau=0.0)
    assert contradicts_at_every_tau(certificate)
    assert {point.feasible for point in tau_sweep(certificate) if point.tau > 0} == {False}
    assert tau_sweep(certificate)[0].feasible
    assert not contradicts_at_every_tau(in_the_plane(10, 45, 155))


def test_against_the_rows_themselves():
    """In ten dimensions: d~ built from rows has the angle and the progress that the record tells."""
    from fedpcd_cli.pcd.aggregator import FedPCD
    from fedpcd_cli.testing.cohorts import aggregate_once, make_cohort

    rows = numpy_generator(3, "rows").standard_normal((8, 10))
    certificate = aggregate_once(FedPCD(tau=0.02), make_cohort(rows)).certificate
    changed = what_if(certificate, Change(tau=0.2, without=(1,)))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    average = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
    kept = np.delete(unit, 1, axis=0)
    direction = average + kept.T @ changed.multipliers
    cosine = average @ direction / np.linalg.norm(direction)
    assert changed.angle_degrees == pytest.approx(math.degrees(math.acos(cosine)), abs=1e-5)
    assert changed.direction_norm == pytest.approx(np.linalg.norm(direction), rel=1e-6)
    assert (kept @ direction).min() == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change(tau=-0.1), "--tau must be in [0, 1]; found -0.1."),
        (Change(history_rounds=-1), "--history must be at least 0; found -1."),
        (Change(history_rounds=11), "--history must be at most 10, the window of the run; found 11."),
        (
            Change(without=(0, 8, 9)),
            "--without names 8, 9, without a constraint in round 1; clients that have one: 0, 1, 2.",
        ),
    ],
)
def test_what_can_not_be_asked(in_the_plane, change, message):
    with pytest.raises(UsageError) as caught:
        what_if(in_the_plane(10, 45, 155), change, window=10)
    assert caught.value.message == message
