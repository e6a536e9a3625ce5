"""`fedpcd recipes`: those that come with fedpcd."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

recipes_app = typer.Typer(help="List and copy the recipes that come with fedpcd.", no_args_is_help=True)


class RecipesFormat(StrEnum):
    """What `fedpcd recipes ls` prints."""

    TABLE = "table"
    JSON = "json"


@recipes_app.command("ls")
def ls(
    output_format: Annotated[
        RecipesFormat, typer.Option("--format", help="What to print on stdout.")
    ] = RecipesFormat.TABLE,
) -> None:
    """List the recipes that come with fedpcd."""
    from fedpcd_cli.recipe.library import shipped_summaries
    from fedpcd_cli.views.console import result_console
    from fedpcd_cli.views.formats import to_json
    from fedpcd_cli.views.recipe import recipes_table

    rows = shipped_summaries()
    if output_format is RecipesFormat.JSON:
        typer.echo(to_json("recipes", rows))
    else:
        result_console().print(recipes_table(rows))


@recipes_app.command("cp")
def cp(
    name: Annotated[str, typer.Argument(help="A shipped recipe's name, as 'fedpcd recipes ls' gives it.")],
    destination: Annotated[Path, typer.Argument(help="A folder, or the copy's file name.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Copy a recipe, and the files it extends, to change them."""
    from fedpcd_cli.recipe.copy import copy_recipe
    from fedpcd_cli.recipe.library import find_recipe

    for path in copy_recipe(find_recipe(name), destination, force=force):
        typer.echo(path)
