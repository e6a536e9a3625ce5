"""Shipped recipes: found, named, complete, and copied."""

from __future__ import annotations

import pytest

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.recipe.copy import copy_recipe
from fedpcd_cli.recipe.library import find_recipe, first_comment, library_root, shipped_recipes, shipped_summaries
from fedpcd_cli.recipe.load import load_recipe
from fedpcd_cli.registry import get_registry

NAMES = [
    "quick-start",
    "cifar10/base",
    "cifar10/fedavg",
    "cifar10/fedpcd",
    "cifar10/image-folder-fedavg",
    "cifar10/image-folder-fedpcd",
    "fashion-mnist/base",
    "fashion-mnist/fedavg",
    "fashion-mnist/fedpcd",
]


def test_the_first_recipes_are_there():
    assert set(NAMES) <= set(shipped_recipes())
    assert next(iter(shipped_recipes())) == "quick-start"


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_every_shipped_recipe_resolves_and_says_how_to_run_it(name):
    path = find_recipe(name)
    resolved = load_recipe(path)
    assert resolved.recipe.rounds > 0
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert lines[1].startswith(f"#   fedpcd train {name}")


@pytest.mark.parametrize("dataset", ["cifar10", "fashion-mnist"])
def test_the_papers_setting(dataset):
    fedavg = load_recipe(find_recipe(f"{dataset}/fedavg")).recipe
    fedpcd = load_recipe(find_recipe(f"{dataset}/fedpcd")).recipe
    for recipe in (fedavg, fedpcd):
        partition = recipe.data.partition
        assert (partition.n_clients, partition.scheme.name, partition.scheme.sizes) == (100, "dirichlet", "equal")
        assert partition.scheme.dirichlet_alpha == 0.01
        assert recipe.data.test.protocol == "matched"
        assert recipe.server.participation_rate == 0.05
        assert (recipe.local.epochs, recipe.local.batch_size, recipe.local.lr) == (1, 20, 0.01)
        assert (recipe.rounds, recipe.evaluation.every) == (100, 10)
        assert recipe.model.name == {"cifar10": "cnn", "fashion-mnist": "mlp"}[dataset]
    assert fedpcd.aggregator.tau == 0.02
    assert fedpcd.aggregator.history_rounds == 10
    # Two rules, one everything else.
    assert fedavg.model_copy(update={"aggregator": None}) == fedpcd.model_copy(update={"aggregator": None})


def test_image_folders_differ_in_the_dataset_only():
    plain, images = (
        load_recipe(find_recipe(f"cifar10/{name}")).document for name in ("fedpcd", "image-folder-fedpcd")
    )
    assert images["data"]["dataset"] == "image-folder"
    assert images["data"]["normalize"] == {"mean": [0.4914, 0.4822, 0.4465], "std": [0.2023, 0.1994, 0.201]}
    for key in set(plain) - {"data", "name"}:
        assert plain[key] == images[key]


def test_summaries():
    rows = {row["name"]: row for row in shipped_summaries()}
    assert rows["quick-start"]["dataset"] == "digits"
    assert rows["quick-start"]["aggregator"] == "fedpcd"
    assert rows["cifar10/image-folder-fedavg"]["dataset"] == "image-folder"
    assert rows["cifar10/image-folder-fedavg"]["aggregator"] == "fedavg"
    assert all(row["summary"] for row in rows.values())


def test_the_first_comment(write):
    assert first_comment(write("\n# One.\n# Two.\nname: x\n")) == "One."
    assert first_comment(write("name: x\n")) == ""
    assert first_comment(write(b"\xff")) == ""


def test_found_by_name_or_path(write, minimal):
    assert find_recipe("quick-start") == library_root() / "quick-start.yaml"
    path = write(minimal, "quick-start")
    assert find_recipe("quick-start") == path, "a file of that name comes first"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quick-strat", "quick-strat: no such recipe. Did you mean 'quick-start'?"),
        ("cifar10/fedpdc", "cifar10/fedpdc: no such recipe. Did you mean 'cifar10/fedpcd'?"),
        ("fedpdc.yaml", "fedpdc.yaml: no such recipe. Did you mean 'fedpcd.yaml'?"),
        (
            "fashion-mnist",
            "fashion-mnist: no such recipe. Choose one of fashion-mnist/ablation-ema, fashion-mnist/",
        ),
        ("folder", "folder: a recipe must be a file; found a folder."),
        ("", "'': no such recipe."),
        ("a\0b", "a\ufffdb: no such recipe."),
        ("x" * 5000, "xxxx"),
    ],
)
def test_not_found(write, minimal, name, message):
    write(minimal, "fedpcd.yaml")
    write(minimal, "folder/x.yaml")
    with pytest.raises(UsageError) as caught:
        find_recipe(name)
    assert str(caught.value).startswith(message)
    assert name == "folder" or "fedpcd recipes ls" in str(caught.value)


