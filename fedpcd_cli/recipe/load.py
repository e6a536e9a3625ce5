"""From a file and `--set` options to a resolved recipe, all problems at once."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcd_cli.errors import RecipeError
from fedpcd_cli.recipe.build import Builder
from fedpcd_cli.recipe.document import digest, recipe_document, recipe_from_document
from fedpcd_cli.recipe.layers import merge_layers, read_layers, shown_path
from fedpcd_cli.recipe.library import nearest, shipped_recipes
from fedpcd_cli.recipe.nodes import Problems
from fedpcd_cli.recipe.override import override_layer
from fedpcd_cli.recipe.schema import Recipe
from fedpcd_cli.registry import Registry, get_registry

__all__ = ["ResolvedRecipe", "load_recipe", "recipe_from_document"]


@dataclass(frozen=True)
class ResolvedRecipe:
    """A recipe with everything decided.

    Attributes:
        recipe: The typed recipe.
        document: The same as plain data, every default written out; see `recipe.document`.
        origins: Dotted key of each value in the document -> `file.yaml:12`, `--set` or `default`.
        digest: SHA-256 (hex) of the document without name and output.
        path: The file.
    """

    recipe: Recipe
    document: dict[str, Any]
    origins: dict[str, str]
    digest: str
    path: Path


def load_recipe(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), *, registry: Registry | None = None
) -> ResolvedRecipe:
    """Read a recipe file, what it extends, and `--set` options.

    Args:
        path: The YAML file; `library.find_recipe` also knows the shipped recipes' names.
        overrides: `a.b=value` each, applied last.
        registry: Where components are found; the installed plug-ins by default.

    Raises:
        RecipeError: All problems, one line each.
        PluginError: The recipe names a component whose plug-in is broken.
    """
    file = Path(path)
    if not os.path.lexists(file):
        raise RecipeError([f"{shown_path(file)}: no such file.{nearest(str(file), shipped_recipes())}"])
    problems = Problems()
    layers, complete = read_layers(file, problems)
    override = override_layer(overrides, problems)
    if not layers:
        problems.raise_if_any()
    builder = Builder(registry or get_registry(), problems, complete=complete)
    recipe = builder.build(merge_layers(layers, override), default_name(file))
    problems.raise_if_any()
    if recipe is None:
        raise RuntimeError("a recipe failed without a reported problem")
    document = recipe_document(recipe)
    return ResolvedRecipe(recipe, document, builder.origins, digest(document), file)


def default_name(path: Path) -> str:
    """Return the name of a recipe that gives none: its file's, reduced to what a name may hold."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower())[:64]
    return slug.strip("._-") or "recipe"
