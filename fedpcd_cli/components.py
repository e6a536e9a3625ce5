"""Components: what a recipe chooses by name.

Aggregators, dataset sources, partition schemes and models are frozen dataclasses. Their fields are exactly the
recipe's parameters, stored as given, so that repr, equality, sweeps and the record of a run come for free.
Plain annotations are enough; `Annotated[float, Param("...", ge=0)]` adds the range, the documentation and the
paper's symbol, all of which recipes, error messages and the JSON schema use.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError

from fedpcd_cli.errors import UsageError, did_you_mean


def Param(  # noqa: N802 - reads as a type in annotations
    description: str,
    *,
    symbol: str | None = None,
    grid: Sequence[Any] = (),
    **constraints: Any,
) -> Any:
    """Document and bound one parameter, inside `Annotated[...]`.

    Args:
        description: One sentence for `--help`, the README and the schema.
        symbol: The symbol that the source paper uses.
        grid: The values that papers search over.
        **constraints: pydantic's bounds: `ge`, `gt`, `le`, `lt`, `min_length`, `max_length`.
    """
    extra: dict[str, Any] = {}
    if symbol is not None:
        extra["symbol"] = symbol
    if grid:
        extra["grid"] = list(grid)
    return Field(description=description, json_schema_extra=extra or None, **constraints)


@dataclass(frozen=True)
class Problem:
    """One wrong parameter: `message` continues a sentence that starts with the key."""

    key: str
    message: str


class ParameterError(UsageError):
    """One or more parameters of a component that are unknown or out of range."""

    def __init__(self, component: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{component}.{p.key} {p.message}" for p in problems))


_known_adapters: dict[type[Any], dict[str, TypeAdapter[Any]]] = {}


def _adapters(cls: type[Any]) -> dict[str, TypeAdapter[Any]]:
    """Return one validator per field; built once per class, since building takes milliseconds."""
    if cls not in _known_adapters:
        _known_adapters[cls] = _build_adapters(cls)
    return _known_adapters[cls]


def _build_adapters(cls: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    config = ConfigDict(strict=True, allow_inf_nan=False)
    adapters: dict[str, TypeAdapter[Any]] = {}
    for field in dataclasses.fields(cls):
        try:
            adapters[field.name] = TypeAdapter(hints[field.name], config=config)
        except PydanticUserError:  # a nested model carries its own config
            adapters[field.name] = TypeAdapter(hints[field.name])
    return adapters


def _first_message(error: ValidationError, found: Any) -> str:
    return describe_validation(error.errors(include_url=False)[0], found)


def describe_validation(error: Mapping[str, Any], found: Any) -> str:
    """Turn one pydantic error into `must be ...; found ...`."""
    kind = error["type"]
    context = error.get("ctx", {})
    wanted = {
        "greater_than_equal": "must be at least {ge}",
        "greater_than": "must be greater than {gt}",
        "less_than_equal": "must be at most {le}",
        "less_than": "must be less than {lt}",
        "literal_error": "must be one of {expected}",
        "int_type": "must be a whole number",
        "int_from_float": "must be a whole number",
        "float_type": "must be a number",
        "bool_type": "must be true or false",
        "string_type": "must be a text",
        "finite_number": "must be a finite number",
        "path_type": "must be a path",
        "tuple_type": "must be a list",
        "list_type": "must be a list",
        "missing": "is required",
    }.get(kind)
    bounds = {key: f"{value:g}" if isinstance(value, float) else value for key, value in context.items()}
    text = wanted.format(**bounds) if wanted else error["msg"][0].lower() + error["msg"][1:]
    return f"{text}; found {_show(found)}"


def _show(value: Any) -> str:
    if isinstance(value, float) or value is None or isinstance(value, bool | int):
        return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))
    shown = str(value) if isinstance(value, str) else repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return f"'{shown}'" if isinstance(value, str) else shown


@dataclass(frozen=True, kw_only=True)
class Component:
    """Base of everything that plug-ins register.

    Raises:
        ParameterError: On construction, if a field violates its annotation or :meth:`cross_check` objects.
    """

    kind: ClassVar[str] = "component"
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        for key, adapter in _adapters(type(self)).items():
            value = getattr(self, key)
            try:
                adapter.validate_python(value)
            except ValidationError as error:
                problems.append(Problem(key, _first_message(error, value)))
        problems = problems or list(self.cross_check())
        if problems:
            raise ParameterError(self.name, problems)

    def cross_check(self) -> Iterator[Problem]:
        """Yield problems between fields; called only when each field is right by itself."""
        yield from ()

    @classmethod
    def param_names(cls) -> tuple[str, ...]:
        """Return the names of the recipe's parameters, in order."""
        return tuple(field.name for field in dataclasses.fields(cls))

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Build the component from a recipe's mapping, with all problems at once.

        Values are read as JSON would be: lists become tuples, texts become paths, `1` becomes `1.0` where a
        number is wanted; a text never becomes a number.

        Raises:
            ParameterError: Unknown keys, missing keys, values out of range.
        """
        problems: list[Problem] = []
        values: dict[str, Any] = {}
        adapters = _adapters(cls)
        for key, value in params.items():
            if key not in adapters:
                problems.append(
                    Problem(key, f"is not a parameter of {cls.kind} '{cls.name}'.{did_you_mean(key, adapters)}")
                )
                continue
            try:
                values[key] = adapters[key].validate_json(json.dumps(value))
            except ValidationError as error:
                problems.append(Problem(key, _first_message(error, value)))
            except (TypeError, ValueError):
                problems.append(Problem(key, f"must be a plain YAML value; found {_show(value)}"))
        for field in dataclasses.fields(cls):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if required and field.name not in params:
                problems.append(Problem(field.name, f"is required by {cls.kind} '{cls.name}'"))
        if problems:
            raise ParameterError(cls.name, problems)
        return cls(**values)

    def params(self) -> dict[str, Any]:
        """Return all parameters as plain JSON values, defaults included, in order."""
        adapters = _adapters(type(self))
        return {key: adapters[key].dump_python(getattr(self, key), mode="json") for key in adapters}

    @classmethod
    def param_schemas(cls) -> dict[str, dict[str, Any]]:
        """Return the JSON schema of each parameter (description, bounds, default, `symbol`, `grid`)."""
        schemas: dict[str, dict[str, Any]] = {}
        for field in dataclasses.fields(cls):
            schema = _adapters(cls)[field.name].json_schema()
            if field.default is not dataclasses.MISSING:
                schema["default"] = _adapters(cls)[field.name].dump_python(field.default, mode="json")
            schemas[field.name] = schema
        return schemas
