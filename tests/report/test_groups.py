"""Groups by everything but the seeds, blocks of what may be compared, marks, labels."""

from __future__ import annotations

import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.report.captions import blocks_sentence, seeds_text
from fedpcd_cli.report.marks import marks
from fedpcd_cli.report.settings import find_key, flatten, value_text
from fedpcd_cli.report.table import tables


def labels(report):
    return [[group.label for group in part.block.groups] for part in report.blocks]


def caption(report):
    return "\n".join(tables(report.blocks[0], report.options)[0].caption)


def test_runs_that_differ_only_in_seeds_are_one_group(make_run, report_of):
    for seed, final in ((1, 50), (2, 60), (3, 70)):
        make_run(seed=seed, data_seed=seed, curve={0: 10, 20: final})
    report = report_of()
    assert labels(report) == [["fedavg"]]
    summary = report.blocks[0].block.groups[0].summary("mean_accuracy")
    assert (summary.n, summary.mean) == (3, pytest.approx(0.6))
    assert summary.std == pytest.approx(0.1)
    assert "Seeds 1–3, each with its own split (data seed = seed); last round 20." in caption(report)


def test_settings_without_effect_do_not_split_a_group(make_run, report_of):
    make_run(seed=1)
    other = {"name": "other", "engine.threads": 8, "engine.device": "cuda", "output.root": "x", "data.root": "y"}
    make_run(seed=2, changes=other)
    assert labels(report_of()) == [["fedavg"]]


def test_labels_name_what_differs(make_run, report_of):
    make_run("fedavg")
    make_run("fedpcd", tau=0.02, history_rounds=10)
    make_run("fedpcd", tau=0.1, history_rounds=10)
    assert labels(report_of()) == [["fedavg", "fedpcd tau=0.02", "fedpcd tau=0.1"]]


def test_a_setting_outside_the_rule_is_named_too(make_run, report_of):
    make_run("fedavg")
    make_run("fedavg", changes={"server.participation_rate": 0.1})
    assert labels(report_of()) == [["fedavg participation_rate=0.1", "fedavg participation_rate=0.5"]]


def test_a_copy_of_a_run_counts_once(make_run, report_of):
    make_run(seed=1, name="a")
    make_run(seed=1, name="b", curve={0: 10, 20: 99})
    report = report_of()
    assert report.blocks[0].block.groups[0].summary("mean_accuracy").n == 1
    assert "repeats the seeds of" in caption(report)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"changes": {"rounds": 10}, "curve": {0: 1, 10: 50}}, "rounds (20, 10)"),
        ({"changes": {"data.test.protocol": "official"}}, "test protocol (matched, official)"),
        ({"fingerprint": "e" * 64}, "data fingerprint (ffffffff, eeeeeeee)"),
        ({"changes": {"data.partition.dirichlet_alpha": 1.0}}, "data.partition.dirichlet_alpha (0.1, 1)"),
    ],
)
def test_runs_that_cannot_be_compared_are_in_tables_of_their_own(make_run, report_of, change, named):
    make_run("fedavg", seed=1)
    make_run("fedavg", seed=2)
    make_run("fedpcd", seed=1, **change)
    report = report_of()
    assert [len(group) for group in labels(report)] == [1, 1]
    sentence = blocks_sentence(report)
    assert sentence.startswith("These runs can't be compared with each other: they differ in ")
    assert named in sentence
    assert sentence.endswith("There are 2 tables, one for each.")


def test_data_drawn_anew_for_every_seed_stay_together(make_run, report_of):
    for seed in (1, 2, 3):
        for rule in ("fedavg", "fedpcd"):
            make_run(rule, seed=seed, data_seed=seed, fingerprint=str(seed) * 64)
    report = report_of()
    assert labels(report) == [["fedavg", "fedpcd"]]
    assert "The data themselves are drawn anew for every data seed." in caption(report)


