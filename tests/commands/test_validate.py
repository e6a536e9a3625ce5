"""`fedpcd validate`."""

from __future__ import annotations

import json

import pytest

from fedpcd_cli.recipe.library import shipped_recipes

GOOD = """\
rounds: 2
data: {dataset: digits, partition: {scheme: iid, n_clients: 3}}
model: linear
aggregator: fedavg
"""


@pytest.fixture
def files(fedpcd, tmp_path):
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("2", "0") + "sede: 1\n")
    (tmp_path / "worse.yaml").write_text("a: [\n")
    return tmp_path


def test_every_file_is_checked_and_every_problem_printed(fedpcd, files):
    shown = fedpcd("validate", "good.yaml", "bad.yaml", "worse.yaml", "gone.yaml", "quick-start")
    assert shown.code == 2
    lines = shown.out.splitlines()
    assert lines[0] == "ok good.yaml"
    assert lines[1] == "bad.yaml:1: rounds must be at least 1; found 0"
    assert lines[2] == "bad.yaml:5: sede is not a key of a recipe. Did you mean 'seed'?"
    assert lines[3].startswith("worse.yaml:2: isn't valid YAML: ")
    assert lines[4].startswith("gone.yaml: no such recipe.")
    assert lines[5].startswith("ok ")
    assert lines[5].endswith("quick-start.yaml")
    assert len(lines) == 6


def test_all_right_is_exit_code_0(fedpcd, files):
    shown = fedpcd("validate", "good.yaml", *shipped_recipes())
    assert shown.code == 0
    assert shown.err == ""
    assert all(line.startswith("ok ") for line in shown.out.splitlines())


def test_json(fedpcd, files):
    shown = fedpcd("validate", "good.yaml", "bad.yaml", "--format", "json")
    assert shown.code == 2
    content = json.loads(shown.out)
    assert content["schema_version"] == 1
    good, bad = content["recipes"]
    assert (good["path"], good["ok"], good["problems"]) == ("good.yaml", True, [])
    assert len(good["digest"]) == 64
    assert (bad["path"], bad["ok"], bad["digest"]) == ("bad.yaml", False, None)
    assert bad["problems"][0] == "bad.yaml:1: rounds must be at least 1; found 0"


def test_a_recipe_that_needs_a_broken_plugin_is_exit_code_4(fedpcd, files, monkeypatch):
    from fedpcd_cli.registry import Plugin, Registry, get_registry

    real = get_registry()
    broken = Plugin("median", "fedpcd-median", "1.0", error="ImportError: no such module")
    registry = Registry(plugins=[broken], components=real.components)
    monkeypatch.setattr("fedpcd_cli.recipe.load.get_registry", lambda: registry)
    (files / "median.yaml").write_text(GOOD.replace("fedavg", "median"))
    shown = fedpcd("validate", "median.yaml")
    assert shown.code == 4
    assert "Failed to load: median (fedpcd-median): ImportError: no such module" in shown.out
    assert fedpcd("validate", "good.yaml").code == 0
    assert fedpcd("validate", "median.yaml", "bad.yaml").code == 2
