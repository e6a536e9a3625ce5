"""The four places of a recipe where a plug-in's component is named.

A component's parameters stand beside its name or under `params:`. Layers are brought to one form before they are
merged: whatever is not a key of the section itself lies under `params`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedpcd_cli.recipe.nodes import INVALID, Node, Problems
from fedpcd_cli.recipe.schema import DataSection, PartitionSection

PARAMS = "params"


@dataclass(frozen=True)
class Slot:
    """One place.

    Attributes:
        kind: The registry's kind.
        path: Keys from the top to the mapping that holds the name.
        name_key: Key of the component's name.
        own: All keys of the section itself, `name_key` included.
        shorthand: Whether a text may stand for `{name: text}`.
    """

    kind: str
    path: tuple[str, ...]
    name_key: str
    own: frozenset[str]
    shorthand: bool = False


AGGREGATOR = Slot("aggregator", ("aggregator",), "name", frozenset({"name"}), shorthand=True)
MODEL = Slot("model", ("model",), "name", frozenset({"name"}), shorthand=True)
DATASET = Slot("dataset", ("data",), "dataset", frozenset(DataSection.model_fields))
PARTITION = Slot("partition", ("data", "partition"), "scheme", frozenset(PartitionSection.model_fields))
SLOTS = {slot.path: slot for slot in (AGGREGATOR, MODEL, DATASET, PARTITION)}


def canonical(node: Node, problems: Problems, path: tuple[str, ...] = ()) -> Node:
    """Return one layer with every component's parameters under `params`.

    A parameter that stands both beside the name and under `params` is a problem.
    """
    slot = SLOTS.get(path)
    if slot is not None and slot.shorthand and isinstance(node.value, str):
        return replace(node, value={slot.name_key: node})
    if not isinstance(node.value, dict):
        return node
    entries = {
        key: canonical(child, problems, (*path, key)) if _leads_to_slot((*path, key)) else child
        for key, child in node.value.items()
    }
    if slot is not None:
        entries = _gather_params(entries, slot, problems)
    return replace(node, value=entries)


def _leads_to_slot(path: tuple[str, ...]) -> bool:
    return any(slot_path[: len(path)] == path for slot_path in SLOTS)


def _gather_params(entries: dict[str, Node], slot: Slot, problems: Problems) -> dict[str, Node]:
    own = {key: child for key, child in entries.items() if key in slot.own}
    params = {key: child for key, child in entries.items() if key not in slot.own and key != PARAMS}
    group = entries.get(PARAMS)
    if group is not None and group.value is not None and group.value is not INVALID:
        if not isinstance(group.value, dict):
            problems.add(group.origin, f"{group.key} must be a mapping; found {group.kind()}")
        for key, child in group.children.items():
            if key in params:
                other = params[key]
                problems.add(
                    child.origin, f"{child.key} must be given once; also {other.key} ({other.origin.short})"
                )
            else:
                params[key] = child
    if params:
        first = next(iter(params.values()))
        own[PARAMS] = Node(params, first.origin, first.key)
    return own


def merge(base: Node, over: Node, *, drop: bool = True, path: tuple[str, ...] = ()) -> Node:
    """Return `base` with `over` on top: mappings merge key by key, anything else is replaced.

    Args:
        base: Lower layer, canonical.
        over: Upper layer, canonical.
        drop: Whether a changed component name drops the parameters inherited from the old component.
        path: Where the two stand.
    """
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    entries = dict(base.value)
    slot = SLOTS.get(path)
    if drop and slot is not None and slot.name_key in over.value and slot.name_key in entries:
        old, new = entries[slot.name_key], over.value[slot.name_key]
        if old.plain() != new.plain():
            entries.pop(PARAMS, None)
    for key, child in over.value.items():
        entries[key] = merge(entries[key], child, drop=drop, path=(*path, key)) if key in entries else child
    return replace(over, value=entries)
