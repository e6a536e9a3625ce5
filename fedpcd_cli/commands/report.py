"""`fedpcd report`: tables and figures of one run or many."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedpcd_cli.views.formats import OutputFormat

if TYPE_CHECKING:
    from fedpcd_cli.report.build import Options


class ReportFormat(StrEnum):
    """What `fedpcd report` prints on stdout."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or folders that hold them.")],
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="What to print on stdout.")
    ] = ReportFormat.TABLE,
    at: Annotated[
        str, typer.Option("--at", metavar="WHEN", help="last, best, a round, or mean-of-last-K (evaluations).")
    ] = "last",
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="LIST", help="Columns, as in mean,worst10,angle; +angle adds; or all."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="METRIC", help="What --at best, --best-over and --target go by.")
    ] = "mean",
    interval: Annotated[bool, typer.Option("--interval", help="Show 95% intervals of the means.")] = False,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="RULE", help="Show paired differences from this rule, seed by seed."),
    ] = None,
    best_over: Annotated[
        str | None, typer.Option("--best-over", metavar="KEY", help="Keep each rule's best value of a setting.")
    ] = None,
    pivot: Annotated[str | None, typer.Option("--pivot", metavar="KEY[,KEY]", help="Settings as columns.")] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="VALUE|RULE", help="Show the rounds to a number or to a rule's result."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Write figures (PDF, PNG) with their data (CSV) there."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow runs in progress; ends when none is running any more.")
    ] = False,
    definitions: Annotated[bool, typer.Option("--definitions", help="Print each metric's formula too.")] = False,
) -> None:
    """Compare runs: means over seeds, differences, rounds to a target, figures.

    Runs that differ only in their seeds are averaged. Runs that ended early are shown, not averaged.

    a_i is the test accuracy of client i, N counts the clients with test examples, each counts once.

    Global: share of all clients' test examples that are right (pooled)

    Mean: (1/N) Σ a_i, the papers' ā

    Worst 10%: mean of the ceil(0.1 N) lowest a_i

    Best 10%: mean of the ceil(0.1 N) highest a_i

    Min: lowest a_i

    Spread: population standard deviation of the a_i, the papers' σ_c

    Jain: (Σ a_i)² / (N Σ a_i²), from 1/N (one client has all) to 1 (all equal)

    Loss: mean cross-entropy over all clients' test examples (pooled)

    On request: cosine, angle, variance, kl, worst5, best5, median, weighted-spread; --metrics all --definitions
    says what they are.
    """
    from fedpcd_cli.report.build import Options
    from fedpcd_cli.report.choose import At
    from fedpcd_cli.report.measures import find_measure, parse_measures

    options = Options(
        measures=parse_measures(metrics),
        at=At.parse(at),
        by=find_measure(by, "--by"),
        interval=interval,
        baseline=baseline,
        best_over=_names(best_over),
        pivot=_names(pivot),
        target=target,
    )
    if watch:
        from fedpcd_cli.views.report_watch import follow

        follow(runs, options)
    _print(runs, options, output_format, figures=figures, definitions=definitions)


def print_report(roots: list[Path], output_format: OutputFormat) -> None:
    """Print the table of runs with every option at its default, as `fedpcd train` does at its end.

    CSV has one row per run here, and a column per metric.

    Raises:
        StoreError: None of them can be read.
    """
    from fedpcd_cli.report.build import Options, build_report
    from fedpcd_cli.views.formats import to_csv
    from fedpcd_cli.views.report_rows import run_rows

    if output_format is OutputFormat.CSV:
        typer.echo(to_csv(run_rows(build_report(roots, Options()))))
    else:
        _print(roots, Options(), ReportFormat(output_format.value))


def _print(
    runs: list[Path],
    options: Options,
    output_format: ReportFormat,
    *,
    figures: Path | None = None,
    definitions: bool = False,
) -> None:
    from fedpcd_cli.report.build import build_report
    from fedpcd_cli.views.console import message_console
    from fedpcd_cli.views.report import display_name, show
    from fedpcd_cli.views.report_figure_files import check_folder

    if figures is not None:
        check_folder(figures)
    built = build_report(runs, options)
    messages = message_console()
    for line in built.left_out:
        messages.print(f"left out: {line}", soft_wrap=True, markup=False)
    show(built, output_format.value, definitions=definitions)
    if figures is not None:
        from fedpcd_cli.views.report_figures import write_figures

        files, missing = write_figures(built, figures, display_name)
        for line in missing:
            messages.print(line, soft_wrap=True, markup=False)
        names = [path.stem for path in files if path.suffix == ".pdf"]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        messages.print(f"Figures in {figures}: {shown or 'none'}", soft_wrap=True, markup=False)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
