"""The best value of a setting, settings as columns, rounds to a target, differences."""

from __future__ import annotations

import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.report.table import tables

RATE = "server.participation_rate"
ALPHA = "data.partition.dirichlet_alpha"


def shown(report, number=0, block=0):
    return tables(report.blocks[block], report.options)[number]


def labels(table):
    return [row[0].parts[0] for row in table.rows]


@pytest.fixture
def taus(make_run):
    for tau, finals in ((0.0, (60, 60)), (0.02, (70, 80)), (0.1, (74, 72))):
        for seed, final in enumerate(finals, start=1):
            make_run("fedpcd", seed=seed, tau=tau, curve={0: 10, 20: final})
    for seed in (1, 2):
        make_run("fedavg", seed=seed, curve={0: 10, 20: 50})


def test_best_over_names_its_choice(taus, report_of):
    report = report_of(best_over=("tau",))
    table = shown(report)
    assert labels(table) == ["fedavg", "fedpcd [best of 3: tau=0.02]"]
    assert [row[4].parts[0] for row in table.rows] == ["50.00", "75.00"]
    note = "Note: fedpcd: tau=0.02, the best of 3 by Mean (tau=0, tau=0.02, tau=0.1). Chosen on the test data."
    assert note in table.caption


def test_best_over_goes_by_the_metric_that_is_asked_for(make_run, report_of):
    make_run("fedpcd", tau=0.02, curve={20: [100, 100, 100, 0]})
    make_run("fedpcd", tau=0.1, curve={20: [50, 50, 50, 50]})
    by_spread = report_of(best_over=("tau",), by=MEASURES["accuracy_std"])
    assert labels(shown(by_spread)) == ["fedpcd [best of 2: tau=0.1]"]
    assert labels(shown(report_of(best_over=("tau",)))) == ["fedpcd [best of 2: tau=0.02]"]


def test_best_over_tells_of_the_edge_and_of_missing_runs(taus, make_run, report_of):
    make_run("fedpcd", seed=1, tau=0.5, curve={0: 10, 20: 95})
    make_run("fedpcd", seed=1, tau=0.9, curve={0: 10, 10: 99}, state="diverged")
    text = " ".join(shown(report_of(best_over=("tau",))).caption)
    assert "fedpcd: tau=0.5, the best of 4 by Mean (tau=0, tau=0.02, tau=0.1, tau=0.5)" in text
    assert "; 1 without a finished run" in text
    assert "; they have different numbers of seeds" in text
    assert "; it is the largest value tried" in text


def test_best_over_an_unknown_key(taus, report_of):
    with pytest.raises(UsageError) as caught:
        report_of(best_over=("tua",))
    assert (
        caught.value.message == "--best-over must name a setting of these runs; found 'tua'. Did you mean 'tau'?"
    )


@pytest.fixture
def grid(make_run):
    for alpha, shift in ((0.1, 0), (1.0, 20)):
        for rate, more in ((0.1, 0), (0.5, 5)):
            for rule, base in (("fedavg", 40), ("fedpcd", 60)):
                make_run(rule, curve={0: 10, 20: base + shift + more}, changes={ALPHA: alpha, RATE: rate})


def test_pivot_has_settings_as_columns(grid, report_of):
    report = report_of(pivot=("dirichlet_alpha", "participation_rate"), measures=(MEASURES["mean_accuracy"],))
    assert len(report.blocks) == 1
    table = shown(report)
    assert [column.above for column in table.columns] == [
        "",
        "dirichlet_alpha 0.1, participation_rate 0.1",
        "dirichlet_alpha 0.1, participation_rate 0.5",
        "dirichlet_alpha 1, participation_rate 0.1",
        "dirichlet_alpha 1, participation_rate 0.5",
    ]
    assert [[cell.parts[0] for cell in row] for row in table.rows] == [
        ["fedavg", "40.00", "45.00", "60.00", "65.00"],
        ["fedpcd", "60.00", "65.00", "80.00", "85.00"],
    ]
    assert [cell.mark for cell in table.rows[1]] == ["", "best", "best", "best", "best"]


def test_settings_that_are_no_columns_still_split(grid, report_of):
    report = report_of(pivot=("participation_rate",), measures=(MEASURES["mean_accuracy"],))
    assert report.split_by == ("data.partition.dirichlet_alpha",)


def test_pivot_over_datasets_may_change_data_and_rounds_with_the_column(make_run, report_of):
    for rule in ("fedavg", "fedpcd"):
        make_run(
            rule, changes={"data.dataset": "cifar10", "rounds": 10}, curve={0: 1, 10: 50}, fingerprint="c" * 64
        )
        make_run(rule, changes={"data.dataset": "fashion-mnist"}, curve={0: 1, 20: 70}, fingerprint="e" * 64)
    report = report_of(pivot=("data.dataset",), measures=(MEASURES["mean_accuracy"],))
    assert len(report.blocks) == 1
    assert [column.above for column in shown(report).columns] == ["", "dataset cifar10", "dataset fashion-mnist"]


