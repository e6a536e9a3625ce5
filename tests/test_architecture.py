"""Imports point one way, plug-ins import the public API only, and files stay readable at a sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "fedpcd_cli"
PLUGINS = [ROOT / "plugins" / "fedpcd_vision", ROOT / "plugins" / "fedpcd_baselines"]

# A layer may import from layers of a lower number only; modules of one layer may import each other.
LAYERS = {
    "errors": 0, "components": 0, "seeds": 0, "__init__": 0,
    "metrics": 1, "rounds": 1,
    "linalg": 2, "qp": 2,
    "aggregators": 3,
    "hookspecs": 5, "api": 5,
    "pcd": 6, "models": 6, "data": 6, "testing": 6,
    "registry": 7, "recipe": 8,
    "engine": 9, "store": 9,
    "explain": 10, "report": 10,
    "views": 11, "commands": 12, "app": 13, "__main__": 14,
}  # fmt: skip
# The contracts that plug-ins subclass lie beside their implementations, below the api.
CONTRACTS = {
    "data.dataset": 4, "data.partition": 4, "data.assemble": 4, "data.cache": 4,
    "models.base": 4, "models.dropout": 4,
}  # fmt: skip
# Certificates hold and redo the program of a round.
ALLOWED = {("rounds.certificate", "qp")}


def modules(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def layer(module: str) -> int:
    return CONTRACTS.get(module, LAYERS[module.split(".")[0]])


def test_there_is_something_to_check():
    assert len(list(modules(CORE))) > 40


@pytest.mark.parametrize(("module", "path"), list(modules(CORE)), ids=lambda v: v if isinstance(v, str) else "")
def test_core_imports_point_one_way(module, path):
    known = {name for name, _ in modules(CORE)}
    for name in imported(path):
        target = name.removeprefix("fedpcd_cli.")
        if not name.startswith("fedpcd_cli.") or target not in known or target == module:
            continue
        if (module, target.split(".")[0]) in ALLOWED:
            continue
        assert layer(target) <= layer(module), f"{module} must not import {target}"


@pytest.mark.parametrize("path", list(CORE.rglob("*.py")), ids=lambda p: str(p.relative_to(CORE)))
def test_the_core_never_names_a_plugin(path):
    assert not any(name.split(".")[0] in {p.name for p in PLUGINS} for name in imported(path))


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda p: p.name)
def test_plugins_import_the_public_api_only(folder):
    paths = list(folder.rglob("*.py"))
    assert paths
    for path in paths:
        for name in imported(path):
            if name.split(".")[0] == "fedpcd_cli":
                assert name == "fedpcd_cli.api" or name.startswith("fedpcd_cli.api."), f"{path}: {name}"


@pytest.mark.parametrize(
    "path",
    [p for folder in (CORE, *PLUGINS) for p in folder.rglob("*.py")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_files_can_be_read_at_a_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 320