class TestCopy:
    def test_a_chain_is_copied_and_still_resolves(self, write, minimal, tmp_path):
        write("", "here.txt")
        copies = copy_recipe(find_recipe("cifar10/image-folder-fedpcd"), tmp_path / "new")
        assert [path.name for path in copies] == ["image-folder-fedpcd.yaml", "fedpcd.yaml", "base.yaml"]
        original = load_recipe(find_recipe("cifar10/image-folder-fedpcd"))
        assert load_recipe(copies[0]).digest == original.digest
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(path.name for path in copies)

    def test_under_another_name(self, tmp_path):
        copies = copy_recipe(find_recipe("cifar10/fedavg"), tmp_path / "mine.yaml")
        assert copies == [tmp_path / "mine.yaml", tmp_path / "base.yaml"]
        assert load_recipe(copies[0]).recipe.aggregator.name == "fedavg"

    def test_folders_of_the_chain_are_kept(self, write, minimal, tmp_path, registry):
        write(minimal, "a/common/base.yaml")
        source = write("extends: common/base.yaml\n", "a/r.yaml")
        copies = copy_recipe(source, tmp_path / "new")
        assert copies == [tmp_path / "new/r.yaml", tmp_path / "new/common/base.yaml"]
        assert load_recipe(copies[0], registry=registry).recipe.rounds == 4

    def test_what_a_shipped_name_extends_stays_where_it_is(self, write, tmp_path):
        source = write("extends: cifar10/fedavg\n")
        assert copy_recipe(source, tmp_path / "new") == [tmp_path / "new/r.yaml"]

    def test_nothing_is_overwritten_without_force(self, tmp_path):
        (tmp_path / "base.yaml").write_text("mine")
        with pytest.raises(UsageError, match=r"base\.yaml: already there, with other content\.\n.*--force"):
            copy_recipe(find_recipe("cifar10/fedavg"), tmp_path)
        assert (tmp_path / "base.yaml").read_text() == "mine"
        assert not (tmp_path / "fedavg.yaml").exists()
        copy_recipe(find_recipe("cifar10/fedavg"), tmp_path, force=True)
        assert load_recipe(tmp_path / "fedavg.yaml").recipe.rounds == 100
        copy_recipe(find_recipe("cifar10/fedpcd"), tmp_path)  # base.yaml is there with the same content

    def test_a_copy_can_not_take_the_place_of_what_it_extends(self, tmp_path):
        with pytest.raises(UsageError, match="can't be both the copy of fedavg"):
            copy_recipe(find_recipe("cifar10/fedavg"), tmp_path / "base.yaml")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_can_not_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="can't be written"):
            copy_recipe(find_recipe("quick-start"), tmp_path / "file" / "below")


@pytest.mark.parametrize("folder", ["fashion-mnist", "cifar10"])
def test_every_rule_and_every_ablation_has_a_recipe(folder):
    shipped = shipped_recipes()
    rules = {load_recipe(path).recipe.aggregator.name for name, path in shipped.items() if name.startswith(folder)}
    assert rules == set(get_registry().names("aggregator"))
    settings = {
        "no-history": ("history_rounds", 0),
        "tau-0": ("tau", 0.0),
        "no-normalization": ("normalization", "none"),
        "ema": ("normalization", "ema"),
        "no-primary": ("primary", "none"),
    }
    for name, (key, value) in settings.items():
        recipe = load_recipe(shipped[f"{folder}/ablation-{name}"]).recipe
        assert getattr(recipe.aggregator, key) == value
    # One split, one model, one protocol: only the rule differs.
    others = [load_recipe(shipped[f"{folder}/{name}"]).document for name in ("fedavg", "fedlf", "ablation-ema")]
    assert len({str({k: v for k, v in doc.items() if k != "aggregator"}) for doc in others}) == 1
