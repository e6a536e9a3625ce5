"""`fedpcd plugins`: what is installed."""

from __future__ import annotations

from typing import Annotated

import typer

from fedpcd_cli.commands.options import FormatOption
from fedpcd_cli.views.formats import OutputFormat


def plugins(
    output_format: FormatOption = OutputFormat.TABLE,
    kind: Annotated[str | None, typer.Option(help="Only one kind: aggregator, dataset, partition, model.")] = None,
) -> None:
    """List aggregators, datasets, partition schemes and models, and the plug-ins they come from."""
    from fedpcd_cli.errors import UsageError, did_you_mean
    from fedpcd_cli.registry import KINDS, get_registry
    from fedpcd_cli.views.console import result_console
    from fedpcd_cli.views.formats import to_csv, to_json
    from fedpcd_cli.views.plugins import component_rows, plugin_rows, plugins_view

    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind must be one of {', '.join(KINDS)}; found '{kind}'.{did_you_mean(kind, KINDS)}")
    registry = get_registry()
    rows = [row for row in component_rows(registry) if kind is None or row["kind"] == kind]
    if output_format is OutputFormat.TABLE:
        result_console().print(plugins_view(rows, plugin_rows(registry)))
    elif output_format is OutputFormat.JSON:
        typer.echo(to_json("plugins", {"components": rows, "plugins": plugin_rows(registry)}))
    else:
        typer.echo(to_csv(rows))
