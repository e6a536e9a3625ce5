"""Camps show in the order of the matrix; the plane is the plane."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.explain.conflicts import camp_order, conflicts
from fedpcd_cli.explain.plane import plane
from fedpcd_cli.seeds import numpy_generator


def test_cosines_by_hand(in_the_plane):
    found = conflicts(in_the_plane(10, 45, 155))
    places = [found.client_ids.tolist().index(client) for client in (0, 1, 2)]
    cosines = found.cosines[np.ix_(places, places)]
    expected = np.cos(np.deg2rad(np.subtract.outer([10, 45, 155], [10, 45, 155])))
    np.testing.assert_allclose(cosines, expected, atol=1e-12)
    assert (found.conflicting_pairs, found.pairs) == (2, 3)
    assert found.most_opposed[:2] == (0, 2)
    assert found.most_opposed[2] == pytest.approx(np.cos(np.deg2rad(145)))


@pytest.mark.parametrize("seed", range(5))
def test_three_camps_end_up_side_by_side(seed):
    rng = numpy_generator(seed, "camps")
    centers = rng.standard_normal((3, 60))
    camps = rng.integers(0, 3, 24)
    rows = centers[camps] + 0.3 * rng.standard_normal((24, 60))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ordered = camps[camp_order(rows @ rows.T)]
    changes = int((np.diff(ordered) != 0).sum())
    assert changes == len(set(camps.tolist())) - 1


def test_the_order_does_not_depend_on_how_clients_came(in_the_plane):
    rng = numpy_generator(0, "order")
    rows = rng.standard_normal((9, 5))
    cosines = np.corrcoef(rows)
    shuffle = rng.permutation(9)
    first = camp_order(cosines)
    second = shuffle[camp_order(cosines[np.ix_(shuffle, shuffle)])]
    assert second.tolist() in (first.tolist(), first[::-1].tolist())


@pytest.mark.parametrize("c", [0, 1, 2])
def test_small_matrices(c):
    assert camp_order(np.eye(c)).tolist() == list(range(c))


def test_nobody_is_opposed_alone(in_the_plane):
    found = conflicts(in_the_plane(30))
    assert found.most_opposed is None
    assert found.pairs == 0


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_in_two_dimensions_the_plane_is_everything(in_the_plane, tau):
    found = plane(in_the_plane(10, 45, 155, tau=tau))
    angles = np.rad2deg(np.arctan2(found.clients[:, 1], found.clients[:, 0]))
    # Measured from the average, which lies at 58.92 degrees; the correction turns towards larger angles.
    np.testing.assert_allclose(angles + 58.9206, [10, 45, 155], atol=1e-3)
    turned = np.rad2deg(np.arctan2(found.update[1], found.update[0])) + 58.9206
    assert turned == pytest.approx({0.0: 65.0, 0.25: 79.1, 1.0: 82.5}[tau], abs=0.1)
    assert found.share == pytest.approx(1.0)
    # Inner products survive the projection: what each client gets is read off the picture.
    np.testing.assert_allclose((found.clients @ found.update)[2], tau, atol=1e-7)


def test_inner_products_with_the_update_are_those_of_the_whole_space(with_history):
    from fedpcd_cli.explain.rows import constraint_rows

    certificate = with_history(tau=0.3)
    found = plane(certificate)
    rows = constraint_rows(certificate)
    np.testing.assert_allclose(found.clients @ found.update, [row.after for row in rows], atol=1e-10)
    np.testing.assert_allclose(found.clients @ found.reference, [row.before for row in rows], atol=1e-7)


def test_without_a_correction_the_second_axis_shows_the_clients_apart(in_the_plane):
    found = plane(in_the_plane(35, 60, 85, tau=0.25))
    angles = sorted(np.rad2deg(np.arctan2(found.clients[:, 1], found.clients[:, 0])))
    np.testing.assert_allclose(angles, [-25, 0, 25], atol=1e-5)
    np.testing.assert_allclose(found.update, found.reference, atol=1e-12)


def test_the_region_by_hand(in_the_plane):
    # Clients at 0 and 90 degrees, average at 45, tau 0.5: the corner of the region lies on the average.
    region = plane(in_the_plane(0, 90, tau=0.5)).region(2.0)
    corner = region[np.argmin(np.linalg.norm(region, axis=1))]
    np.testing.assert_allclose(corner, [0.5 * np.sqrt(2), 0.0], atol=1e-6)
    found = plane(in_the_plane(0, 90, tau=0.5))
    assert ((region @ found.clients.T) >= 0.5 - 1e-6).all()


def test_contradicting_clients_leave_no_region(in_the_plane):
    assert plane(in_the_plane(0, 180, 80, tau=0.2)).region(2.0).shape == (0, 2)


def test_no_plane_without_an_average(that_cancels):
    assert plane(that_cancels) is None
