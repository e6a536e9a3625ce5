"""The recipes that come with fedpcd, and how a recipe is found by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from fedpcd_cli.errors import UsageError
from fedpcd_cli.recipe.nodes import Node, shorten

SUFFIXES = (".yaml", ".yml")


def library_root() -> Path:
    """Return the folder of shipped recipes: inside the wheel, else at the top of the repository."""
    package = Path(__file__).parent
    packed = package / "shipped"
    return packed if packed.is_dir() else package.parents[1] / "recipes"


def shipped_recipes() -> dict[str, Path]:
    """Return name -> file of every shipped recipe, those outside folders first; names are paths without suffix."""
    root = library_root()
    found = {path.relative_to(root).with_suffix("").as_posix(): path for path in root.rglob("*.yaml")}
    return dict(sorted(found.items(), key=lambda entry: ("/" in entry[0], entry[0])))


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


def nearest(text: str, shipped: Iterable[str] = (), base: Path | None = None) -> str:
    """Return ` Did you mean 'x'?` for the nearest shipped name or the nearest recipe file in the same folder.

    Args:
        text: A recipe's name or path as written.
        shipped: Names of shipped recipes.
        base: Folder that the path is relative to; the suggestion is so too.
    """
    path = Path(os.path.expanduser(text))
    names = list(shipped)
    try:
        beside = sorted(((base or Path()) / path).parent.iterdir())
        files = [path.with_name(file.name) for file in beside if file.suffix in SUFFIXES and file.is_file()]
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
    return shorten(text, 200) or "''"


def shipped_summaries() -> list[dict[str, str | None]]:
    """Return name, summary (the file's first comment line), dataset, aggregator and path of shipped recipes."""
    from fedpcd_cli.recipe.layers import merge_layers, read_layers
    from fedpcd_cli.recipe.nodes import Problems

    rows: list[dict[str, str | None]] = []
    for name, path in shipped_recipes().items():
        layers, _ = read_layers(path, Problems())
        dataset = aggregator = None
        if layers:
            merged = merge_layers(layers)
            dataset = _text_at(merged, "data", "dataset")
            aggregator = _text_at(merged, "aggregator", "name")
        summary = first_comment(path)
        rows.append(
            {"name": name, "summary": summary, "dataset": dataset, "aggregator": aggregator, "path": str(path)}
        )
    return rows


def first_comment(path: Path) -> str:
    """Return the text of a file's first comment line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return next((line.strip().lstrip("#").strip() for line in lines if line.lstrip().startswith("#")), "")


def _text_at(node: Node, *path: str) -> str | None:
    value = node.walk(*path).value
    return value if isinstance(value, str) else None
