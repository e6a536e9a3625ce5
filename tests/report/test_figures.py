"""Figures: which there are, what is drawn, and the data beside them."""

from __future__ import annotations

import csv
from functools import partial

import numpy as np
import pytest

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.report.build import Options, build_report
from fedpcd_cli.report.constraints import constraint_series
from fedpcd_cli.report.figure_data import ablations, by_column, client_accuracies, curves, representatives, sweeps
from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.views.report_figure_files import check_folder
from fedpcd_cli.views.report_figures import write_figures
from fedpcd_cli.views.report_palette import LOOKS, line_style, look_of

MEAN = MEASURES["mean_accuracy"]


def rounds_with(active, feasible=True):
    """Return round records of a program whose client t is active in round t, with multiplier t / 10."""
    return [
        {
            "round": t,
            "diagnostics": {
                "n_constraints": 3, "n_active": active, "feasible": feasible,
                "angle_degrees": None if t == 1 else 10.0 * t, "multipliers": {str(t): t / 10} if active else {},
            },
        }
        for t in (1, 2, 3)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def study(run_writer, tmp_path_factory):
    make_run = partial(run_writer, tmp_path_factory.mktemp("study"))
    for seed, shift in ((1, 0), (2, 4)):
        make_run("fedavg", seed=seed, curve={0: 10, 10: 30, 20: 50 + shift})
        for tau in (0.0, 0.02, 0.1):
            make_run(
                "fedpcd", seed=seed, curve={0: 10, 10: 60, 20: 70 + shift + 10 * tau}, tau=tau, primary="fedavg",
                rounds=rounds_with(round(10 * tau) + 1),
            )  # fmt: skip
        root = make_run("fedpcd", seed=seed, curve={0: 10, 10: 50, 20: 60}, tau=0.02, primary="none")
    return root.parent


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def drawn(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    files, missing = write_figures(build_report([study], Options(target="fedavg")), folder, str)
    return folder, files, missing


def test_every_family_has_pdf_png_and_data(drawn):
    folder, files, missing = drawn
    names = {"curves", "frontier", "clients", "sweep-tau", "ablation", "constraints"}
    assert {path.stem for path in files} == names
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("pdf", "png", "csv")
    )
    assert missing == []
    for name in names:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_fonts_are_embedded_as_truetype_and_the_width_is_a_column(drawn):
    _, files, _ = drawn
    for path in files:
        if path.suffix == ".pdf":
            content = path.read_bytes()
            assert b"/FontFile2" in content
            assert b"/Type3" not in content
            assert b"/MediaBox [ 0 0 241.2 " in content  # 3.35 in of 72 pt


def test_curves_data(drawn):
    found = {(r["metric"], r["group"], r["round"]): r for r in rows(drawn[0] / "curves.csv")}
    last = found["mean_accuracy", "fedavg", "20"]
    assert (float(last["mean"]), float(last["target"])) == (pytest.approx(0.52), pytest.approx(0.52))
    assert float(last["std"]) == pytest.approx(0.04 / 2**0.5)
    assert ("worst10_accuracy", "fedavg", "0") in found


def test_frontier_data_have_the_ranges(drawn):
    (row,) = [r for r in rows(drawn[0] / "frontier.csv") if r["group"] == "fedavg"]
    assert [float(row[f"mean_accuracy{end}"]) for end in ("", "_low", "_high")] == pytest.approx([0.52, 0.5, 0.54])


def test_client_data_are_a_distribution(drawn):
    of_fedavg = [r for r in rows(drawn[0] / "clients.csv") if r["group"] == "fedavg"]
    assert [float(r["accuracy"]) for r in of_fedavg] == [0.5] * 4 + [0.54] * 4
    assert float(of_fedavg[-1]["share_at_or_below"]) == 1.0


def test_sweep_data_with_active_constraints(drawn):
    found = rows(drawn[0] / "sweep-tau.csv")
    assert [float(r["value"]) for r in found] == [0.0, 0.02, 0.1]
    assert [float(r["mean_accuracy_mean"]) for r in found] == pytest.approx([0.72, 0.722, 0.73], abs=0.003)
    assert [float(r["active_constraints"]) for r in found] == [1.0, 1.0, 2.0]


def test_ablation_data(drawn):
    found = rows(drawn[0] / "ablation.csv")
    assert [r["change"] for r in found] == ["", "tau=0", "primary=none"]
    assert float(found[2]["mean_accuracy_mean"]) == pytest.approx(0.6)


def test_constraint_data(drawn):
    found = rows(drawn[0] / "constraints.csv")
    multipliers = [r for r in found if r["kind"] == "multiplier"]
    assert {(r["client"], r["round"], r["multiplier"]) for r in multipliers} == {
        ("1", "1", "0.1"), ("2", "2", "0.2"), ("3", "3", "0.3"),
    }  # fmt: skip
    angles = [r["angle_degrees"] for r in found if r["kind"] == "round" and r["seed"] == "1"][:3]
    assert angles == ["", "20.0", "30.0"]


def test_equal_runs_give_equal_files(study, drawn, tmp_path):
    write_figures(build_report([study], Options(target="fedavg")), tmp_path, str)
    for path in drawn[0].iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_what_is_missing_is_said(make_run, report_of, tmp_path):
    make_run("fedavg")
    files, missing = write_figures(report_of(), tmp_path / "figures", str)
    assert {path.stem for path in files} == {"curves", "frontier", "clients"}
    assert missing == [
        "no sweep: no setting takes three numbers while all others stay",
        "no ablation: no rule has two groups that change one setting of a third",
        "no constraints: no rule here solves a program",
    ]


def test_runs_that_did_not_finish_have_no_figure(make_run, report_of, tmp_path):
    make_run("fedavg", state="failed", curve={0: 10, 10: 20})
    assert write_figures(report_of(), tmp_path / "figures", str) == ([], ["no figure: no finished run"])


def test_each_column_of_a_pivot_and_each_table_has_its_figures(make_run, report_of, tmp_path):
    for rate in (0.1, 0.5):
        make_run("fedavg", changes={"server.participation_rate": rate})
    make_run("fedavg", changes={"server.participation_rate": 0.5, "data.test.protocol": "official"})
    files, _ = write_figures(report_of(pivot=("participation_rate",)), tmp_path / "figures", str)
    assert {path.stem for path in files if path.stem.startswith("curves")} == {
        "curves-participation-rate0.1-table1", "curves-participation-rate0.5-table1",
        "curves-participation-rate0.5-table2",
    }  # fmt: skip
    assert list(by_column(report_of().blocks[0].block.groups, ())) == [""]


def test_many_groups_are_shown_by_one_of_each_rule(make_run, report_of):
    for tau in range(8):
        make_run("fedpcd", tau=tau / 10, curve={20: 50 + (tau == 3)})
    make_run("fedavg")
    shown = representatives(report_of().blocks[0].block.groups, MEAN)
    assert [group.label for group in shown] == ["fedavg", "fedpcd tau=0.3"]
    assert len(sweeps(report_of().blocks[0].block.groups)["aggregator.tau"][0].groups) == 8
    assert ablations(report_of().blocks[0].block.groups) == []


def test_seeds_evaluated_at_other_rounds_meet_at_the_common_ones(make_run, report_of):
    make_run(seed=1, curve={0: 10, 5: 20, 10: 30, 20: 50})
    make_run(seed=2, curve={0: 10, 10: 50, 20: 70}, changes={"evaluation.every": 10})
    (curve,) = curves(report_of().blocks[0].block.groups, MEAN)
    assert curve.rounds.tolist() == [0, 10, 20]
    assert curve.mean == pytest.approx([0.1, 0.4, 0.6])
    assert client_accuracies(curve.group).tolist() == [0.5] * 4 + [0.7] * 4


def test_damaged_round_records_are_named(make_run, report_of):
    make_run("fedpcd", rounds=[{"round": 1, "diagnostics": {"n_active": 1}}])
    with pytest.raises(
        StoreError, match=r"rounds\.jsonl: damaged record \('feasible'|rounds\.jsonl: damaged record"
    ):
        constraint_series(report_of().members[0].run)


def test_clients_beyond_the_federation_are_damage(make_run, report_of):
    records = rounds_with(1)
    records[0]["diagnostics"]["multipliers"] = {"9": 1.0}
    make_run("fedpcd", rounds=records)
    with pytest.raises(StoreError, match=r"rounds\.jsonl: damaged record"):
        constraint_series(report_of().members[0].run)


def test_infeasible_rounds_are_kept(make_run, report_of):
    make_run("fedpcd", rounds=rounds_with(0, feasible=False))
    series = constraint_series(report_of().members[0].run)
    assert series.infeasible == (1, 2, 3)
    assert not series.multipliers.any()
    assert np.isnan(series.angles[0])


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--figures must be a folder; '.*file' can't be made: "):
        check_folder(tmp_path / "file")


def test_every_rule_has_one_look_and_no_two_share_it():
    from fedpcd_cli.registry import get_registry

    assert set(get_registry().names("aggregator")) >= set(LOOKS)
    assert len({look.color for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)
    assert look_of("median") == look_of("median")
    assert line_style("fedpcd", 1)["color"] == line_style("fedpcd")["color"]
    assert line_style("fedpcd", 1)["linestyle"] != line_style("fedpcd")["linestyle"]


def color_pairs(matrix):
    """Yield the distance of every two colors as someone with that deficiency sees them, in CIE Lab."""

    def linear(c):
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)

    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    colors = [np.array([int(look.color[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for look in LOOKS.values()]
    names = list(LOOKS)
    labs = []
    for color in colors:
        xyz = to_xyz @ np.clip(matrix @ linear(color), 0, 1) / np.array([0.9505, 1.0, 1.089])
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        labs.append(np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]))
    for i in range(len(labs)):
        for j in range(i):
            yield names[i], names[j], float(np.linalg.norm(labs[i] - labs[j]))


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3),
        # Machado, Oliveira and Fernandes (2009), full protanopia, deuteranopia, tritanopia.
        np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
        np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
        np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
    ],
    ids=["normal", "protanopia", "deuteranopia", "tritanopia"],
)  # fmt: skip
def test_colors_that_look_alike_to_some_differ_in_dash(matrix):
    for one, other, distance in color_pairs(matrix):
        if distance < 12:
            assert LOOKS[one].dash != LOOKS[other].dash, (one, other, distance)
