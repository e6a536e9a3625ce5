"""`fedpcd report`: the metrics of one run or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpcd_cli.commands.options import FormatOption
from fedpcd_cli.views.formats import OutputFormat


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or folders that hold them.")],
    output_format: FormatOption = OutputFormat.TABLE,
    definitions: Annotated[bool, typer.Option("--definitions", help="Print each metric's formula too.")] = False,
) -> None:
    """Print the fairness metrics of runs, finished or not, at their last evaluation."""
    from fedpcd_cli.store.reader import find_runs

    print_report(find_runs(runs), output_format, definitions=definitions)


def print_report(roots: list[Path], output_format: OutputFormat, *, definitions: bool = False) -> None:
    """Print the table of the given run directories; a damaged one is named, the others are shown.

    Raises:
        StoreError: None of them can be read.
    """
    from fedpcd_cli.errors import StoreError
    from fedpcd_cli.metrics import DEFINITIONS
    from fedpcd_cli.store.reader import RunReader
    from fedpcd_cli.views.console import message_console, result_console
    from fedpcd_cli.views.formats import to_csv, to_json
    from fedpcd_cli.views.metrics_table import metrics_table
    from fedpcd_cli.views.run_summary import RunSummary, summarize

    summaries: list[RunSummary] = []
    failures: list[StoreError] = []
    for root in roots:
        try:
            summaries += summarize(RunReader(root))
        except StoreError as error:
            failures.append(error)
    if not summaries:
        raise failures[0]
    for failure in failures:
        message_console().print(f"left out: {failure}", soft_wrap=True, markup=False)
    if output_format is OutputFormat.TABLE:
        console = result_console()
        console.print(metrics_table(summaries))
        if definitions:
            for title, text in DEFINITIONS.values():
                console.print(f"{title}: {text}", soft_wrap=True)
    elif output_format is OutputFormat.JSON:
        typer.echo(to_json("runs", [summary.as_dict() for summary in summaries]))
    else:
        typer.echo(to_csv([summary.as_dict() for summary in summaries]))
