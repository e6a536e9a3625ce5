"""`--set a.b=value`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fedpcd_cli.recipe.nodes import Node, Origin, Problems, shorten
from fedpcd_cli.recipe.read import MAX_DEPTH, read_text
from fedpcd_cli.recipe.slots import canonical, merge

_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def override_layer(overrides: Sequence[str], problems: Problems) -> Node | None:
    """Return all `--set` options as one layer, later ones on top; None if there is none.

    Values are YAML by the same rules as in a file. All options form one layer: their order matters only where two
    set the same key.
    """
    layer: Node | None = None
    for override in overrides:
        node = _parse(override, problems)
        if node is not None:
            node = canonical(node, problems)
            layer = node if layer is None else merge(layer, node, drop=False)
    return layer


def _parse(override: str, problems: Problems) -> Node | None:
    key, equals, text = override.partition("=")
    key = key.strip()
    origin = Origin("--set", override=shorten(key) or "''")
    if not equals:
        problems.add(origin, "must be KEY=VALUE, as in --set aggregator.tau=0.1; found no '='")
        return None
    steps = key.split(".")
    if len(steps) > MAX_DEPTH or not all(_STEP.fullmatch(step) for step in steps):
        problems.add(origin, f"must be a dotted key such as aggregator.tau; found '{shorten(key)}'")
        return None
    if steps[0] == "extends":
        problems.add(origin, "extends can't be set; write it in a recipe file")
        return None
    if not text.strip():
        problems.add(origin, "must have a value after '='; write null for none")
        return None
    value = read_text(text, origin, problems, key)
    if value is None:
        return None
    if value.value is None and text.strip().startswith("#"):
        problems.add(
            origin, f"must have a value after '='; found the comment '{shorten(text)}'. Quote it for YAML"
        )
        return None
    node = value
    for depth in range(len(steps), 0, -1):
        node = Node({steps[depth - 1]: node}, origin, ".".join(steps[: depth - 1]))
    return node
