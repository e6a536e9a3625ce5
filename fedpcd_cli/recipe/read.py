"""Reads YAML into nodes that know their lines.

The scalars are those of YAML 1.2's core schema: `1e-3` is a number, `yes`, `on` and `2024-01-01` are texts. The
document is never constructed by PyYAML: its node graph is converted here, with bounds on size, depth and number
of values, so that no file can hang, run code or blow up.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import yaml

from fedpcd_cli.recipe.nodes import INVALID, Invalid, Node, Origin, Problems, join_key, shorten
from fedpcd_cli.recipe.schema import MAX_INTEGER

MAX_BYTES = 128 * 1024
MAX_DEPTH = 40
MAX_VALUES = 20_000
_TAG = "tag:yaml.org,2002:"


class _TooDeepError(Exception):
    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


class _TooManyValuesError(Exception):
    pass


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own registry

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeepError(self.peek_event().start_mark.line + 1)  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)


def read_file(path: Path, shown: str, problems: Problems) -> Node | None:
    """Return the mapping that a recipe file holds, or None if there is none, with the reason in `problems`."""
    origin = Origin(shown)
    if os.path.isdir(path):
        problems.add(origin, "must be a file; found a folder")
        return None
    if not os.path.isfile(path):
        problems.add(origin, "no such file" if not os.path.exists(path) else "must be a regular file")
        return None
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        problems.add(origin, f"can't be read ({error.strerror})")
        return None
    if len(content) > MAX_BYTES:
        problems.add(origin, f"must be at most {MAX_BYTES // 1024} KiB; found a larger file")
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x}"
        problems.add(Origin(shown, line), f"must be UTF-8 text; found {found}. Save the file as UTF-8")
        return None
    node = read_text(text, origin, problems)
    if node is None:
        return None
    if node.value is None:
        problems.add(origin, "must be a mapping of keys; found nothing in it")
        return None
    if not isinstance(node.value, dict):
        problems.add(node.origin, f"a recipe must be a mapping of keys; found {node.kind()}")
        return None
    return node


def read_text(text: str, origin: Origin, problems: Problems, key: str = "") -> Node | None:
    """Return one YAML document as a node, or None if it isn't YAML, with the reason in `problems`.

    Args:
        text: The document. An empty one is null.
        origin: Where the text stands; values get lines unless it is a `--set`.
        problems: Gets everything that is wrong.
        key: Dotted key of the document's value.
    """

    def at(line: int) -> Origin:
        return origin if origin.override is not None else Origin(origin.source, line)

    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return Node(None, at(1), key)
        return _Converter(origin, problems).convert(root, at(root.start_mark.line + 1), key)
    except _TooDeepError as error:
        problems.add(at(error.line), f"values must be nested at most {MAX_DEPTH} deep")
    except _TooManyValuesError:
        problems.add(origin, f"must hold at most {MAX_VALUES:,} values, repeated aliases counted; found more")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(at(mark.line + 1 if mark else 1), _syntax_message(error))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = f"U+{ord(error.character) if isinstance(error.character, str) else error.character:04X}"
        problems.add(at(line), f"must be printable text; found the character {code}")
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # PyYAML passes on bad \U escapes as ValueError
        problems.add(at(1), f"isn't valid YAML: {shorten(str(error), 100)}")
    return None


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    problem = shorten(error.problem or error.context or "syntax error", 120)
    if r"'\t'" in problem:
        return "tabs can't be used here; found a tab. Indent with spaces"
    if "expected a single document" in (error.context or ""):
        return "must be a single YAML document; found a second one ('---')"
    if "found undefined alias" in problem:
        return f"isn't valid YAML: {problem}"
    context = f" ({shorten(error.context, 60)})" if error.context and error.context != error.problem else ""
    return f"isn't valid YAML: {problem}{context}"


class _Converter:
    """Turns PyYAML's node graph into our tree; aliases are copied, within bounds."""

    def __init__(self, origin: Origin, problems: Problems) -> None:
        self._origin = origin
        self._problems = problems
        self._left = MAX_VALUES

    def _at(self, node: yaml.Node) -> Origin:
        if self._origin.override is not None:
            return self._origin
        return Origin(self._origin.source, node.start_mark.line + 1)

    def convert(self, node: yaml.Node, origin: Origin, key: str, depth: int = 0) -> Node:
        self._left -= 1
        if self._left < 0:
            raise _TooManyValuesError
        if depth > MAX_DEPTH:  # an alias inside its own anchor
            raise _TooDeepError(node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return Node(self._entries(node, key, depth), origin, key)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            items = [
                self.convert(item, self._at(item), f"{key}[{index}]", depth + 1)
                for index, item in enumerate(node.value)
            ]
            return Node(items, origin, key)
        if isinstance(node, yaml.ScalarNode):
            return Node(self._scalar(node, origin, key), origin, key)
        self._problems.add(origin, f"{key or 'the recipe'} must be plain YAML; found the tag {shorten(node.tag)}")
        return Node(INVALID, origin, key)

    def _entries(self, node: yaml.MappingNode, key: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            origin = self._at(key_node)
            within = f"keys of {key}" if key else "keys"
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _TAG + "str":
                found = shorten(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
                self._problems.add(origin, f"{within} must be texts; found {found or 'nothing'}")
                continue
            name = key_node.value
            dotted = join_key(key, name)
            if name == "<<":
                self._problems.add(origin, f"{dotted}: merge keys aren't supported. Use extends")
                continue
            child = self.convert(value_node, origin, dotted, depth + 1)
            if name in entries:
                self._problems.add(
                    origin, f"{dotted} must be given once; found again, first on line {lines[name]}"
                )
                continue
            entries[name] = child
            lines[name] = key_node.start_mark.line + 1
        return entries

    def _scalar(
        self, node: yaml.ScalarNode, origin: Origin, key: str
    ) -> str | int | float | bool | Invalid | None:
        text: str = node.value
        subject = key or "the value"
        match node.tag.removeprefix(_TAG):
            case "str":
                bad = next((char for char in text if not _is_allowed(char)), None)
                if bad is None:
                    return text
                self._problems.add(
                    origin, f"{subject} must be printable text; found the character U+{ord(bad):04X}"
                )
            case "null" if text.lower() in ("", "~", "null"):
                return None
            case "bool" if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case "int" if re.fullmatch(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", text):
                base = {"0o": 8, "0x": 16}.get(text[:2], 10)
                digits = text[2:] if base != 10 else text
                # Long digit strings are refused before Python spends time (or an error) on them.
                if len(digits.lstrip("+-0")) <= 25 and abs(number := int(digits, base)) <= MAX_INTEGER:
                    return number
                self._problems.add(origin, f"{subject} must be a number below 2^63; found {shorten(text, 30)}")
            case "float" if re.fullmatch(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[-+]?\.(?i:inf|nan)", text):
                return self._float(text, origin, subject)
            case _:
                tag = node.tag.replace(_TAG, "!!")
                found = f"{shorten(tag)} {shorten(text, 30)}".rstrip()
                self._problems.add(origin, f"{subject} must be plain YAML; found {found}")
        return INVALID

    def _float(self, text: str, origin: Origin, subject: str) -> float | Invalid:
        try:
            number = (
                float(text.replace(".inf", "inf").replace(".nan", "nan"))
                if text[-1] in "0123456789."
                else math.nan
            )
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        self._problems.add(origin, f"{subject} must be a finite number; found {shorten(text, 30)}")
        return INVALID


def _is_allowed(char: str) -> bool:
    code = ord(char)
    return (code >= 32 or char in "\n\t") and code != 127 and not 0xD800 <= code <= 0xDFFF
