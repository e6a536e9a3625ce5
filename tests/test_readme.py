"""The README says what is true: tables equal the code, and its lines run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedpcd_cli.app import app
from fedpcd_cli.errors import ExitCode
from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.registry import get_registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def needs_text(component) -> str:
    """Return what a rule with default parameters asks of the clients."""
    needs = component().needs
    words = {
        "received_loss": "F_i",
        "running_loss": "L_i",
        "final_loss": "loss after",
        "full_batch_gradient": "full gradient",
    }
    asked = [text for key, text in words.items() if getattr(needs, key)]
    if needs.personal_proximal is not None:
        asked.append("personal models")
    return ", ".join(asked) or "–"


def params_text(component) -> str:
    """Return every parameter with its symbol and default."""
    parts = []
    for key, schema in component.param_schemas().items():
        symbol = f" ({schema['symbol']})" if "symbol" in schema else ""
        default = {"None": "null", "True": "true", "False": "false"}.get(str(schema["default"]), schema["default"])
        parts.append(f"`{key}`{symbol} {default}")
    return ", ".join(parts) or "–"


def aggregator_rows() -> list[str]:
    """Return the README's table of rules, one line each."""
    registry = get_registry()
    own = [n for n in registry.names("aggregator")
           if registry.components["aggregator"][n].plugin.distribution == "fedpcd-cli"]  # fmt: skip
    rows = []
    for name in sorted(own, key=lambda n: (n != "fedpcd", n != "fedavg", n)):
        rule = registry.get("aggregator", name)
        rows.append(
            f"| `{name}` | {rule.title}: {rule.paper} | {rule.idea} | {params_text(rule)} | {needs_text(rule)} "
            f"| {rule.cost} |"
        )
    return rows


def test_the_table_of_rules_is_the_registry():
    table = re.findall(r"^\| `[a-z0-9+-]+` \| .* \|$", README.split("## Aggregators")[1].split("\n## ")[0], re.M)
    assert table == aggregator_rows()


def test_the_table_of_metrics_is_the_code():
    section = README.split("## Metrics")[1].split("\n## ")[0]
    for title, definition in DEFINITIONS.values():
        assert f"| {title} | {definition} |" in section


def test_every_command_is_in_the_readme():
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    for name in names:
        assert f"`fedpcd {name}" in README, name


def test_exit_codes_are_documented():
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\b", README.split("Exit codes:")[1][:250]), code


@pytest.mark.parametrize("kind", ["dataset", "partition", "model"])
def test_every_component_is_named(kind):
    for name in get_registry().names(kind):
        assert f"`{name}`" in README, name


def test_every_recipe_that_is_named_is_shipped():
    from fedpcd_cli.recipe.library import shipped_recipes

    named = set(re.findall(r"fedpcd (?:train|data|config|validate) ([a-z0-9/-]+)", README))
    assert named
    assert named <= set(shipped_recipes())


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


if __name__ == "__main__":
    print("\n".join(aggregator_rows()))