def test_pivot_with_the_best_value_of_each_column(make_run, report_of):
    for rate, best in ((0.1, 0.02), (0.5, 0.1)):
        for tau in (0.02, 0.1):
            make_run("fedpcd", tau=tau, changes={RATE: rate}, curve={20: 80 if tau == best else 70})
    report = report_of(pivot=(RATE,), best_over=("tau",), measures=(MEASURES["mean_accuracy"],))
    table = shown(report)
    assert [[cell.parts[0] for cell in row] for row in table.rows] == [["fedpcd", "80.00", "80.00"]]
    text = " ".join(table.caption)
    assert "fedpcd at participation_rate 0.1: tau=0.02, the best of 2" in text
    assert "fedpcd at participation_rate 0.5: tau=0.1, the best of 2" in text


def test_pivot_shows_settings_that_a_rule_lacks_once(taus, report_of):
    table = shown(report_of(pivot=("tau",), measures=(MEASURES["mean_accuracy"],)))
    assert [column.above for column in table.columns] == ["", "tau null", "tau 0", "tau 0.02", "tau 0.1"]
    assert [cell.parts[0] for cell in table.rows[0]] == ["fedavg", "50.00", "–", "–", "–"]


@pytest.fixture
def racing(make_run):
    make_run("fedavg", seed=1, curve={0: 10, 5: 20, 10: 40, 15: 44, 20: 50})
    make_run("fedavg", seed=2, curve={0: 10, 5: 20, 10: 40, 15: 46, 20: 54})
    make_run("fedpcd", seed=1, curve={0: 10, 5: 52, 10: 60, 15: 60, 20: 60})
    make_run("fedpcd", seed=2, curve={0: 10, 5: 50, 10: 70, 15: 70, 20: 70})


def test_rounds_to_a_number(racing, report_of):
    report = report_of(target="0.52")
    fedavg, fedpcd = report.blocks[0].reached
    # fedavg: seed 1 never, seed 2 at 20; its mean 52 at 20. fedpcd: 5 and 10; its mean 51 at 5, 65 at 10.
    assert (fedavg.rounds, fedavg.n_runs, fedavg.of_mean) == ((20,), 2, 20)
    assert (fedpcd.rounds, fedpcd.of_mean) == ((5, 10), 10)
    table = shown(report, 1)
    assert table.title == "Rounds to Mean 52.00%"
    assert [[" ".join(cell.parts) for cell in row] for row in table.rows] == [
        ["fedavg", "20", "100%", "20.0", "1 of 2"],
        ["fedpcd", "10", "50%", "7.5 ±3.5", "2 of 2"],
    ]


def test_rounds_to_another_rules_result(racing, report_of):
    report = report_of(target="fedavg")  # its final mean: 52
    assert report.blocks[0].reached[1].of_mean == 10
    assert shown(report, 1).title == "Rounds to Mean 52.00%, the final mean of fedavg"


def test_targets_of_metrics_that_fall(racing, report_of):
    report = report_of(target="0.25", by=MEASURES["loss"])  # 0.5 per wrong answer: half are right
    assert report.blocks[0].reached[1].rounds == (5, 5)


def test_a_percentage_is_a_share(racing, report_of):
    assert report_of(target="52%").blocks[0].reached[0].target == 0.52


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("60", "--target must be a share from 0 to 1, a percentage such as 60%, or a rule; found '60'."),
        ("fedavgg", "--target must name a rule of the table; found 'fedavgg'. Did you mean 'fedavg'?"),
    ],
)
def test_targets_that_are_none(racing, report_of, target, message):
    with pytest.raises(UsageError) as caught:
        report_of(target=target)
    assert caught.value.message == message


def test_differences_pair_seeds(racing, make_run, report_of):
    make_run("fedpcd", seed=3, curve={20: 99})
    (difference,) = report_of(baseline="fedavg").blocks[0].differences
    summary = difference.summaries["mean_accuracy"]  # 10 and 16 points; seed 3 has no partner
    assert (summary.n, summary.mean) == (2, pytest.approx(0.13))
    assert summary.std == pytest.approx(0.06 / 2**0.5)


def test_other_splits_are_not_paired(make_run, report_of):
    make_run("fedavg", seed=1, digest="one")
    make_run("fedpcd", seed=1, digest="two")
    report = report_of(baseline="fedavg")
    assert report.blocks[0].differences[0].summaries["mean_accuracy"] is None
    text = " ".join(shown(report).caption)
    assert "fedpcd and fedavg have different splits at seed 1; not paired." in text
    assert "Runs of data seed 1 do not share one split." in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fedagv", "--baseline must name a rule of the table; found 'fedagv'. Did you mean 'fedavg'?"),
        ("fedpcd", "--baseline fedpcd could be 'fedpcd tau=0', 'fedpcd tau=0.02', 'fedpcd tau=0.1'."),
    ],
)
def test_baselines_that_are_none(taus, report_of, name, message):
    with pytest.raises(UsageError) as caught:
        report_of(baseline=name)
    assert caught.value.message == message


def test_a_label_names_a_baseline(taus, report_of):
    found = report_of(baseline="fedpcd tau=0.02").blocks[0].differences
    assert [d.group.label for d in found] == ["fedavg", "fedpcd tau=0", "fedpcd tau=0.1"]


def test_a_table_without_the_baseline_says_so(make_run, report_of):
    make_run("fedavg")
    make_run("fedpcd", changes={ALPHA: 1.0})
    report = report_of(baseline="fedavg", target="fedavg")
    assert "No run of fedavg is in this table; there is nothing to pair." in report.blocks[1].notes
    assert "No finished run in this table gives the target fedavg." in report.blocks[1].notes
