"""`fedpcd config`: the resolved recipe."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fedpcd_cli.commands.options import SetOption


class ConfigFormat(StrEnum):
    """What `fedpcd config` prints."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


def config(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe file, or the name of a shipped one.", show_default=False)
    ] = None,
    overrides: SetOption = None,
    output_format: Annotated[
        ConfigFormat, typer.Option("--format", help="table is YAML with each value's origin as a comment.")
    ] = ConfigFormat.TABLE,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of recipe files instead, for editors.")
    ] = False,
) -> None:
    """Print a recipe with every default filled in, each value with where it came from."""
    import json

    from fedpcd_cli.errors import UsageError

    if schema:
        from fedpcd_cli.recipe.json_schema import recipe_schema

        typer.echo(json.dumps(recipe_schema(), indent=2, ensure_ascii=False))
        return
    if recipe is None:
        raise UsageError(
            "RECIPE is required: a recipe file, or the name of a shipped one.", hint="fedpcd recipes ls"
        )

    from fedpcd_cli.recipe.document import to_yaml
    from fedpcd_cli.recipe.layers import shown_path
    from fedpcd_cli.recipe.library import find_recipe
    from fedpcd_cli.recipe.load import load_recipe
    from fedpcd_cli.views.console import result_console
    from fedpcd_cli.views.formats import to_json
    from fedpcd_cli.views.recipe import recipe_view

    resolved = load_recipe(find_recipe(recipe), overrides or [])
    shown = shown_path(resolved.path)
    if output_format is ConfigFormat.YAML:
        typer.echo(to_yaml(resolved.document), nl=False)
    elif output_format is ConfigFormat.JSON:
        content = {
            "path": shown,
            "digest": resolved.digest,
            "document": resolved.document,
            "origins": resolved.origins,
        }
        typer.echo(to_json("recipe", content))
    else:
        console = result_console()
        view = recipe_view(resolved.document, resolved.origins, shown, console.width)
        console.print(view, soft_wrap=True)
