"""Values of a recipe before they are typed: each knows where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fedpcd_cli.errors import PluginError, RecipeError


@dataclass(frozen=True)
class Origin:
    """Where a value was written.

    Attributes:
        source: The file as shown to the user, or `--set`, or a word for plain data.
        line: Line in the file, from 1; None outside files.
        override: The dotted key of a `--set`.
    """

    source: str
    line: int | None = None
    override: str | None = None

    @property
    def where(self) -> str:
        """The start of an error line: `file.yaml:12` or `--set a.b`."""
        if self.override is not None:
            return f"{self.source} {self.override}"
        return self.short

    @property
    def short(self) -> str:
        """`file.yaml:12` or `--set`."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


DEFAULT = Origin("default")


class Invalid:
    """Stands for a value that a problem was already reported for."""


INVALID = Invalid()


@dataclass(frozen=True)
class Node:
    """One value.

    Attributes:
        value: A mapping or list of nodes, a plain scalar, or INVALID.
        origin: Where the key was written (where the item was, in a list).
        key: The dotted key as the user wrote it, for messages.
    """

    value: dict[str, Node] | list[Node] | str | int | float | bool | Invalid | None
    origin: Origin
    key: str

    @property
    def children(self) -> dict[str, Node]:
        """The entries of a mapping; nothing for any other value."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        """Return the value without its origins; INVALID if any part of it is."""
        if isinstance(self.value, dict):
            entries = {key: child.plain() for key, child in self.value.items()}
            return INVALID if any(value is INVALID for value in entries.values()) else entries
        if isinstance(self.value, list):
            items = [child.plain() for child in self.value]
            return INVALID if any(value is INVALID for value in items) else items
        return self.value

    def walk(self, *path: str | int) -> Node:
        """Return the deepest node that exists along the path."""
        node = self
        for step in path:
            match node.value:
                case dict() if isinstance(step, str) and step in node.value:
                    node = node.value[step]
                case list() if isinstance(step, int) and step < len(node.value):
                    node = node.value[step]
                case _:
                    break
        return node

    def kind(self) -> str:
        """Return what the value is, in words for a message."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        if self.value is None:
            return "null"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return f"'{shorten(self.value)}'" if isinstance(self.value, str) else str(self.value)


@dataclass
class Problems:
    """Collects everything that is wrong with a recipe, so that it can be said at once."""

    found: list[tuple[Origin, str, bool]] = field(default_factory=list)

    def add(self, origin: Origin, message: str, *, plugin: bool = False) -> None:
        """Add one problem; `plugin` marks those that no change of the recipe would cure."""
        entry = (origin, shorten(message, 1200), plugin)
        if entry not in self.found:
            self.found.append(entry)

    def __bool__(self) -> bool:
        return bool(self.found)

    def lines(self) -> Iterator[str]:
        """Yield one line per problem, file by file, in the order of lines; `--set` last."""
        sources = dict.fromkeys(origin.source for origin, _, _ in self.found)
        for source in sorted(sources, key=lambda source: source == "--set"):
            here = [(origin, message) for origin, message, _ in self.found if origin.source == source]
            for origin, message in sorted(here, key=lambda entry: entry[0].line or 0):
                yield f"{origin.where}: {message}"

    def raise_if_any(self) -> None:
        """Raise what was collected.

        Raises:
            RecipeError: The recipe has problems.
            PluginError: All of them are problems of a plug-in.
        """
        if not self.found:
            return
        if all(plugin for _, _, plugin in self.found):
            raise PluginError("\n".join(self.lines()))
        raise RecipeError(self.lines())


def join_key(parent: str, key: str) -> str:
    """Return the dotted key of an entry, on one line whatever the key holds."""
    if not re.fullmatch(r"[\w<>$/+-]{1,60}", key):
        key = f"'{shorten(key)}'"
    return f"{parent}.{key}" if parent else key


def shorten(text: str, limit: int = 60) -> str:
    """Return the text as one printable line of bounded length."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def from_plain(value: Any, origin: Origin, problems: Problems, key: str = "", depth: int = 0) -> Node:
    """Return plain data (a JSON document) as nodes of one origin."""
    if depth > 40:
        problems.add(origin, f"{key or 'the document'} must be nested at most 40 deep")
        return Node(INVALID, origin, key)
    if isinstance(value, dict):
        entries = {}
        for name, item in value.items():
            if isinstance(name, str):
                entries[name] = from_plain(item, origin, problems, join_key(key, name), depth + 1)
            else:
                problems.add(origin, f"keys of {key or 'the document'} must be texts; found {shorten(repr(name))}")
        return Node(entries, origin, key)
    if isinstance(value, list | tuple):
        items = [
            from_plain(item, origin, problems, f"{key}[{index}]", depth + 1) for index, item in enumerate(value)
        ]
        return Node(items, origin, key)
    if value is None or isinstance(value, str | bool | int | float):
        return Node(value, origin, key)
    problems.add(origin, f"{key or 'the document'} must be plain data; found {shorten(repr(value))}")
    return Node(INVALID, origin, key)