def test_runs_that_ended_early_are_shown_and_not_averaged(make_run, report_of):
    make_run("fedavg", seed=1, curve={0: 10, 20: 60})
    make_run("fedavg", seed=2, curve={0: 10, 10: 90}, state="diverged", reached=12)
    make_run("fedavg", seed=3, curve={0: 10}, state="interrupted", reached=4)
    report = report_of()
    group = report.blocks[0].block.groups[0]
    assert group.summary("mean_accuracy").mean == pytest.approx(0.6)
    table = tables(report.blocks[0], report.options)[0]
    assert [row[0].parts[0] for row in table.rows] == [
        "fedavg", "fedavg (diverged at 12 of 20)", "fedavg (interrupted at 4 of 20)",
    ]  # fmt: skip
    assert [row[4].parts[0] for row in table.rows] == ["60.00", "90.00", "10.00"]
    assert not any(cell.mark for row in table.rows[1:] for cell in row)
    line = "Not averaged: fedavg seed 2 diverged at 12 of 20, fedavg seed 3 interrupted at 4 of 20."
    assert line in table.caption


def test_a_run_whose_process_is_gone_was_killed(make_run, report_of):
    make_run(state="running", curve={0: 10, 10: 20})
    assert report_of().members[0].run.ending == "killed at 10 of 20"


def test_personal_models_are_a_row_of_their_own(make_run, report_of):
    make_run("ditto", curve={0: 10, 20: 50}, personal={0: 10, 20: 80})
    report = report_of()
    assert labels(report) == [["ditto", "ditto (personal)"]]
    assert [g.summary("mean_accuracy").mean for g in report.blocks[0].block.groups] == [0.5, 0.8]
    assert "1 client never took part; the initial model stands for their personal one." in caption(report)
    make_run(
        "ditto", seed=2, curve={0: 1, 20: 2}, personal={0: 1, 20: 2}, changes={"evaluation.model": "personal"}
    )
    assert [g.summary("mean_accuracy").n for g in report_of().blocks[0].block.groups] == [1, 2]


def test_the_caption_counts_evaluated_clients(make_run, report_of, tmp_path):
    root = make_run()
    text = (root / "evaluations.jsonl").read_text().replace('"n_evaluated":4', '"n_evaluated":3')
    (root / "evaluations.jsonl").write_text(text)
    assert "digits, 4 clients (3 evaluated), dirichlet (dirichlet_alpha 0.1), matched test data" in caption(
        report_of()
    )


def test_best_second_and_ties():
    assert marks(["1.00", "3.00", "2.00", "3.00"], higher_is_better=True) == ["", "best", "second", "best"]
    assert marks(["1.00", "3.00", "2.00"], higher_is_better=False) == ["best", "", "second"]
    assert marks(["1.00", None, "–"], higher_is_better=True) == ["", "", ""]
    assert marks(["1.00", "1.00"], higher_is_better=True) == ["", ""]


def test_rows_that_read_the_same_tie(make_run, report_of):
    make_run("fedavg", curve={20: 60})
    make_run("fedlf", curve={20: [60, 60, 60, 60]})
    make_run("fedpcd", curve={20: 59})
    table = tables(report_of().blocks[0], report_of().options)[0]
    assert [row[4].mark for row in table.rows] == ["best", "best", "second"]


def test_seeds_in_short():
    assert [seeds_text(s) for s in ([2], [2, 1], [1, 2, 3], [1, 3])] == ["2", "1, 2", "1–3", "1, 3"]


def test_settings_are_flat_and_found_by_their_last_part():
    flat = flatten({"aggregator": {"name": "x", "params": {"tau": 1}}, "model": {"name": "mlp", "hidden": [1]}})
    assert flat == {"aggregator": "x", "aggregator.tau": 1, "model": "mlp", "model.hidden": (1,)}
    assert find_key("tau", flat, "--pivot") == "aggregator.tau"
    assert value_text((1, None, True)) == "[1, null, true]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("taau", "--pivot must name a setting of these runs; found 'taau'. Did you mean 'tau'?"),
        ("lr", "--pivot lr could be local.lr, server.lr."),
    ],
)
def test_settings_that_are_not_there(name, message):
    with pytest.raises(UsageError) as caught:
        find_key(name, ["aggregator.tau", "local.lr", "server.lr"], "--pivot")
    assert caught.value.message == message


def test_contradictions_are_counted(make_run, report_of):
    records = [{"round": t, "diagnostics": {"feasible": t != 2}} for t in (1, 2, 3)]
    make_run("fedpcd", seed=1, on_infeasible="fedavg", rounds=records)
    make_run("fedpcd", seed=2, on_infeasible="fedavg", rounds=records)
    make_run("fedavg")
    text = caption(report_of())
    assert "fedpcd: in 2 of 40 rounds clients contradicted each other, and on_infeasible decided." in text
