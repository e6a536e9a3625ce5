"""A resolved recipe and the list of recipes, for people."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fedpcd_cli.recipe.document import yaml_lines

_MAX_COLUMN = 44


def recipe_view(document: Mapping[str, Any], origins: Mapping[str, str], path: str, width: int = 80) -> Text:
    """Return the recipe as YAML, each value with its origin in an aligned comment.

    Args:
        document: The resolved recipe.
        origins: Dotted key -> origin.
        path: The recipe's file, as origins name it; files it extends get another color.
        width: Columns; where value and comment don't fit on a line, the comment goes above.
    """
    lines = [(text, _origin_of(key, document, origins)) for key, text in yaml_lines(document)]
    short = _short_names(origins)
    room = width - max((len(name) for name in short.values()), default=0) - len("  # ")
    fitting = [len(text) for text, origin in lines if origin and len(text) <= min(room, _MAX_COLUMN)]
    column = max(fitting, default=0) + 2
    view = Text()
    for text, origin in lines:
        if origin is None:
            view.append(text + "\n", style="bold")
            continue
        comment = f"# {short[origin]}"
        start = max(column, len(text) + 2)
        indent = len(text) - len(text.lstrip())
        if start + len(comment) > width:
            view.append(" " * indent + comment + "\n", style=_style(origin, path))
            view.append(text + "\n")
        else:
            view.append(text.ljust(start))
            view.append(comment + "\n", style=_style(origin, path))
    view.rstrip()
    return view


def _origin_of(key: str, document: Mapping[str, Any], origins: Mapping[str, str]) -> str | None:
    """Return the origin of a line: its own, or that of the parameter it is part of; None for a section's line."""
    if key in origins:
        return origins[key]
    parts = key.split(".")
    for length in range(len(parts) - 1, 0, -1):
        parent = ".".join(parts[:length])
        if parent in origins:
            return origins[parent]
    return None


def _short_names(origins: Mapping[str, str]) -> dict[str, str]:
    """Return origin -> comment: files by their bare names where these differ."""
    files = {origin: origin.rpartition(":")[0] for origin in origins.values() if ":" in origin}
    bare = {file: os.path.basename(file) for file in files.values()}
    unique = len(set(bare.values())) == len(bare)
    return {
        origin: f"{bare[files[origin]]}:{origin.rpartition(':')[2]}" if unique and origin in files else origin
        for origin in origins.values()
    }


def _style(origin: str, path: str) -> str:
    if origin == "default":
        return "dim"
    if origin == "--set":
        return "bold yellow"
    return "green" if origin.rpartition(":")[0] == path else "cyan"


def recipes_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of recipes: name, which tells dataset and rule, and what it does."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Name", no_wrap=True)
    table.add_column("What it does")
    for row in rows:
        table.add_row(Text(str(row["name"])), Text(str(row["summary"] or "")))
    return table
