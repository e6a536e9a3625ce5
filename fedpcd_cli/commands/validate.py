"""`fedpcd validate`: all problems of recipes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class ValidateFormat(StrEnum):
    """What `fedpcd validate` prints."""

    TABLE = "table"
    JSON = "json"


def validate(
    recipes: Annotated[
        list[str], typer.Argument(metavar="RECIPE…", help="Recipe files, or names of shipped ones.")
    ],
    output_format: Annotated[
        ValidateFormat, typer.Option("--format", help="What to print on stdout.")
    ] = ValidateFormat.TABLE,
) -> None:
    """Check recipes without running them; exit code 2 if one is wrong."""
    from fedpcd_cli.errors import ExitCode
    from fedpcd_cli.views.formats import to_json

    rows = [_check(recipe) for recipe in recipes]
    codes = {row.pop("code") for row in rows}
    if output_format is ValidateFormat.JSON:
        typer.echo(to_json("recipes", rows))
    else:
        for row in rows:
            for line in row["problems"] or [f"ok {row['path']}"]:
                typer.echo(line)
    if codes - {ExitCode.OK}:
        raise typer.Exit(int(ExitCode.USAGE if ExitCode.USAGE in codes else ExitCode.PLUGIN))


def _check(recipe: str) -> dict[str, Any]:
    """Return one recipe's path, problems, digest and exit code."""
    from fedpcd_cli.errors import ExitCode, FedPCDError
    from fedpcd_cli.recipe.layers import shown_path
    from fedpcd_cli.recipe.library import find_recipe
    from fedpcd_cli.recipe.load import load_recipe

    shown = recipe
    try:
        path = find_recipe(recipe)
        shown = shown_path(path)
        resolved = load_recipe(path)
    except FedPCDError as error:
        problems = error.message.splitlines()
        return {"path": shown, "ok": False, "problems": problems, "digest": None, "code": error.exit_code}
    return {"path": shown, "ok": True, "problems": [], "digest": resolved.digest, "code": ExitCode.OK}
