"""The table of metrics, as text."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.views.formats import to_csv, to_json
from fedpcd_cli.views.live import pace
from fedpcd_cli.views.metrics_table import format_metric, metrics_table, run_label
from fedpcd_cli.views.run_summary import RunSummary

RUN = RunSummary(
    path="runs/a/fedpcd-s1-0", recipe="a", aggregator="fedpcd", model="global", params={"tau": 0.02, "solver": "daqp"},
    seed=1, data_seed=1, state="finished", round_index=40, n_rounds=40,
    metrics={**dict.fromkeys(DEFINITIONS, 0.5), "worst10_accuracy": 0.12345, "jain_index": 0.98765},
    n_evaluated=30, n_clients=30, dataset="digits", scheme="iid", protocol="matched",
    notes=("decoded from JPEG",), partition_digest="00",
)  # fmt: skip


def text(runs, width=80):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(metrics_table(runs))
    return console.file.getvalue()


def test_percent_with_two_decimals_jain_with_three():
    shown = text([RUN])
    assert "12.35" in shown
    assert "0.988" in shown
    assert "Note: decoded from JPEG" in shown
    assert format_metric("mean_accuracy", None) == "–"


def test_unfinished_runs_say_so_within_80_columns():
    runs = [RUN, replace(RUN, aggregator="fedavg", state="interrupted", round_index=None, metrics=None)]
    shown = text(runs)
    assert "interrupted" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_rows_of_one_rule_show_the_parameters_that_differ():
    other = replace(RUN, params={"tau": 0.05, "solver": "daqp"})
    third = replace(RUN, aggregator="fedavg", params={})
    assert run_label(RUN, [RUN, other, third]) == "fedpcd tau=0.02"
    assert run_label(third, [RUN, other, third]) == "fedavg"
    assert run_label(RUN, [RUN]) == "fedpcd"
    assert run_label(replace(RUN, model="personal"), [RUN]) == "fedpcd (personal)"


def test_rows_as_csv_and_json():
    rows = [RUN.as_dict(), {"path": "b", "extra": [1, "x"]}]
    lines = to_csv(rows).splitlines()
    assert lines[0].endswith(",extra")
    assert lines[2].startswith("b,,")
    assert lines[2].endswith('"[1, ""x""]"')
    assert '"schema_version": 1' in to_json("runs", rows)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 10, 3.0), "first round …"),
        ((10, 90, 5.0), "2.00 rounds/s, 0:00:45 left"),
        ((2, 400, 60.0), "30 s/round, 3:20:00 left"),
    ],
)
def test_pace(arguments, expected):
    assert pace(*arguments) == expected
