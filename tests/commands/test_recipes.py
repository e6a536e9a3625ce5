"""`fedpcd recipes`."""

from __future__ import annotations

import json

from fedpcd_cli.recipe.library import shipped_recipes


def test_ls(fedpcd):
    shown = fedpcd("recipes", "ls")
    assert (shown.code, shown.err) == (0, "")
    for name in shipped_recipes():
        assert name in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    rows = json.loads(fedpcd("recipes", "ls", "--format", "json").out)["recipes"]
    assert [row["name"] for row in rows] == list(shipped_recipes())
    first = rows[0]
    assert first["name"] == "quick-start"
    assert first["dataset"] == "digits"
    assert first["aggregator"] == "fedpcd"
    assert first["summary"].startswith("FedPCD on handwritten digits")


def test_cp(fedpcd, tmp_path):
    shown = fedpcd("recipes", "cp", "cifar10/fedpcd")
    assert shown.code == 0
    assert shown.out.splitlines() == ["fedpcd.yaml", "base.yaml"]
    assert fedpcd("validate", "fedpcd.yaml").code == 0
    (tmp_path / "fedpcd.yaml").write_text("mine")
    again = fedpcd("recipes", "cp", "cifar10/fedpcd")
    assert again.code == 2
    assert again.err == "error: fedpcd.yaml: already there, with other content.\n  Overwrite with --force.\n"
    assert (tmp_path / "fedpcd.yaml").read_text() == "mine"
    assert fedpcd("recipes", "cp", "cifar10/fedpcd", "--force").code == 0
    assert fedpcd("validate", "fedpcd.yaml").code == 0
    named = fedpcd("recipes", "cp", "quick-start", "new/mine.yaml")
    assert named.out.splitlines() == ["new/mine.yaml"]
    assert (tmp_path / "new" / "mine.yaml").is_file()


def test_cp_of_nothing(fedpcd):
    shown = fedpcd("recipes", "cp", "quickstart")
    assert shown.code == 2
    assert "quickstart: no such recipe. Did you mean 'quick-start'?" in shown.err
