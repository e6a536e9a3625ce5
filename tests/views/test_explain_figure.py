"""The figure of a round shows what the record says, in every format, the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_once, make_cohort, unit_rows
from fedpcd_cli.views.explain_figure import round_figure
from fedpcd_cli.views.federation_figure import save_figure

FACTS = RunFacts(path="x", recipe="worked", rule="fedpcd", params={}, seed=1, n_rounds=1, state="finished")


def certificate_of(*angles, **params):
    return aggregate_once(FedPCD(**params), make_cohort(unit_rows(*angles))).certificate


def test_the_worked_example():
    figure = round_figure(certificate_of(10, 45, 155, tau=0.25), FACTS)
    space, progress, matrix = figure.axes[:3]
    assert "bent by 1 of 3 constraints, 20.2° from FedAvg" in figure.get_suptitle()
    after, before, required = [collection.get_offsets() for collection in progress.collections[1:4]]
    # Rows from the bottom: clients 1, 0, 2; the neediest on top.
    np.testing.assert_allclose(before[:, 0], [0.97, 0.66, -0.11], atol=0.005)
    np.testing.assert_allclose(after[:, 0], [0.849, 0.366, 0.25], atol=0.001)
    np.testing.assert_allclose(required[:, 0], 0.25, atol=1e-6)
    assert [label.get_text() for label in progress.get_yticklabels()] == ["1", "0", "*2"]
    cosines = np.asarray(matrix.images[0].get_array())
    assert sorted(cosines[np.triu_indices(3, 1)]) == pytest.approx(sorted(np.cos(np.deg2rad([145, 110, 35]))))
    # The boundary of the active client passes through the tip of the update.
    (line,) = [line for line in space.lines if line.get_linewidth() == 1.2]
    start, end = line.get_xydata()
    tip = np.array([0.96229, 0.35391])  # 1 + 0.35591 cos 96.08°, 0.35591 sin 96.08°
    (dx, dy), (ex, ey) = end - start, tip - start
    assert abs(dx * ey - dy * ex) / np.hypot(dx, dy) < 1e-4
    (region,) = space.patches
    assert region.get_xy().min(axis=0)[1] > 0


@pytest.mark.parametrize(
    ("angles", "params"),
    [
        ((0, 180, 80), {"tau": 0.1}),
        ((35, 60, 85), {}),
        ((30,), {}),
        ((10, 45, 155), {"primary": "none", "tau": 0.2}),
    ],
)
def test_other_outcomes_can_be_drawn(tmp_path, angles, params):
    certificate = certificate_of(*angles, **params)
    save_figure(lambda: round_figure(certificate, FACTS), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert ("no direction is admissible" in text) == (not certificate.feasible)


def test_no_average_and_no_constraint(tmp_path):
    for rows in ([[1.0, 0.0], [-1.0, 0.0]], [[0.0, 0.0]]):
        certificate = aggregate_once(FedPCD(), make_cohort(rows)).certificate
        save_figure(lambda c=certificate: round_figure(c, FACTS), tmp_path / "a.svg")
        assert "no direction to draw" in (tmp_path / "a.svg").read_text()


def test_many_clients(tmp_path):
    rows = numpy_generator(0, "rows").standard_normal((90, 120))
    certificate = aggregate_once(FedPCD(tau=0.05), make_cohort(rows)).certificate
    save_figure(lambda: round_figure(certificate, FACTS), tmp_path / "a.png")


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_equal_rounds_give_equal_files(tmp_path, suffix):
    certificate = certificate_of(10, 45, 155, tau=0.25)
    for name in "ab":
        save_figure(lambda: round_figure(certificate, FACTS), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
