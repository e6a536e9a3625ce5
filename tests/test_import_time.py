"""Help and completion load nothing heavy."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "torchvision", "cvxpy", "sklearn", "matplotlib", "scipy")


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def test_the_app_loads_none_of_them():
    assert loaded_after("import fedpcd_cli.app") == set()


def test_the_plugin_api_loads_none_of_them():
    assert loaded_after("import fedpcd_cli.api") == set()


def test_discovering_all_components_loads_none_of_them():
    assert loaded_after("from fedpcd_cli.registry import get_registry; get_registry()") == set()
