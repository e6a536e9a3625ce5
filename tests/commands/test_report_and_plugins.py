"""`fedpcd report`, `fedpcd plugins` and the frame of the command line."""

from __future__ import annotations

import json
import shutil

import pytest

from fedpcd_cli.metrics import DEFINITIONS


@pytest.fixture
def runs(fedpcd, tmp_path):
    for rule in ("fedavg", "fedpcd"):
        done = fedpcd(
            "train", "quick-start", "--set", f"aggregator={rule}", "--set", "rounds=2", "--set",
            "engine.threads=1",
        )  # fmt: skip
        assert done.code == 0, done.err
    return sorted(path.parent for path in (tmp_path / "runs").rglob("status.json"))


def test_one_row_per_run_and_a_caption_that_says_what_was_measured(fedpcd, runs):
    shown = fedpcd("report", "runs")
    assert shown.code == 0
    assert "fedavg" in shown.out
    assert "fedpcd" in shown.out
    text = " ".join(shown.out.split())
    assert "matched test data" in text
    assert "data seed 1" in text
    assert max(map(len, shown.out.splitlines())) <= 80
    defined = fedpcd("report", "runs", "--definitions")
    for _, definition in DEFINITIONS.values():
        assert definition in " ".join(defined.out.split())


def test_json_has_every_metric(fedpcd, runs):
    rows = json.loads(fedpcd("report", *runs, "--format", "json").out)["runs"]
    assert [row["aggregator"] for row in rows] == ["fedavg", "fedpcd"]
    assert all(set(DEFINITIONS) <= set(row) for row in rows)
    assert rows[0]["partition_digest"] == rows[1]["partition_digest"]


def test_a_damaged_run_is_named_and_the_others_are_shown(fedpcd, runs):
    (runs[0] / "evaluations.jsonl").write_text("{\n{}\n")
    shown = fedpcd("report", "runs")
    assert shown.code == 0
    assert "left out: " in shown.err
    assert "evaluations.jsonl:1: damaged record" in shown.err
    assert "fedpcd" in shown.out
    shutil.rmtree(runs[1])
    alone = fedpcd("report", "runs")
    assert alone.code == 1
    assert "damaged record" in alone.err


def test_all_formats_of_one_comparison(fedpcd, runs):
    asked = ("report", "runs", "--baseline", "fedavg", "--interval", "--target", "0.01", "--metrics", "+angle")
    for output_format, expected in (
        ("table", "Paired difference from fedavg"),
        ("markdown", "### Paired difference from FedAvg"),
        ("latex", r"\bottomrule"),
        ("csv", "block,group,path,"),
        ("json", '"schema_version": 1'),
    ):
        done = fedpcd(*asked, "--format", output_format)
        assert done.code == 0, done.err
        assert expected in done.out
        assert done.err == ""


def test_figures_are_written_and_named(fedpcd, runs, tmp_path):
    done = fedpcd("report", "runs", "--figures", "figures")
    assert done.code == 0, done.err
    assert "Figures in figures: curves, frontier, clients, constraints" in done.err
    assert "no sweep: no setting takes three numbers while all others stay" in done.err
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 4
    (tmp_path / "file").touch()
    refused = fedpcd("report", "runs", "--figures", "file")
    assert refused.code == 2
    assert "error: --figures must be a folder; 'file' can't be made: " in refused.err


def test_help_defines_every_metric():
    from fedpcd_cli.commands.report import report
    from fedpcd_cli.report.measures import ALIASES, MEASURES

    text = " ".join(report.__doc__.split())
    for title, definition in DEFINITIONS.values():
        assert f"{title}: {definition}" in text
    on_request = text.split("On request: ")[1].split(";")[0].split(", ")
    assert {ALIASES.get(name, name) for name in on_request} == set(MEASURES) - set(DEFINITIONS)


def test_watching_finished_runs_prints_their_table(fedpcd, runs):
    done = fedpcd("report", "runs", "--watch")
    assert done.code == 0
    assert "Jain" in done.out


def test_best_is_labeled_as_chosen_on_test_data(fedpcd, runs):
    done = fedpcd("report", "runs", "--at", "best", "--by", "worst10")
    assert "best evaluation by Worst 10%, chosen on the test data" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at", "first"), "--at must be last, best, a round or mean-of-last-K"),
        (("--metrics", "jane"), "--metrics must name a metric; found 'jane'. Did you mean 'jain'?"),
        (("--by", "x"), "--by must name a metric; found 'x'."),
        (
            ("--baseline", "fedaxg"),
            "--baseline must name a rule of the table; found 'fedaxg'. Did you mean 'fedavg'?",
        ),
        (("--target", "fedaxg"), "--target must name a rule of the table; found 'fedaxg'. Did you mean 'fedavg'?"),
        (("--pivot", "alpa"), "--pivot must name a setting of these runs; found 'alpa'."),
        (("--best-over", "taau"), "--best-over must name a setting of these runs; found 'taau'."),
    ],
)
def test_wrong_options_are_usage_errors(fedpcd, runs, arguments, message):
    done = fedpcd("report", "runs", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert f"error: {message}" in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_missing_round_names_those_there_are(fedpcd, runs):
    done = fedpcd("report", "runs", "--at", "1")
    assert done.code == 1
    assert "has no evaluation at round 1; it has rounds 0, 2." in done.err


def test_without_color_there_are_no_escapes(fedpcd, runs, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in fedpcd("report", "runs").out


def test_folders_that_are_no_runs(fedpcd, tmp_path):
    assert "no such folder" in fedpcd("report", "nowhere").err
    (tmp_path / "empty").mkdir()
    empty = fedpcd("report", "empty")
    assert empty.code == 2  # a wrong argument, not a failed run
    assert "is not a run" in empty.err
    (tmp_path / "file.yaml").write_text("")
    assert fedpcd("report", "file.yaml").err == "error: file.yaml is not a run: it is a file.\n"


def test_plugins_lists_components_with_their_parameters(fedpcd):
    shown = fedpcd("plugins", "--kind", "aggregator")
    assert shown.code == 0
    assert "fedpcd" in shown.out
    assert "tau=0.02" in "".join(shown.out.split())
    content = json.loads(fedpcd("plugins", "--format", "json").out)["plugins"]
    assert {row["kind"] for row in content["components"]} == {"aggregator", "dataset", "partition", "model"}
    assert all(plugin["error"] is None for plugin in content["plugins"])
    wrong = fedpcd("plugins", "--kind", "aggregators")
    assert wrong.code == 2
    assert "Did you mean 'aggregator'?" in wrong.err


def test_help_documents_the_exit_codes(fedpcd):
    shown = fedpcd("--help")
    assert shown.code == 0
    text = " ".join(shown.out.split())
    for code in ("0 fine", "1 the run failed", "2 usage or recipe", "3 diverged", "4 plug-in", "130 interrupted"):
        assert code in text
    assert fedpcd("--version").out.startswith("fedpcd 0.")
    assert fedpcd("tarin").code == 2


def test_a_deleted_working_folder_is_named(fedpcd, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = fedpcd("recipes", "ls")
    monkeypatch.chdir(tmp_path)
    assert done.code == 2
    assert done.err.startswith("error: The current folder no longer exists.")
