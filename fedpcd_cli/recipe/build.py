"""From nodes to the typed recipe, with every problem found on the way."""

from __future__ import annotations

import difflib
import json
import typing
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined

from fedpcd_cli.components import Component, ParameterError, describe_validation
from fedpcd_cli.errors import FedPCDError, PluginError, did_you_mean
from fedpcd_cli.recipe.nodes import DEFAULT, INVALID, Node, Problems, join_key, shorten
from fedpcd_cli.recipe.schema import Recipe, Section
from fedpcd_cli.recipe.slots import AGGREGATOR, MODEL, PARAMS, SLOTS, Slot
from fedpcd_cli.registry import Registry


class _Failed:
    """Stands for a value that could not be built; the problem is reported."""


FAILED = _Failed()


@cache
def field_adapter(cls: type[Section], name: str) -> TypeAdapter[Any]:
    """Return the validator of one plain field of a section."""
    annotation: Any = cls.model_fields[name].rebuild_annotation()
    config = {key: value for key, value in cls.model_config.items() if key in ("strict", "allow_inf_nan")}
    return TypeAdapter(annotation, config=typing.cast(Any, config))


@cache
def nested_section(cls: type[Section], name: str) -> type[Section] | None:
    """Return the section class of a field, or None if the field is a value."""
    annotation = cls.model_fields[name].annotation
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate
    return None


def _is_optional(cls: type[Section], name: str) -> bool:
    return type(None) in typing.get_args(cls.model_fields[name].annotation)


