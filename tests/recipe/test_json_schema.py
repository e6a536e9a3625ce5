"""The JSON schema agrees with the reader on shipped recipes and on obvious mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.recipe.json_schema import recipe_schema
from fedpcd_cli.recipe.library import shipped_recipes
from fedpcd_cli.recipe.schema import Recipe, Section
from fedpcd_cli.registry import Plugin, Registry


class Inner(BaseModel):
    power: int


@dataclass(frozen=True, kw_only=True)
class Nested(Aggregator):
    name = "nested"
    inner: Inner = field(default_factory=lambda: Inner(power=2))


@pytest.fixture(scope="module")
def validator(registry):
    schema = recipe_schema(registry)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_shipped_recipes_are_valid():
    schema = recipe_schema()
    validator = jsonschema.Draft202012Validator(schema)
    shipped = shipped_recipes()
    assert len(shipped) >= 9
    for path in shipped.values():
        validator.validate(yaml.safe_load(path.read_text()))


def test_a_resolved_recipe_is_valid(resolve, validator, minimal):
    validator.validate(resolve(minimal).document)
    validator.validate(resolve(minimal, "data.dataset=folder", "data.params.root=3").document)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"aggregator": "fedavg"},
        {"aggregator": {"name": "fedpcd", "params": {"tau": 0.1}, "history_rounds": 2}},
        {"model": {"name": "mlp", "hidden": [3]}},
        {"engine": {"threads": 2, "device": "cuda:1"}},
        {"local": {"epochs": None, "steps": 3}},
        {"data": {"dataset": "folder", "image_size": 3, "partition": {"scheme": "dirichlet", "n_clients": 2}}},
    ],
)
def test_valid_variants(validator, minimal, change):
    validator.validate({**yaml.safe_load(minimal), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"sede": 1},
        {"rounds": 0},
        {"rounds": "4"},
        {"seed": -1},
        {"aggregator": "fedpdc"},
        {"aggregator": {"tau": 0.1}},
        {"aggregator": {"name": "fedpcd", "tau": 2}},
        {"aggregator": {"name": "fedpcd", "params": {"tau": 2}}},
        {"aggregator": {"name": "fedpcd", "tua": 0.2}},
        {"aggregator": {"name": "fedavg", "tau": 0.2}},
        {"aggregator": {"name": "fedpcd", "params": {"tua": 2}}},
        {"model": {"name": "mlp", "hidden": [0]}},
        {"local": {"lr": 0}},
        {"local": {"epochs": 1, "steps": 1}},
        {"local": {"stps": 1}},
        {"engine": {"device": "gpu"}},
        {"engine": {"threads": 0}},
        {"engine": {"precision": "half"}},
        {"data": {"dataset": "digits", "partition": {"scheme": "iid"}}},
        {"data": {"dataset": "digits"}},
        {"data": {"dataset": "digits", "image_size": 3, "partition": {"scheme": "iid", "n_clients": 3}}},
        {"data": {"dataset": "digits", "partition": {"scheme": "iid", "n_clients": 3, "dirichlet_alpha": 1}}},
        {"data": {"dataset": "digits", "partition": {"scheme": "zipf", "n_clients": 3}}},
    ],
)
def test_obvious_mistakes(validator, minimal, change):
    assert not validator.is_valid({**yaml.safe_load(minimal), **change})


def test_a_recipe_that_extends_another_may_leave_keys_out(validator):
    validator.validate({"extends": "base.yaml", "aggregator": {"tau": 0.1}})
    assert not validator.is_valid({"extends": None, "aggregator": {"tau": 0.1}})
    assert not validator.is_valid({"extends": "base.yaml", "aggregator": {"tua": 0.1}})


def test_everything_is_described(registry):
    schema = recipe_schema(registry)

    def sections(cls):
        yield cls
        for info in cls.model_fields.values():
            for candidate in (info.annotation, *getattr(info.annotation, "__args__", ())):
                if isinstance(candidate, type) and issubclass(candidate, Section):
                    yield from sections(candidate)

    for cls in set(sections(Recipe)):
        body = schema if cls is Recipe else schema["$defs"][cls.__name__]
        assert body["description"]
        for name in cls.model_fields:
            assert body["properties"][name]["description"], (cls, name)
    text = str(schema)
    assert "Share of progress." in text
    assert "component:" not in text


def test_nested_types_of_components_are_kept_apart(minimal, registry):
    other = Registry(components={**registry.components, "aggregator": {}})
    other.add("aggregator", Nested, Plugin("x", "x", "1"))
    validator = jsonschema.Draft202012Validator(recipe_schema(other))
    recipe = yaml.safe_load(minimal)
    validator.validate({**recipe, "aggregator": {"name": "nested", "inner": {"power": 3}}})
    assert not validator.is_valid({**recipe, "aggregator": {"name": "nested", "inner": {"power": "x"}}})
