"""The JSON Schema (2020-12) of recipe files, for editors.

It knows the components of the installed plug-ins. It can't follow `extends`, so keys are required only in files
that extend nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fedpcd_cli.components import Component
from fedpcd_cli.recipe.build import nested_section
from fedpcd_cli.recipe.schema import Recipe, Section
from fedpcd_cli.recipe.slots import AGGREGATOR, DATASET, MODEL, PARAMS, PARTITION, Slot
from fedpcd_cli.registry import Registry, get_registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PARAMS_HELP = "The component's own parameters; they may also stand beside its name."


def recipe_schema(registry: Registry | None = None) -> dict[str, Any]:
    """Return the schema of recipe files.

    Args:
        registry: Whose components it describes; those of the installed plug-ins by default.
    """
    registry = registry or get_registry()
    schema = Recipe.model_json_schema()
    definitions = schema.pop("$defs")
    _polish(Recipe, schema, definitions)
    properties = schema["properties"]
    for slot in (AGGREGATOR, MODEL):
        description = Recipe.model_fields[slot.path[-1]].description
        properties[slot.path[-1]] = {"description": description, **_shorthand(slot, registry, definitions)}
    for slot, name in ((DATASET, "DataSection"), (PARTITION, "PartitionSection")):
        _open_section(slot, definitions[name], registry, definitions)
    definitions["LocalSection"]["not"] = {
        "required": ["epochs", "steps"],
        "properties": {"epochs": {"type": "integer"}, "steps": {"type": "integer"}},
    }
    extends = {
        "type": ["string", "null"],
        "description": "A recipe below this one: a file, relative to this one, or the name of a shipped recipe.",
    }
    return {
        "$schema": DIALECT,
        "title": "fedpcd recipe",
        "description": "One run of federated learning. See 'fedpcd config RECIPE' for a recipe's resolved form.",
        "type": "object",
        "properties": {"extends": extends, **properties},
        "additionalProperties": False,
        "if": {"required": ["extends"], "properties": {"extends": {"type": "string"}}},
        "else": _required_without_extends(),
        "$defs": definitions,
    }


def _required_without_extends() -> dict[str, Any]:
    def named(slot: Slot) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {"required": [slot.name_key]}]}

    partition = {"required": [PARTITION.name_key, "n_clients"]}
    return {
        "required": ["rounds", "data", "model", "aggregator"],
        "properties": {
            "aggregator": named(AGGREGATOR),
            "model": named(MODEL),
            "data": {"required": [DATASET.name_key, "partition"], "properties": {"partition": partition}},
        },
    }


def _polish(cls: type[Section], schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Describe every property, and drop pydantic's titles and the requirements that `extends` relaxes."""
    schema.pop("title", None)
    schema.pop("required", None)
    for name, field in cls.model_fields.items():
        property_schema = schema["properties"][name]
        property_schema.pop("title", None)
        property_schema["description"] = field.description
        section = nested_section(cls, name)
        if section is not None:
            _polish(section, definitions[section.__name__], definitions)


def _shorthand(slot: Slot, registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    mapping: dict[str, Any] = {"type": "object", "properties": {}}
    _open_section(slot, mapping, registry, definitions)
    return {"anyOf": [_names(slot, registry), mapping]}


def _open_section(slot: Slot, schema: dict[str, Any], registry: Registry, definitions: dict[str, Any]) -> None:
    """Let a section hold a component's name and parameters, checked by name."""
    classes = [registration.component for _, registration in sorted(registry.components[slot.kind].items())]
    name_schema = schema["properties"].get(slot.name_key, {"description": f"Name of the {slot.kind}."})
    name_schema.pop("$comment", None)
    schema["properties"][slot.name_key] = {**name_schema, **_names(slot, registry)}
    schema["properties"][PARAMS] = {"type": ["object", "null"], "description": _PARAMS_HELP}
    schema.pop("additionalProperties", None)
    own = dict.fromkeys([*schema["properties"]], True)
    branches = []
    everything: dict[str, Any] = dict(own)
    for cls in classes:
        params = _params(slot, cls, definitions)
        group = {"properties": params, "additionalProperties": False}
        beside = {key: value for key, value in params.items() if key not in own}
        everything.update(dict.fromkeys(beside, True))
        then = {"properties": {**own, **beside, PARAMS: group}, "additionalProperties": False}
        condition = {"required": [slot.name_key], "properties": {slot.name_key: {"const": cls.name}}}
        branches.append({"if": condition, "then": then})
    unnamed = {"properties": everything, "additionalProperties": False}
    branches.append({"if": {"not": {"required": [slot.name_key]}}, "then": unnamed})
    schema["allOf"] = branches


def _names(slot: Slot, registry: Registry) -> dict[str, Any]:
    options = []
    for name, registration in sorted(registry.components[slot.kind].items()):
        summary = getattr(registration.component, "summary", "") or getattr(registration.component, "idea", "")
        options.append({"const": name, **({"description": summary} if summary else {})})
    return {"type": "string", "anyOf": options} if options else {"type": "string"}


def _params(slot: Slot, cls: type[Component], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of each parameter, definitions of nested types moved to the top."""
    try:
        schemas = cls.param_schemas()
    except Exception:  # a third party's annotations may not be expressible; the recipe reader still checks them
        return dict.fromkeys(cls.param_names(), True)
    moved: dict[str, Any] = {}
    for key, schema in schemas.items():
        prefix = f"{slot.kind}.{cls.name}.{key}."
        nested = schema.pop("$defs", {})
        schema.pop("title", None)
        moved[key] = _move_references(schema, nested, prefix)
        definitions.update(
            {prefix + name: _move_references(body, nested, prefix) for name, body in nested.items()}
        )
    return moved


def _move_references(schema: Any, names: Iterable[str], prefix: str) -> Any:
    text = json.dumps(schema)
    for name in names:
        text = text.replace(json.dumps(f"#/$defs/{name}"), json.dumps(f"#/$defs/{prefix}{name}"))
    return json.loads(text)
