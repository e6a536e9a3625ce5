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

    named = set(re.findall(r"fedpcd (?:train|data|config|validate) ([a-z0-9][a-z0-9/-]*)(?![\w/$-])", README))
    assert named
    assert named <= set(shipped_recipes())


def test_the_lines_for_your_own_data_work(fedpcd, tmp_path):
    import zipfile

    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "mine.npz",
        train_inputs=rng.standard_normal((200, 6)).astype(np.float32),
        train_targets=rng.integers(0, 3, 200),
        test_inputs=rng.standard_normal((60, 6)).astype(np.float32),
        test_targets=rng.integers(0, 3, 60),
    )
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for split, count in (("train", 50), ("test", 10)):
            for name in ("cat", "dog"):
                for i in range(count):
                    image = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
                    image.save(tmp_path / "one.png")
                    archive.write(tmp_path / "one.png", f"{split}/{name}/{i}.png")
    section = README.split("## Your own data")[1].split("```sh")[1].split("```")[0]
    lines = [line.split() for line in section.strip().splitlines()]
    assert len(lines) == 2
    for line in lines:
        done = fedpcd(*line[1:], "--set", "rounds=1", "--set", "engine.threads=1")
        assert done.code == 0, done.err
        assert "Jain" in done.out


def test_the_rule_of_your_own_works(tmp_path, monkeypatch):
    import torch

    from fedpcd_cli.registry import Plugin, Registry, load_module
    from fedpcd_cli.testing.cohorts import make_cohort

    source = README.split("```python")[1].split("```")[0]
    (tmp_path / "median_of_the_readme.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    plugin = Plugin(name="median", distribution="readme", version="1")
    load_module(registry, plugin, lambda: __import__("median_of_the_readme"))
    assert plugin.error is None
    rule = registry.get("aggregator", "median")(shrink=0.5)
    aggregation, _ = rule.aggregate(make_cohort(torch.tensor([[1.0, 5.0], [2.0, 6.0], [9.0, 1.0]])), {})
    assert aggregation.direction.tolist() == [1.0, 2.5]


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


if __name__ == "__main__":
    print("\n".join(aggregator_rows()))
