"""What a recipe resolves to: defaults, extends, --set, origins and digest."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from fedpcd_cli.recipe.document import recipe_from_document, to_yaml
from fedpcd_cli.recipe.load import load_recipe


def test_every_default_is_written_out_in_order(resolve):
    resolved = resolve(name="My Recipe.yaml")
    expected = {
        "name": "my-recipe",
        "seed": 1,
        "data_seed": None,
        "rounds": 4,
        "data": {
            "dataset": "digits",
            "root": None,
            "download": False,
            "normalize": None,
            "augment": None,
            "partition": {"scheme": "iid", "n_clients": 5},
            "test": {"protocol": "matched", "fraction": 1 / 6},
        },
        "model": {"name": "cnn", "dropout": False},
        "local": {
            "epochs": 1,
            "steps": None,
            "batch_size": 20,
            "lr": 0.01,
            "lr_decay": 1.0,
            "momentum": 0.0,
            "weight_decay": 0.0,
        },
        "server": {"lr": 1.0, "participation_rate": 0.1},
        "aggregator": {"name": "fedpcd", "tau": 0.5, "history_rounds": 3, "primary": "fedavg"},
        "evaluation": {"every": 10, "model": "both", "unseen": "initial"},
        "engine": {"device": "auto", "threads": "auto", "precision": "float32"},
        "output": {"root": "runs", "checkpoint_seconds": 60.0},
    }
    assert json.dumps(resolved.document) == json.dumps(expected)
    recipe = resolved.recipe
    assert recipe.effective_data_seed == 1
    assert recipe.model.name == "cnn"
    assert recipe.aggregator.tau == 0.5
    assert recipe.data.partition.scheme.name == "iid"
    assert recipe.output.root == Path("runs")
    assert recipe.local.epochs == 1
    assert recipe.local.steps is None


def test_a_recipe_is_frozen(resolve):
    recipe = resolve().recipe
    for section in (recipe, recipe.data, recipe.local):
        with pytest.raises(ValidationError):
            section.lr = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.aggregator.tau = 1


def test_parameters_stand_beside_the_name_or_under_params(resolve, minimal):
    beside = minimal.replace("aggregator: fedpcd", "aggregator: {name: fedpcd, tau: 0.25, history_rounds: 7}")
    under = minimal.replace(
        "aggregator: fedpcd", "aggregator: {name: fedpcd, params: {tau: 0.25, history_rounds: 7}}"
    )
    mixed = minimal.replace(
        "aggregator: fedpcd", "aggregator: {name: fedpcd, tau: 0.25, params: {history_rounds: 7}}"
    )
    documents = [resolve(text).document for text in (beside, under, mixed)]
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["aggregator"]["history_rounds"] == 7


def test_a_parameter_that_clashes_with_a_section_key(resolve, minimal):
    text = minimal.replace(
        "dataset: digits", "dataset: folder\n  root: here\n  image_size: 3\n  params: {root: 9}"
    )
    resolved = resolve(text)
    assert resolved.recipe.data.root == Path("here").absolute()
    assert resolved.recipe.data.dataset.root == 9
    assert list(resolved.document["data"])[:4] == ["dataset", "image_size", "params", "root"]
    assert resolved.document["data"]["params"] == {"root": 9}
    assert resolved.origins["data.params.root"] == "r.yaml:6"
    assert resolved.origins["data.root"] == "r.yaml:4"


def test_lists_become_tuples_and_roots_are_absolute(resolve, minimal, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    text = minimal.replace("model: cnn", "model: {name: mlp, hidden: [8, 4]}").replace(
        "dataset: digits", "dataset: digits\n  root: ~/files\n  normalize: {mean: [0, 1], std: [1, 0.5]}"
    )
    resolved = resolve(text, "output.root=~/runs")
    assert resolved.recipe.model.hidden == (8, 4)
    assert resolved.recipe.data.normalize.mean == (0.0, 1.0)
    assert resolved.recipe.data.normalize.std == (1.0, 0.5)
    if sys.platform != "win32":
        assert resolved.recipe.data.root == Path("/home/ada/files")
        assert resolved.recipe.output.root == Path("/home/ada/runs")
        assert resolved.document["data"]["root"] == "/home/ada/files"
    assert resolve(text, "data.root=.").recipe.data.root == Path.cwd()


def test_epochs_or_steps(resolve, minimal):
    steps = resolve(minimal + "local: {steps: 5}\n").recipe.local
    assert (steps.epochs, steps.steps) == (None, 5)
    switched = resolve(minimal + "local: {epochs: 2}\n", "local.epochs=null", "local.steps=3").recipe.local
    assert (switched.epochs, switched.steps) == (None, 3)


class TestExtends:
    def test_mappings_merge_and_lists_replace(self, write, resolve, minimal):
        write(
            minimal.replace("model: cnn", "model: {name: mlp, hidden: [1, 2, 3]}")
            + "local: {lr: 0.5, momentum: 0.9}\n",
            "sub/base.yaml",
        )
        resolved = resolve("extends: sub/base.yaml\nlocal: {lr: 0.1}\nmodel: {hidden: [9]}\n")
        assert resolved.recipe.local.lr == 0.1
        assert resolved.recipe.local.momentum == 0.9
        assert resolved.recipe.model.hidden == (9,)
        assert resolved.recipe.name == "r"
        assert resolved.origins["local.lr"] == "r.yaml:2"
        assert resolved.origins["local.momentum"] == "sub/base.yaml:7"
        assert resolved.origins["model.hidden"] == "r.yaml:3"
        assert resolved.origins["model.name"] == "sub/base.yaml:5"
        assert resolved.origins["seed"] == "default"

    @pytest.mark.parametrize(
        "change",
        ["aggregator: fedavg", "aggregator: {name: fedavg}", "aggregator: {name: fedavg, weights: uniform}"],
    )
    def test_another_component_drops_inherited_parameters(self, write, resolve, minimal, change):
        write(minimal.replace("aggregator: fedpcd", "aggregator: {name: fedpcd, tau: 0.1}"), "base.yaml")
        aggregator = resolve(f"extends: base.yaml\n{change}\n").document["aggregator"]
        assert aggregator == {"name": "fedavg", "weights": "uniform" if "uniform" in change else "examples"}

    @pytest.mark.parametrize("change", ["aggregator: fedpcd", "aggregator: {history_rounds: 1}"])
    def test_the_same_component_keeps_them(self, write, resolve, minimal, change):
        write(minimal.replace("aggregator: fedpcd", "aggregator: {name: fedpcd, params: {tau: 0.1}}"), "base.yaml")
        assert resolve(f"extends: base.yaml\n{change}\n").recipe.aggregator.tau == 0.1

    def test_schemes_and_datasets_too_but_not_the_sections_own_keys(self, write, resolve, minimal):
        write(
            minimal.replace("scheme: iid", "scheme: dirichlet, dirichlet_alpha: 3").replace(
                "dataset: digits", "dataset: folder\n  image_size: 4\n  root: files\n  download: true"
            ),
            "base.yaml",
        )
        resolved = resolve("extends: base.yaml\ndata: {dataset: digits, partition: {scheme: iid}}\n")
        assert resolved.document["data"]["partition"] == {"scheme": "iid", "n_clients": 5}
        assert "image_size" not in resolved.document["data"]
        assert resolved.recipe.data.download is True
        assert resolved.recipe.data.root == Path("files").absolute()

    def test_a_section_can_be_set_to_null_and_back(self, write, resolve, minimal):
        write(minimal.replace("dataset: digits", "dataset: digits\n  augment: {flip: true}"), "base.yaml")
        write("extends: base.yaml\ndata: {augment: null}\n", "none.yaml")
        assert resolve("extends: none.yaml\n").recipe.data.augment is None
        again = resolve("extends: none.yaml\ndata: {augment: {crop_padding: 4}}\n").recipe.data.augment
        assert (again.crop_padding, again.flip) == (4, False)

    def test_by_the_name_of_a_shipped_recipe(self, write, monkeypatch, tmp_path, registry, minimal):
        write(minimal, "library/set/base.yaml")
        monkeypatch.setattr("fedpcd_cli.recipe.library.library_root", lambda: tmp_path / "library")
        resolved = load_recipe(write("extends: set/base\nrounds: 9\n"), registry=registry)
        assert resolved.recipe.rounds == 9
        assert resolved.origins["model.name"] == "library/set/base.yaml:5"

    def test_the_name_is_the_top_files_unless_one_is_given(self, write, resolve, minimal):
        write(minimal, "base.yaml")
        assert resolve("extends: base.yaml\n", name="top.yaml").recipe.name == "top"
        write("name: given\n" + minimal, "base.yaml")
        assert resolve("extends: base.yaml\n", name="top.yaml").recipe.name == "given"


class TestSet:
    def test_values_are_yaml(self, resolve, minimal):
        resolved = resolve(
            minimal,
            "local.lr=1e-3",
            "model={name: mlp, hidden: [3, 3]}",
            "data.normalize.mean=[0.5]",
            "data.normalize.std=[0.25]",
            "engine.threads=auto",
            "data.download=true",
            "seed=0",
            "data_seed=12",
        )
        recipe = resolved.recipe
        assert recipe.local.lr == 0.001
        assert recipe.model.hidden == (3, 3)
        assert recipe.data.normalize.std == (0.25,)
        assert recipe.data.download is True
        assert (recipe.seed, recipe.effective_data_seed) == (0, 12)
        assert resolved.origins["local.lr"] == "--set"
        assert resolved.origins["model.hidden"] == "--set"
        assert resolved.origins["data.normalize.mean"] == "--set"
        assert resolved.origins["rounds"] == "r.yaml:1"

    def test_the_last_one_wins_and_it_beats_every_file(self, resolve, minimal):
        assert resolve(minimal, "rounds=5", "rounds=6").recipe.rounds == 6

    @pytest.mark.parametrize("order", [1, -1])
    def test_another_component_and_its_parameter_in_any_order(self, resolve, minimal, order):
        text = minimal.replace("aggregator: fedpcd", "aggregator: {name: fedpcd, tau: 0.1}")
        options = ["aggregator=fedavg", "aggregator.weights=uniform"][::order]
        assert resolve(text, *options).document["aggregator"] == {"name": "fedavg", "weights": "uniform"}

    def test_a_text_may_hold_equal_signs(self, resolve, minimal):
        assert resolve(minimal, "output.root=a=b").recipe.output.root == Path("a=b")

    def test_params_may_be_spelled_out(self, resolve, minimal):
        text = minimal.replace("aggregator: fedpcd", "aggregator: {name: fedpcd, tau: 0.1}")
        assert resolve(text, "aggregator.params.tau=0.2").recipe.aggregator.tau == 0.2


class TestDigest:
    def test_it_ignores_file_name_spelling_and_output(self, resolve, minimal):
        reference = resolve(minimal).digest
        spelled = minimal.replace("aggregator: fedpcd", "aggregator: {params: {tau: 5e-1}, name: fedpcd}")
        assert (
            resolve(spelled + "server: {lr: 1}\noutput: {root: elsewhere}\n", name="other.yaml").digest
            == reference
        )
        assert resolve("name: x\n" + minimal + "local: {lr: 0.010, weight_decay: -0.0}\n").digest == reference
        assert len(reference) == 64

    @pytest.mark.parametrize(
        "change",
        ["rounds=5", "seed=2", "aggregator.tau=0.51", "model=mlp", "engine.precision=float64", "data_seed=1"],
    )
    def test_it_sees_every_other_change(self, resolve, minimal, change):
        assert resolve(minimal, change).digest != resolve(minimal).digest


def test_the_document_is_a_recipe_that_resolves_to_itself(resolve, minimal, registry):
    text = minimal.replace("dataset: digits", "dataset: folder\n  params: {root: 3}\n  augment: {flip: true}")
    resolved = resolve(text, "data.root=x", "local.steps=7", "aggregator.tau=1e-7", "engine.device=cuda:1")
    again = resolve(to_yaml(resolved.document), name="again.yaml")
    assert again.recipe == resolved.recipe
    assert again.document == resolved.document
    assert again.digest == resolved.digest
    assert recipe_from_document(resolved.document, registry=registry) == resolved.recipe
    # Run directories are read with PyYAML, which follows YAML 1.1.
    assert yaml.safe_load(to_yaml(resolved.document)) == resolved.document


def test_every_value_of_the_document_has_an_origin(resolve, minimal):
    def leaves(value, path=()):
        if isinstance(value, dict):
            for key, item in value.items():
                yield from leaves(item, (*path, key))
        else:
            yield ".".join(path)

    text = minimal.replace("dataset: digits", "dataset: folder\n  params: {root: 3}\n  augment: {flip: true}")
    resolved = resolve(text, "data.normalize={mean: [1], std: [1]}")
    assert set(resolved.origins) == set(leaves(resolved.document))
