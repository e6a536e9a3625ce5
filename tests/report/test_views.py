"""Terminal, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess

import pytest
from rich.console import Console

from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.report.table import Cell, Column, Table, tables
from fedpcd_cli.views.report import all_tables, print_terminal, show
from fedpcd_cli.views.report_latex import escape, latex_document
from fedpcd_cli.views.report_markdown import markdown_table
from fedpcd_cli.views.report_table import print_table


@pytest.fixture
def three_rules(make_run):
    for seed, shift in ((1, 0), (2, 4), (3, 2)):
        make_run("fedavg", seed=seed, curve={0: 10, 20: [50 + shift, 60, 70, 80]})
        make_run("fedlf", seed=seed, curve={0: 10, 20: [60 + shift, 60, 70, 80]})
        make_run("fedpcd", seed=seed, curve={0: 10, 20: [70 + shift, 70, 70, 80]}, tau=0.02)
    make_run("fedpcd", seed=4, curve={0: 10, 10: 99}, state="diverged", tau=0.02)


def screen(report, width, **options):
    console = Console(width=width, file=io.StringIO(), highlight=False, **options)
    print_terminal(report, console)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("interval", [False, True])
def test_screens_fit_and_show_every_number(three_rules, report_of, width, interval):
    shown = screen(report_of(interval=interval, baseline="fedavg", target="0.68"), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for number in ("65.50", "68.00", "73.00", "±0.50", "+7.50", "diverged at 10 of 20", "99.00"):
        assert number in shown, number


def test_six_metrics_fit_one_table_at_80_columns(three_rules, report_of):
    shown = screen(report_of(), 80)
    assert shown.count("Rule ") == 1
    for title in ("Global", "Mean", "Worst 10%", "Best 10%", "Spread", "Jain"):
        assert title in shown


def test_marks_survive_without_color(three_rules, report_of):
    shown = screen(report_of(), 140, color_system=None)
    assert re.search(r"fedpcd .* 73\.00 ±0\.50\*", shown)
    assert re.search(r"fedlf .* 68\.00 ±0\.50°", shown)
    assert "*: best, °: second best" in shown
    colored = screen(report_of(), 140, force_terminal=True, color_system="standard", no_color=True)
    assert "\x1b[1m73.00" in colored
    assert "\x1b[4m68.00" in colored
    assert "\x1b[3" not in colored.replace("\x1b[3m", "")


def test_a_single_run_is_a_simple_table(make_run, report_of):
    make_run()
    shown = screen(report_of(), 80)
    assert "±" not in shown
    assert "*" not in shown
    assert "One seed each" in shown


def test_brackets_of_names_are_no_markup(capsys):
    table = Table("", (Column("Rule", is_number=False), Column("x")), ((Cell(("[best of 6]",)), Cell(("1",))),))
    console = Console(width=80, file=io.StringIO())
    print_table(console, table)
    assert "[best of 6]" in console.file.getvalue()


def test_markdown(three_rules, report_of, capsys):
    show(report_of(measures=(MEASURES["mean_accuracy"],)), "markdown")
    shown = capsys.readouterr().out
    assert "| Rule | Seeds | Round | Mean |\n| --- | ---: | ---: | ---: |" in shown
    assert "| FedPCD | 1–3 | 20 | **73.00** ±0.50 |" in shown
    assert "| FedLF | 1–3 | 20 | <u>68.00</u> ±0.50 |" in shown
    assert "| FedPCD (diverged at 10 of 20) | 4 | 10 | 99.00 |" in shown
    assert "dirichlet\\_alpha" in shown


def test_markdown_escapes():
    table = Table("", (Column("R|x"),), ((Cell(("a_b|c",)),),))
    assert markdown_table(table).splitlines()[::2] == ["| R\\|x |", "| a\\_b\\|c |"]


def test_csv_is_tidy(three_rules, report_of, capsys):
    show(report_of(measures=(MEASURES["mean_accuracy"], MEASURES["angle"])), "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 10 * 2
    (row,) = [r for r in rows if (r["aggregator"], r["seed"], r["metric"]) == ("fedpcd", "2", "mean_accuracy")]
    assert float(row["value"]) == pytest.approx(0.735)
    assert (row["state"], row["averaged"], row["round"], row["aggregator.tau"]) == (
        "finished",
        "True",
        "20",
        "0.02",
    )
    assert {r["averaged"] for r in rows if r["state"] == "diverged"} == {"False"}


def test_json_holds_runs_groups_and_statistics(three_rules, report_of, capsys):
    show(report_of(baseline="fedavg", target="fedavg"), "json")
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert len(content["runs"]) == 10
    (block,) = content["blocks"]
    assert [g["label"] for g in block["groups"]] == ["fedavg", "fedlf", "fedpcd"]
    mean = block["groups"][2]["metrics"]["mean_accuracy"]
    # 72.5, 73.5, 73: mean 73, deviation 0.5, half width 4.302653 * 0.5 / sqrt(3).
    assert (mean["n"], mean["mean"], mean["std"]) == (3, pytest.approx(0.73), pytest.approx(0.005))
    assert mean["high"] == pytest.approx(0.73 + 4.302653 * 0.005 / 3**0.5, rel=1e-6)
    assert block["groups"][2]["not_averaged"][0]["state"] == "diverged"
    assert block["differences"][1]["metrics"]["mean_accuracy"]["mean"] == pytest.approx(0.075)
    assert block["rounds_to_target"][0]["target"] == pytest.approx(0.655)
    assert content["left_out"] == []


def test_latex_structure(three_rules, report_of):
    report = report_of(baseline="fedavg", interval=True)
    text = latex_document(all_tables(report, str), None)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    for word in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(word) == 2
    assert r"\textbf{73.00} {\scriptsize $\pm$0.50 {[}$\pm$1.24{]}}" in text
    assert r"\underline{68.00}" in text
    assert text.isascii()
    for row in re.findall(r"(?m)^    .* & .*\\\\$", text.split("Paired")[0]):
        assert row.count(" & ") == 8


def test_latex_escapes():
    assert escape("50% of a_b & {c} #1 $x^2~") == (
        r"50\% of a\_b \& \{c\} \#1 \$x\textasciicircum{}2\textasciitilde{}"
    )
    assert escape("τ ±1 – √ā 漢") == r"$\tau$ $\pm$1 -- $\surd$$\bar{a}$ ?"
    assert escape("é") == "é"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_alone_and_within_a_paper(three_rules, report_of, tmp_path):
    report = report_of(baseline="fedavg", interval=True, target="fedavg", pivot=("server.participation_rate",))
    for number, options in enumerate((report, report_of())):
        (tmp_path / f"tables{number}.tex").write_text(latex_document(all_tables(options, str), "a % remark"))
    paper = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}\input{tables0}\input{tables1}Text.\end{document}"
    (tmp_path / "paper.tex").write_text(paper)
    for name in ("tables0", "tables1", "paper"):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:]
        assert (tmp_path / f"{name}.pdf").exists()
        assert "Missing character" not in done.stdout


def test_tables_of_a_block_come_in_order(three_rules, report_of):
    report = report_of(baseline="fedlf", target="0.7")
    titles = [t.title for t in tables(report.blocks[0], report.options)]
    assert titles == ["", "Paired difference from fedlf", "Rounds to Mean 70.00%"]