class Builder:
    """Builds one recipe from its merged, canonical nodes.

    Args:
        registry: Where components are found.
        problems: Gets everything that is wrong.
        complete: Whether all layers could be read; if not, missing keys are no problem of their own.

    Attributes:
        origins: Dotted key of the document -> where its value was written.
    """

    def __init__(self, registry: Registry, problems: Problems, *, complete: bool = True) -> None:
        self._registry = registry
        self._problems = problems
        self._complete = complete
        self._file = ""
        self.origins: dict[str, str] = {}

    def build(self, root: Node, default_name: str) -> Recipe | None:
        """Return the recipe, or None if it has problems."""
        self._file = root.origin.source
        if "name" not in root.children and isinstance(root.value, dict):
            root = Node({"name": Node(default_name, DEFAULT, "name"), **root.value}, root.origin, root.key)
        built = self._section(Recipe, root, ())
        return built if isinstance(built, Recipe) and not self._problems else None

    def _section(self, cls: type[Section], node: Node, path: tuple[str, ...]) -> Section | _Failed:
        if not isinstance(node.value, dict):
            if node.value is not INVALID:
                self._problems.add(node.origin, f"{node.key} must be a mapping of keys; found {node.kind()}")
            return FAILED
        slot = SLOTS.get(path)
        self._report_unknown(cls, node, slot)
        values: dict[str, Any] = {}
        for name in cls.model_fields:
            value = self._field(cls, name, node, path, slot)
            if value is not PydanticUndefined:
                values[name] = value
        if any(value is FAILED for value in values.values()):
            return FAILED
        try:
            return cls(**values)
        except ValidationError as error:
            for detail in error.errors(include_url=False):  # fields are right by themselves
                keys = (*detail["loc"], *detail.get("ctx", ()))
                self._problems.add(self._latest(node, keys).origin, f"{node.key} {detail['msg']}")
            return FAILED

    def _field(self, cls: type[Section], name: str, node: Node, path: tuple[str, ...], slot: Slot | None) -> Any:
        """Return a field's value, FAILED, or PydanticUndefined where the default applies."""
        child = node.children.get(name)
        here = (*path, name)
        dotted = ".".join(here)
        if slot is not None and name == slot.name_key:
            return self._component(slot, node, ".".join(path))
        for chosen in (AGGREGATOR, MODEL):
            if here == chosen.path:
                return self._shorthand(chosen, child, node)
        section = nested_section(cls, name)
        field = cls.model_fields[name]
        if section is not None and child is None and not field.is_required() and field.get_default() is not None:
            child = Node({}, DEFAULT, dotted)
        if section is not None and child is not None and (child.value is not None or not _is_optional(cls, name)):
            return self._section(section, child, here)
        if child is None:
            if field.is_required():
                return self._missing(node, name)
            self.origins[dotted] = DEFAULT.short
            return PydanticUndefined
        self.origins[dotted] = child.origin.short
        return self._value(field_adapter(cls, name), child)

    def _value(self, adapter: TypeAdapter[Any], node: Node) -> Any:
        plain = node.plain()
        if plain is INVALID:
            return FAILED
        try:
            return adapter.validate_json(json.dumps(plain))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                culprit = node.walk(*detail["loc"])
                found = culprit.plain()
                shown = shorten(found, 200) if isinstance(found, str) else found
                message = describe_validation(detail, shown)
                if not isinstance(found, str | int | float) and found is not None:
                    message = f"{message.partition('; found ')[0]}; found {culprit.kind()}"
                self._problems.add(culprit.origin, f"{culprit.key} {message}")
            return FAILED

    def _missing(self, node: Node, name: str, extra: str = "") -> _Failed:
        if self._complete:
            self._problems.add(node.origin, f"{join_key(node.key, name)} is required{extra}")
        return FAILED

    def _latest(self, node: Node, keys: tuple[str | int, ...]) -> Node:
        """Return which of a section's entries was written last; any entry if no keys are given."""
        entries = [child for key, child in node.children.items() if key in keys or not keys]

        def order(entry: Node) -> tuple[bool, bool, int]:
            origin = entry.origin
            return origin.override is not None, origin.source == self._file, origin.line or 0

        return max(entries, key=order, default=node)

    def _report_unknown(self, cls: type[Section], node: Node, slot: Slot | None) -> None:
        for key, child in node.children.items():
            if key in cls.model_fields or (slot is not None and key == PARAMS):
                continue
            section = f"'{node.key}'" if node.key else "a recipe"
            self._problems.add(
                child.origin, f"{child.key} is not a key of {section}.{did_you_mean(key, cls.model_fields)}"
            )

    def _shorthand(self, slot: Slot, child: Node | None, parent: Node) -> Component | _Failed:
        """Build a component whose section holds nothing but the component: aggregator, model."""
        key = slot.path[-1]
        if child is None:
            return self._missing(parent, key, f": the name of {_article(slot.kind)}.{self._known(slot)}")
        if not isinstance(child.value, dict):
            if child.value is not INVALID:
                wanted = f"must be {_article(slot.kind)}'s name, or a mapping with name"
                self._problems.add(child.origin, f"{child.key} {wanted}; found {child.kind()}")
            return FAILED
        return self._component(slot, child, key)

    def _component(self, slot: Slot, section: Node, dotted: str) -> Component | _Failed:
        name = section.children.get(slot.name_key)
        if name is None:
            return self._missing(
                section, slot.name_key, f": the name of {_article(slot.kind)}.{self._known(slot)}"
            )
        self.origins[f"{dotted}.{slot.name_key}"] = name.origin.short
        if not isinstance(name.value, str):
            if name.value is not INVALID:
                found = name.kind()
                self._problems.add(
                    name.origin, f"{name.key} must be the name of {_article(slot.kind)}; found {found}"
                )
            return FAILED
        try:
            cls: type[Component] = self._registry.get(slot.kind, name.value)
        except FedPCDError as error:
            text = error.message[0].lower() + error.message[1:] if error.message else ""
            message = f"{name.key}: {shorten(text, 400)}" + (f" {error.hint}" if error.hint else "")
            self._problems.add(name.origin, message, plugin=isinstance(error, PluginError))
            self._report_near_misses(slot, section)
            return FAILED
        return self._with_params(slot, cls, section, name, dotted)

    def _report_near_misses(self, slot: Slot, section: Node) -> None:
        """Report what looks like a misspelt key of the section where the component's own keys are unknown."""
        group = section.children.get(PARAMS)
        for key, node in group.children.items() if group is not None else ():
            near = difflib.get_close_matches(key, slot.own, n=1, cutoff=0.8)
            if near:
                self._problems.add(
                    node.origin, f"{node.key} is not a key of '{section.key}'. Did you mean '{near[0]}'?"
                )

    def _known(self, slot: Slot) -> str:
        names = self._registry.names(slot.kind)
        return f" Known: {', '.join(names)}." if names else ""

    def _with_params(
        self, slot: Slot, cls: type[Component], section: Node, name: Node, dotted: str
    ) -> Component | _Failed:
        group = section.children.get(PARAMS)
        given = dict(group.children) if group is not None else {}
        known = cls.param_names()
        failed = False
        for key in [key for key in given if key not in known]:
            node = given.pop(key)
            near = did_you_mean(key, {*known, *slot.own})
            message = f"{node.key} is not a parameter of {slot.kind} '{cls.name}'.{near}"
            self._problems.add(node.origin, message)
            failed = True
        invalid = {key for key, node in given.items() if node.plain() is INVALID}
        for key in known:
            place = f"{dotted}.{PARAMS}.{key}" if key in slot.own or key == PARAMS else f"{dotted}.{key}"
            self.origins[place] = (given[key].origin if key in given else DEFAULT).short
        try:
            component = cls.from_params({key: node.plain() for key, node in given.items() if key not in invalid})
        except ParameterError as error:
            for problem in error.problems:
                if problem.key not in invalid:
                    node = given.get(problem.key, name)
                    label = node.key if problem.key in given else join_key(section.key, problem.key)
                    self._problems.add(node.origin, f"{label} {problem.message}")
            return FAILED
        except Exception as error:  # anything a third party's class may raise
            text = f"{slot.kind} '{cls.name}' failed to check its parameters: {type(error).__name__}: {error}"
            self._problems.add(name.origin, f"{name.key}: {shorten(text, 300)}", plugin=True)
            return FAILED
        return FAILED if failed or invalid else component


def _article(kind: str) -> str:
    return {"aggregator": "an aggregator", "partition": "a partition scheme"}.get(kind, f"a {kind}")
