"""A recipe file and all that it extends, bottom first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fedpcd_cli.recipe.library import nearest, shipped_recipes
from fedpcd_cli.recipe.nodes import INVALID, Node, Origin, Problems, shorten
from fedpcd_cli.recipe.read import read_file
from fedpcd_cli.recipe.slots import canonical, merge

EXTENDS = "extends"
MAX_CHAIN = 16


@dataclass(frozen=True)
class Layer:
    """One file of a chain.

    Attributes:
        path: The file.
        node: Its canonical content, without `extends`.
        extends: The value of `extends`, as written; None for the bottom layer.
    """

    path: Path
    node: Node
    extends: str | None


def shown_path(path: Path) -> str:
    """Return a path as messages show it: relative to the working directory if it lies below."""
    absolute = os.path.abspath(path)
    try:
        inside = os.path.relpath(absolute)
    except ValueError:  # another drive
        return absolute
    return absolute if inside.startswith(os.pardir) else Path(inside).as_posix()


def read_layers(path: Path, problems: Problems) -> tuple[list[Layer], bool]:
    """Return the layers of a recipe, the given file last, and whether the chain is whole."""
    layers: list[Layer] = []
    chain: list[tuple[str, str]] = []
    current, asked_at = path, None
    while True:
        real, shown = os.path.realpath(current), shown_path(current)
        if asked_at is not None and real in [known for known, _ in chain]:
            names = " -> ".join([*(name for _, name in chain), shown])
            problems.add(asked_at, f"extends must not form a cycle; found {names}")
            return layers[::-1], False
        if asked_at is not None and len(chain) >= MAX_CHAIN:
            problems.add(asked_at, f"extends must be at most {MAX_CHAIN} files deep; found more")
            return layers[::-1], False
        chain.append((real, shown))
        node = read_file(current, shown, problems)
        if node is None:
            return layers[::-1], False
        entries = dict(node.children)
        parent = entries.pop(EXTENDS, None)
        content = canonical(Node(entries, node.origin, node.key), problems)
        text = parent.value if parent is not None and isinstance(parent.value, str) else None
        layers.append(Layer(current, content, text))
        if parent is None or parent.value is None:
            return layers[::-1], True
        found = _find(parent, current, problems)
        if found is None:
            return layers[::-1], False
        current, asked_at = found, parent.origin


def _find(parent: Node, file: Path, problems: Problems) -> Path | None:
    if not isinstance(parent.value, str) or not parent.value.strip():
        if parent.value is not INVALID:
            problems.add(
                parent.origin,
                f"extends must be a recipe file or the name of a shipped recipe; found {parent.kind()}",
            )
        return None
    beside = file.parent / os.path.expanduser(parent.value)
    if os.path.isfile(beside):
        return beside
    shipped = shipped_recipes()
    if parent.value in shipped:
        return shipped[parent.value]
    what = "is a folder" if os.path.isdir(beside) else "doesn't exist"
    found = f"found '{shorten(parent.value)}', which {what}"
    near = nearest(parent.value, shipped, file.parent)
    problems.add(parent.origin, f"extends must be a recipe file; {found}.{near}")
    return None


def merge_layers(layers: list[Layer], override: Node | None = None) -> Node:
    """Return all layers as one mapping, `--set` on top."""
    nodes = [layer.node for layer in layers]
    merged = nodes[0]
    for node in nodes[1:]:
        merged = merge(merged, node)
    if override is not None:
        merged = merge(merged, override)
    # Missing keys are missing from the file that was asked for, wherever the topmost layer came from.
    return Node(merged.value, Origin(shown_path(layers[-1].path)), "")
