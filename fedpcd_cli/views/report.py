"""A report in the format that was asked for."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.report.build import Report
from fedpcd_cli.report.captions import block_title, blocks_sentence
from fedpcd_cli.report.table import Rename, Table, tables
from fedpcd_cli.views.console import result_console
from fedpcd_cli.views.formats import SCHEMA_VERSION, to_csv
from fedpcd_cli.views.report_latex import latex_document
from fedpcd_cli.views.report_markdown import markdown_table
from fedpcd_cli.views.report_rows import document, tidy_rows
from fedpcd_cli.views.report_table import print_table

SYMBOLS = {
    "tau": "τ", "history_rounds": "H", "dirichlet_alpha": "α", "participation_rate": "participation",
    "n_clients": "N", "lam": "λ",
}  # fmt: skip


def show(report: Report, output_format: str, *, definitions: bool = False) -> None:
    """Print a report on stdout.

    Args:
        report: What to print.
        output_format: `table`, `markdown`, `latex`, `csv` or `json`.
        definitions: Print every metric's formula below a table.
    """
    if output_format == "json":
        content = {"schema_version": SCHEMA_VERSION, **document(report)}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    elif output_format == "csv":
        typer.echo(to_csv(tidy_rows(report)))
    elif output_format == "latex":
        typer.echo(latex_document(all_tables(report, display_name), blocks_sentence(report)))
    elif output_format == "markdown":
        sentence = blocks_sentence(report)
        parts = [markdown_table(table) for table in all_tables(report, display_name)]
        typer.echo("\n\n".join([*([sentence] if sentence else []), *parts]))
    else:
        print_terminal(report, result_console(), definitions=definitions)


def print_terminal(report: Report, console: Console, *, definitions: bool = False) -> None:
    """Print all tables at a console's width."""
    sentence = blocks_sentence(report)
    if sentence:
        console.print(sentence, markup=False)
        console.print()
    for number, table in enumerate(all_tables(report, str)):
        if number:
            console.print()
        print_table(console, table)
    if definitions:
        asked = {m.key: (m.title, m.definition) for m in report.options.measures}
        for title, text in {**DEFINITIONS, **asked}.values():
            console.print(f"{title}: {text}", soft_wrap=True, markup=False)


def all_tables(report: Report, rename: Rename) -> list[Table]:
    """Return the tables of all blocks, in order."""
    return [
        table
        for block in report.blocks
        for table in tables(block, report.options, block_title(block, report), rename)
    ]


def display_name(name: str) -> str:
    """Return a rule or a setting as papers write it; others keep the name that recipes use."""
    if name in SYMBOLS:
        return SYMBOLS[name]
    from fedpcd_cli.registry import get_registry

    found = get_registry().components["aggregator"].get(name)
    title = getattr(found.component, "title", "") if found is not None else ""
    return title or name
