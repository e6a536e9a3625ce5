"""The resolved recipe as plain data: what is written into a run, compared, and hashed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from fedpcd_cli.components import Component
from fedpcd_cli.recipe.nodes import Origin, Problems, from_plain
from fedpcd_cli.recipe.schema import Recipe, Section
from fedpcd_cli.recipe.slots import PARAMS, SLOTS, Slot, canonical
from fedpcd_cli.registry import Registry, get_registry

_NOT_CONTENT = ("name", "output")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_./]+(?:[A-Za-z0-9_./+@ -]*[A-Za-z0-9_./+@-])?")
_LOOKS_NUMERIC = re.compile(r"[-+.]?[0-9].*|\.(?i:inf|nan)")


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe as JSON-able data in canonical order, every default written out.

    Reading it back, as YAML or with :func:`recipe_from_document`, gives an equal recipe.
    """
    return _dump(recipe, ())


def _dump(section: Section, path: tuple[str, ...]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        here = (*path, name)
        if isinstance(value, Component):
            slot = SLOTS.get(path)
            if slot is not None and slot.name_key == name:
                document.update(_component(value, slot))
            else:
                document[name] = _component(value, SLOTS[here])
        elif isinstance(value, Section):
            document[name] = _dump(value, here)
        else:
            document[name] = section.model_dump(mode="json", include={name})[name]
    return document


def _component(component: Component, slot: Slot) -> dict[str, Any]:
    params = component.params()
    hidden = {key: value for key, value in params.items() if key in slot.own or key == PARAMS}
    beside = {key: value for key, value in params.items() if key not in hidden}
    return {slot.name_key: component.name, **beside, **({PARAMS: hidden} if hidden else {})}


def recipe_from_document(
    document: Mapping[str, Any], *, registry: Registry | None = None, source: str = "recipe"
) -> Recipe:
    """Return the recipe of a document, such as a run directory holds.

    Args:
        document: Plain data.
        registry: Where components are found; the installed plug-ins by default.
        source: What messages call the document.

    Raises:
        RecipeError: It has problems.
        PluginError: It needs a plug-in that is broken.
    """
    from fedpcd_cli.recipe.build import Builder

    problems = Problems()
    node = canonical(from_plain(dict(document), Origin(source), problems), problems)
    recipe = Builder(registry or get_registry(), problems).build(node, "recipe")
    problems.raise_if_any()
    if recipe is None:
        raise RuntimeError("a recipe failed without a reported problem")
    return recipe


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of a document without its name and output: equal content, equal digest."""
    content = {key: value for key, value in document.items() if key not in _NOT_CONTENT}
    text = json.dumps(_one_spelling(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _one_spelling(value: Any) -> Any:
    """Return the value with numbers that are equal made identical: 1.0 becomes 1."""
    if isinstance(value, dict):
        return {key: _one_spelling(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_one_spelling(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_yaml(document: Mapping[str, Any]) -> str:
    """Return the document as YAML that YAML 1.1 and 1.2 readers understand alike."""
    return "".join(line + "\n" for _, line in yaml_lines(document))


def yaml_lines(document: Mapping[str, Any], path: str = "", indent: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the dotted key and the text of each line: mappings in block style, lists on one line."""
    for key, value in document.items():
        here = f"{path}.{key}" if path else key
        start = f"{' ' * indent}{_scalar(key)}:"
        if isinstance(value, Mapping) and value:
            yield here, start
            yield from yaml_lines(value, here, indent + 2)
        else:
            yield here, f"{start} {_flow(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN_TEXT.fullmatch(text) and not _LOOKS_NUMERIC.match(text) and _is_text_in_yaml_1_1(text):
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', width=2**31, allow_unicode=True)
    return quoted.rstrip("\n")


def _is_text_in_yaml_1_1(text: str) -> bool:
    return bool(yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")  # type: ignore[no-untyped-call]
