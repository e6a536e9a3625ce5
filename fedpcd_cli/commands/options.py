"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from fedpcd_cli.views.formats import OutputFormat

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one value, as in --set aggregator.tau=0.1; repeatable."
    ),
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="What to print on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")]
