"""`fedpcd data`: the federation of a recipe, before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpcd_cli.commands.options import FormatOption, SetOption
from fedpcd_cli.views.formats import OutputFormat


def data(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped one.")],
    overrides: SetOption = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Write the picture to a .png, .svg or .pdf file too."),
    ] = None,
    output_format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show who would hold which data: clients, sizes, classes per client, and a picture of the skew.

    Loads and deals exactly as `train` does, so the partition digest is that of the run. With --format csv there
    is one row per client; json holds everything.
    """
    from fedpcd_cli.commands.loading import load_federation
    from fedpcd_cli.recipe.library import find_recipe
    from fedpcd_cli.recipe.load import load_recipe
    from fedpcd_cli.views.console import message_console, result_console
    from fedpcd_cli.views.federation import client_rows, federation_summary, federation_view
    from fedpcd_cli.views.federation_figure import check_figure_path, write_figure
    from fedpcd_cli.views.formats import to_csv, to_json
    from fedpcd_cli.views.steps import show_steps

    if figure is not None:
        check_figure_path(figure)
    plan = load_recipe(find_recipe(recipe), overrides or []).recipe
    messages = message_console()
    federation = load_federation(plan, messages)
    if output_format is OutputFormat.TABLE:
        result_console().print(federation_view(federation))
    elif output_format is OutputFormat.JSON:
        content = federation_summary(federation) | {"clients": client_rows(federation)}
        typer.echo(to_json("federation", content))
    else:
        typer.echo(to_csv(client_rows(federation)))
    if figure is not None:
        with show_steps(messages, "drawing"):
            write_figure(federation, figure)
        messages.print(f"Figure written to {figure}", soft_wrap=True, markup=False)
