"""A recipe as flat settings, and the names by which a user asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedpcd_cli.errors import UsageError, did_you_mean

SEEDS = ("seed", "data_seed")
# Neither changes what a run computes.
WITHOUT_EFFECT = frozenset(
    {"name", "data.root", "data.download", "engine.device", "engine.threads", "evaluation.every",
     "evaluation.model", "output.root", "output.checkpoint_seconds"}
)  # fmt: skip
_NAMED = {"aggregator.name": "aggregator", "model.name": "model", "data.dataset.name": "data.dataset"}


def flatten(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return `section.key` -> value; a component's name stands under its section, its parameters below it.

    >>> flatten({"rounds": 2, "aggregator": {"name": "fedpcd", "tau": 0.1}})
    {'rounds': 2, 'aggregator': 'fedpcd', 'aggregator.tau': 0.1}
    """
    flat: dict[str, Any] = {}

    def visit(prefix: str, node: Mapping[str, Any]) -> None:
        for key, value in node.items():
            name = f"{prefix}{key}"
            if key == "params" and isinstance(value, Mapping):
                visit(prefix, value)
            elif isinstance(value, Mapping):
                visit(f"{name}.", value)
            else:
                flat[_NAMED.get(name, name)] = tuple(value) if isinstance(value, list) else value

    visit("", recipe)
    return flat


def identity(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return everything that runs of one group share: all settings but the seeds and those without effect."""
    left_out = {*SEEDS, *WITHOUT_EFFECT}
    return tuple(sorted((key, _hashable(value)) for key, value in settings.items() if key not in left_out))


def find_key(name: str, known: Iterable[str], option: str) -> str:
    """Return the setting that a user means by its full name or by its last parts (`tau`, `partition.scheme`).

    Raises:
        UsageError: No setting has that name, or several have.
    """
    keys = sorted(set(known))
    if name in keys:
        return name
    matches = [key for key in keys if key.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{option} {name} could be {', '.join(matches)}.", hint="Give the longer name.")
    short = {key.rsplit(".", 1)[-1] for key in keys}
    raise UsageError(
        f"{option} must name a setting of these runs; found '{name}'.{did_you_mean(name, [*keys, *short])[:300]}"
    )


def value_text(value: Any) -> str:
    """Return a setting's value as one writes it in a recipe.

    >>> value_text(None), value_text(True), value_text((64, 32)), value_text(0.02)
    ('null', 'true', '[64, 32]', '0.02')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(value_text(item) for item in value)}]"
    return str(value)


def short_key(key: str) -> str:
    """Return the last part of a setting's name."""
    return key.rsplit(".", 1)[-1]


def sort_value(value: Any) -> tuple[int, float, str]:
    """Return a key that sorts numbers by size and everything else by its text, null first."""
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (1, float(value), "")
    return (2, 0.0, value_text(value))


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, Mapping):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    return value
