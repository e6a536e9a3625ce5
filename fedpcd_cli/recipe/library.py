"""The recipes that come with fedpcd, and how a recipe is found by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from fedpcd_cli.errors import UsageError

SUFFIXES = (".yaml", ".yml")


def library_root() -> Path:
    """Return the folder of shipped recipes: inside the wheel, else at the top of the repository."""
    package = Path(__file__).parent
    packed = package / "shipped"
    return packed if packed.is_dir() else package.parents[1] / "recipes"


def shipped_recipes() -> dict[str, Path]:
    """Return name -> file of every shipped recipe, sorted; a name is the path without its suffix."""
    root = library_root()
    return {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.rglob("*.yaml"))}


def find_recipe(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the file of a recipe, given its path or the name of a shipped one such as `quick-start`.

    Raises:
        UsageError: There is none; the message names the nearest.
    """
    text = os.fspath(name_or_path)
    if os.path.isfile(text):
        return Path(text)
    shipped = shipped_recipes()
    if text in shipped:
        return shipped[text]
    if os.path.isdir(text):
        raise UsageError(f"{_show(text)}: a recipe must be a file; found a folder.{_inside(text, shipped)}")
    inside = _inside(text, shipped)
    raise UsageError(
        f"{_show(text)}: no such recipe.{inside or nearest(text, shipped)}",
        hint="Run 'fedpcd recipes ls' to list those that come with fedpcd.",
    )


def nearest(text: str, shipped: Iterable[str] = ()) -> str:
    """Return ` Did you mean 'x'?` for the nearest shipped name or the nearest recipe file in the same folder."""
    path = Path(text)
    names = list(shipped)
    try:
        files = [file for file in sorted(path.parent.iterdir()) if file.suffix in SUFFIXES and file.is_file()]
    except (OSError, ValueError):
        files = []
    candidates = {**{name: name for name in names}, **{file.stem: str(file) for file in files}}
    for wanted in (text, path.stem, path.with_suffix("").as_posix() if path.name else text):
        near = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.6)
        if near:
            return f" Did you mean '{candidates[near[0]]}'?"
    return ""


def _inside(text: str, shipped: Iterable[str]) -> str:
    names = [name for name in shipped if name.startswith(text.rstrip("/") + "/")]
    return f" Choose one of {', '.join(names)}." if names and text.strip("/") else ""


def _show(text: str) -> str:
    from fedpcd_cli.recipe.nodes import shorten

    return shorten(text, 200) or "''"
