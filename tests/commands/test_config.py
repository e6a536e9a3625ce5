"""`fedpcd config`."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest
import yaml
from rich.console import Console

from fedpcd_cli.views.recipe import recipe_view


def test_yaml_with_each_values_origin(fedpcd):
    shown = fedpcd("config", "cifar10/fedpcd", "--set", "aggregator.tau=0.5")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    column = lines[0].index("#")
    assert "name: cifar10".ljust(column) + "# base.yaml:4" in lines
    assert "  name: fedpcd".ljust(column) + "# fedpcd.yaml:7" in lines
    assert "  tau: 0.5".ljust(column) + "# --set" in lines
    assert "  device: auto".ljust(column) + "# default" in lines
    assert "aggregator:" in lines
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in shown.out
    document = yaml.safe_load(shown.out)
    assert document["aggregator"]["tau"] == 0.5
    assert document == yaml.safe_load(
        fedpcd("config", "cifar10/fedpcd", "--set", "aggregator.tau=0.5", "--format", "yaml").out
    )


def test_the_output_is_a_recipe(fedpcd, tmp_path):
    for chosen in ("table", "yaml"):
        (tmp_path / "again.yaml").write_text(fedpcd("config", "quick-start", "--format", chosen).out)
        first, again = (
            json.loads(fedpcd("config", name, "--format", "json").out)["recipe"]
            for name in ("quick-start", "again.yaml")
        )
        assert again["digest"] == first["digest"]
        assert again["document"] == first["document"]
        assert again["path"] == "again.yaml"
        assert again["origins"]["rounds"].startswith("again.yaml:")


def test_the_schema_needs_no_recipe(fedpcd):
    schema = json.loads(fedpcd("config", "--schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    recipe = yaml.safe_load(fedpcd("config", "quick-start", "--format", "yaml").out)
    jsonschema.Draft202012Validator(schema).validate(recipe)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: RECIPE is required: a recipe file, or the name of a shipped one."),
        (["quick-strat"], "error: quick-strat: no such recipe. Did you mean 'quick-start'?"),
        (
            ["quick-start", "--set", "aggregator.tua=1"],
            "error: --set aggregator.tua: aggregator.tua is not a parameter",
        ),
    ],
)
def test_errors_go_to_stderr_with_exit_code_2(fedpcd, arguments, message):
    shown = fedpcd("config", *arguments)
    assert shown.code == 2
    assert shown.out == ""
    assert shown.err.startswith(message)


def test_colors_by_origin_on_a_terminal():
    document = {"a": 1, "b": {"c": 2, "d": 3, "e": {"f": [4]}}}
    origins = {"a": "x/top.yaml:1", "b.c": "default", "b.d": "--set", "b.e": "x/base.yaml:2"}
    view = recipe_view(document, origins, "x/top.yaml")
    assert view.plain.splitlines() == [
        "a: 1        # top.yaml:1",
        "b:",
        "  c: 2      # default",
        "  d: 3      # --set",
        "  e:        # base.yaml:2",
        "    f: [4]  # base.yaml:2",
    ]
    styles = {view.plain[span.start : span.end].strip(): span.style for span in view.spans}
    assert styles["# top.yaml:1"] == "green"
    assert styles["# base.yaml:2"] == "cyan"
    assert styles["# default"] == "dim"
    assert styles["# --set"] == "bold yellow"


def test_a_long_value_gets_its_comment_above_and_is_never_cut():
    view = recipe_view({"a": "x" * 60, "b": 1}, {"a": "--set", "b": "default"}, "r.yaml", width=50)
    console = Console(width=50)
    with console.capture() as capture:
        console.print(view, soft_wrap=True)
    assert capture.get().splitlines() == ["# --set", "a: " + "x" * 60, "b: 1  # default"]


def test_equal_file_names_are_told_apart():
    view = recipe_view({"a": 1, "b": 2}, {"a": "x/base.yaml:1", "b": "y/base.yaml:1"}, "x/base.yaml")
    assert view.plain.splitlines() == ["a: 1  # x/base.yaml:1", "b: 2  # y/base.yaml:1"]


def test_no_torch_is_loaded():
    code = (
        "import sys; from fedpcd_cli.recipe.load import load_recipe; from fedpcd_cli.recipe.library import find_recipe;"
        "load_recipe(find_recipe('quick-start'));"
        "from fedpcd_cli.recipe.json_schema import recipe_schema; recipe_schema();"
        "print(sorted({'torch', 'torchvision', 'cvxpy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
