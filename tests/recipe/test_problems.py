"""Every error of a recipe, by its text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.errors import ExitCode, PluginError, RecipeError
from fedpcd_cli.recipe.document import recipe_from_document
from fedpcd_cli.recipe.load import load_recipe
from fedpcd_cli.registry import Plugin, Registry


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("sede: 3", "r.yaml:8: sede is not a key of a recipe. Did you mean 'seed'?"),
        ("local: {learning_rate: 3, lrr: 1}", "r.yaml:8: local.lrr is not a key of 'local'. Did you mean 'lr'?"),
        ("server: {lr: 0}", "r.yaml:8: server.lr must be greater than 0; found 0"),
        ("server: {lr: fast}", "r.yaml:8: server.lr must be a number; found 'fast'"),
        ("server: {lr: '1'}", "r.yaml:8: server.lr must be a number; found '1'"),
        ("server: {lr: [1]}", "r.yaml:8: server.lr must be a number; found a list"),
        ("server: {participation_rate: 1.5}", "server.participation_rate must be at most 1; found 1.5"),
        ("seed: -1", "r.yaml:8: seed must be at least 0; found -1"),
        ("seed: 1.5", "r.yaml:8: seed must be a whole number; found 1.5"),
        ("seed: true", "r.yaml:8: seed must be a whole number; found true"),
        ("seed: null", "r.yaml:8: seed must be a whole number; found null"),
        ("local: 5", "r.yaml:8: local must be a mapping of keys; found 5"),
        ("local:", "r.yaml:8: local must be a mapping of keys; found null"),
        ("evaluation: [1]", "r.yaml:8: evaluation must be a mapping of keys; found a list"),
        (
            "local:\n  steps: 3\n  epochs: 2",
            "r.yaml:10: local must have epochs or steps, not both; found epochs 2 and steps 3. Set one to null",
        ),
        ("local: {momentum: 1}", "r.yaml:8: local.momentum must be less than 1; found 1"),
        ("local: {lr: .inf}", "r.yaml:8: local.lr must be a finite number; found .inf"),
        ("local: {batch_size: 10000000000000000000}", "local.batch_size must be a number below 2^63"),
        ("engine: {threads: 0}", "engine.threads must be a whole number of at least 1, or auto; found 0"),
        ("engine: {threads: many}", "engine.threads must be a whole number of at least 1, or auto; found 'many'"),
        (
            "engine: {device: gpu}",
            "must be auto, cpu, cuda, mps, or a numbered device such as cuda:1; found 'gpu'",
        ),
        ("engine: {precision: half}", "engine.precision must be one of 'float32' or 'float64'; found 'half'"),
        ("output: {root: ''}", "r.yaml:8: output.root must be a path; found ''"),
        ("output: {root: 3}", "r.yaml:8: output.root must be a path; found 3"),
        (
            "name: Über uns",
            "name must be 1 to 64 small letters, digits, '-', '_' or '.', with a letter or digit at",
        ),
        ("name: ../x", "with a letter or digit at both ends; found '../x'"),
        ('seed: "a\\nb\\u202e"', "r.yaml:8: seed must be a whole number; found 'a b\ufffd'"),
        ("extends: [a, b]", "extends must be a recipe file or the name of a shipped recipe; found a list"),
        ("extends: ''", "extends must be a recipe file or the name of a shipped recipe; found ''"),
        ('"a\\nb": 1', "r.yaml:8: 'a b' is not a key of a recipe"),
    ],
)
def test_wrong_lines(problems, minimal, lines, message):
    shown = [line for line in problems(minimal + "\n" + lines + "\n") if message in line]
    assert len(shown) == 1
    assert shown[0].startswith("r.yaml:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fedpcd", "{name: fedpcd, tau: 1.5}", "r.yaml:6: aggregator.tau must be at most 1; found 1.5"),
        (
            "fedpcd",
            "{name: fedpcd, params: {tau: -1}}",
            "r.yaml:6: aggregator.params.tau must be at least 0; found -1",
        ),
        (
            "fedpcd",
            "{name: fedpcd, primary: mean}",
            "r.yaml:6: aggregator.primary must be one of 'fedavg' or 'none'; found 'mean'",
        ),
        (
            "fedpcd",
            "{name: fedpcd, histroy_rounds: 3}",
            "r.yaml:6: aggregator.histroy_rounds is not a parameter of aggregator 'fedpcd'. "
            "Did you mean 'history_rounds'?",
        ),
        (
            "fedpcd",
            "{name: fedavg, tau: 0.1}",
            "r.yaml:6: aggregator.tau is not a parameter of aggregator 'fedavg'. Known: name, weights.",
        ),
        ("fedpcd", "{name: needy}", "r.yaml:6: aggregator.strength is required by aggregator 'needy'"),
        (
            "fedpcd",
            "{name: needy, strength: 1, low: 5}",
            "r.yaml:6: aggregator.low must be at most high; found 5",
        ),
        (
            "fedpcd",
            "{name: needy, strength: .nan}",
            "r.yaml:6: aggregator.strength must be a finite number; found .nan",
        ),
        (
            "fedpcd",
            "{name: fedpcd, tau: 0.1, params: {tau: 0.2}}",
            "r.yaml:6: aggregator.params.tau must be given once; also aggregator.tau (r.yaml:6)",
        ),
        ("fedpcd", "{name: fedpcd, params: 3}", "r.yaml:6: aggregator.params must be a mapping; found 3"),
        ("fedpcd", "{name: 3}", "r.yaml:6: aggregator.name must be the name of an aggregator; found 3"),
        (
            "fedpcd",
            "{tau: 0.1}",
            "r.yaml:6: aggregator.name is required: the name of an aggregator. Known: fedavg, fedpcd, needy.",
        ),
        (
            "fedpcd",
            "[fedpcd]",
            "r.yaml:6: aggregator must be an aggregator's name, or a mapping with name; found a list",
        ),
        (
            "fedpcd",
            "fedpdc",
            "r.yaml:6: aggregator: unknown aggregator 'fedpdc'. Did you mean 'fedpcd'? "
            "Run 'fedpcd plugins' to list all.",
        ),
        (
            "cnn",
            "cnnn",
            "r.yaml:5: model: unknown model 'cnnn'. Did you mean 'cnn'? Run 'fedpcd plugins' to list all.",
        ),
        (
            "dataset: digits",
            "dataset: digit",
            "r.yaml:3: data.dataset: unknown dataset 'digit'. Did you mean 'digits'? Run 'fedpcd plugins' to list all.",
        ),
        (
            "scheme: iid",
            "scheme: zipf",
            "r.yaml:4: data.partition.scheme: unknown partition 'zipf'. Known: dirichlet, iid. "
            "Run 'fedpcd plugins' to list all.",
        ),
        (
            "dataset: digits",
            "dataset: digits\n  donwload: true",
            "r.yaml:4: data.donwload is not a parameter of dataset 'digits'. Did you mean 'download'?",
        ),
        ("n_clients: 5", "n_clients: 0", "r.yaml:4: data.partition.n_clients must be at least 1; found 0"),
        (", n_clients: 5", "", "r.yaml:4: data.partition.n_clients is required"),
        (
            "dataset: digits",
            "dataset: digits\n  normalize: {mean: [0, x], std: [1, 0]}",
            "r.yaml:4: data.normalize.mean[1] must be a number; found 'x'",
        ),
        (
            "dataset: digits",
            "dataset: digits\n  normalize:\n    mean: [0]\n    std:\n    - 1\n    - 0",
            "r.yaml:8: data.normalize.std[1] must be greater than 0; found 0",
        ),
        (
            "dataset: digits",
            "dataset: digits\n  normalize: {mean: [1]}",
            "r.yaml:4: data.normalize.std is required",
        ),
        (
            "dataset: digits",
            "dataset: digits\n  test: {fraction: 1}",
            "data.test.fraction must be less than 1; found 1",
        ),
        (
            "dataset: digits",
            "dataset: digits\n  test: {protocol: both}",
            "data.test.protocol must be one of 'matched' or 'official'; found 'both'",
        ),
        (
            "  dataset: digits\n",
            "",
            "r.yaml:2: data.dataset is required: the name of a dataset. Known: digits, folder.",
        ),
        ("rounds: 4\n", "", "r.yaml: rounds is required"),
        ("rounds: 4", "rounds: 1e3", "r.yaml:1: rounds must be a whole number; found 1000.0"),
        ("model: cnn\n", "", "r.yaml: model is required: the name of a model. Known: cnn, mlp."),
    ],
)
def test_wrong_components_and_missing_keys(problems, minimal, old, new, message):
    lines = problems(minimal.replace(old, new))
    assert [line for line in lines if line.endswith(message)]


def test_all_problems_at_once_in_the_order_of_lines(problems, write, minimal):
    write("local: {lr: -1}\nevaluation: {every: 0}\nmodell: x\n", "base.yaml")
    text = "extends: base.yaml\n" + minimal.replace("cnn", "cn").replace(
        "fedpcd", "{name: fedpcd, tau: 2, tua: 3}"
    )
    assert problems(text, "seed=x", "foo.bar=1") == [
        "base.yaml:1: local.lr must be greater than 0; found -1",
        "base.yaml:2: evaluation.every must be at least 1; found 0",
        "base.yaml:3: modell is not a key of a recipe. Did you mean 'model'?",
        "r.yaml:6: model: unknown model 'cn'. Did you mean 'cnn'? Run 'fedpcd plugins' to list all.",
        "r.yaml:7: aggregator.tua is not a parameter of aggregator 'fedpcd'. Did you mean 'tau'?",
        "r.yaml:7: aggregator.tau must be at most 1; found 2",
        "--set foo.bar: foo is not a key of a recipe. Known: aggregator, data, data_seed, engine, evaluation, local, "
        "model, name, output, rounds, seed, server.",
        "--set seed: seed must be a whole number; found 'x'",
    ]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "aggregator.tau",
            "--set aggregator.tau: must be KEY=VALUE, as in --set aggregator.tau=0.1; found no '='",
        ),
        ("", "--set '': must be KEY=VALUE, as in --set aggregator.tau=0.1; found no '='"),
        ("aggregator.tau=", "--set aggregator.tau: must have a value after '='; write null for none"),
        ("a..b=1", "--set a..b: must be a dotted key such as aggregator.tau; found 'a..b'"),
        ("=1", "--set '': must be a dotted key such as aggregator.tau; found ''"),
        (".a=1", "--set .a: must be a dotted key such as aggregator.tau; found '.a'"),
        ("local.0=1", "--set local.0: must be a dotted key such as aggregator.tau; found 'local.0'"),
        ("extends=x.yaml", "--set extends: extends can't be set; write it in a recipe file"),
        ("seed=#3", "--set seed: must have a value after '='; found the comment '#3'. Quote it for YAML"),
        (
            "seed=[1",
            "--set seed: isn't valid YAML: expected ',' or ']', but got '<stream end>' (while parsing a flow",
        ),
        ("seed=.nan", "--set seed: seed must be a finite number; found .nan"),
        ("seed=yes", "--set seed: seed must be a whole number; found 'yes'"),
        ("local.stps=3", "--set local.stps: local.stps is not a key of 'local'. Did you mean 'steps'?"),
        (
            "aggregator.tua=3",
            "--set aggregator.tua: aggregator.tua is not a parameter of aggregator 'fedpcd'. Did you",
        ),
        ("aggregator.tau=3", "--set aggregator.tau: aggregator.tau must be at most 1; found 3"),
        ("rounds.x=3", "--set rounds.x: rounds must be a whole number; found a mapping"),
        (
            "data.dataset=digts",
            "--set data.dataset: data.dataset: unknown dataset 'digts'. Did you mean 'digits'?",
        ),
    ],
)
def test_wrong_options(problems, minimal, option, message):
    lines = problems(minimal, option)
    assert [line for line in lines if line.startswith(message)]


def test_epochs_in_the_file_and_steps_by_option(problems, minimal):
    assert problems(minimal + "local: {epochs: 2}\n", "local.steps=5") == [
        "--set local.steps: local must have epochs or steps, not both; found epochs 2 and steps 5. Set one to null"
    ]


def test_a_clash_is_shown_in_the_file_that_makes_it(problems, minimal, write):
    """Not in the file below, even though its keys stand on later lines."""
    write(minimal + "local: {lr: 1, epochs: 2}\n", "base.yaml")
    (line,) = problems("extends: base.yaml\nlocal:\n  steps: 3\n  lr: 2\n")
    assert line.startswith("r.yaml:3: local must have epochs or steps, not both")


def test_an_unknown_dataset_hides_no_misspelt_section(problems, minimal):
    lines = problems(minimal.replace("digits", "nothing").replace("  partition:", "  partitoin:"))
    assert "r.yaml:4: data.partitoin is not a key of 'data'. Did you mean 'partition'?" in lines


class TestExtends:
    def test_a_cycle_prints_its_chain(self, problems, write):
        write("extends: b.yaml\n", "a.yaml")
        write("\n\nextends: r.yaml\n", "b.yaml")
        assert problems("extends: a.yaml\n") == [
            "b.yaml:3: extends must not form a cycle; found r.yaml -> a.yaml -> b.yaml -> r.yaml"
        ]
        assert problems("extends: r.yaml\n") == ["r.yaml:1: extends must not form a cycle; found r.yaml -> r.yaml"]

    def test_the_chain_is_bounded(self, problems, write):
        for index in range(40):
            write(f"extends: f{index + 1}.yaml\n", f"f{index}.yaml")
        assert problems("extends: f0.yaml\n") == ["f14.yaml:1: extends must be at most 16 files deep; found more"]

    def test_a_suggestion_is_relative_to_the_file(self, problems, write, minimal):
        write(minimal, "sub/base.yaml")
        (line,) = problems("extends: bsae.yaml\n", name="sub/r.yaml")
        assert line.endswith("Did you mean 'base.yaml'?")
        (line,) = problems("extends: .\n", name="sub/r.yaml")
        assert "found '.', which is a folder" in line

    def test_a_missing_parent_is_named_and_the_rest_still_checked(self, problems, write):
        write("rounds: 1\n", "sub/base.yaml")
        assert problems("extends: sub/bsae.yaml\nlocal: {lr: 0}\nlocl: 3\n") == [
            "r.yaml:1: extends must be a recipe file; found 'sub/bsae.yaml', which doesn't exist. "
            "Did you mean 'sub/base.yaml'?",
            "r.yaml:2: local.lr must be greater than 0; found 0",
            "r.yaml:3: locl is not a key of a recipe. Did you mean 'local'?",
        ]

    def test_a_broken_parent_is_named_with_its_line(self, problems, write):
        write("rounds: 1\n\tx: 3\n", "base.yaml")
        lines = problems("extends: base.yaml\n")
        assert lines == ["base.yaml:2: tabs can't be used here; found a tab. Indent with spaces"]


class TestPlugins:
    def test_a_broken_plugin_ends_with_its_exit_code(self, write, minimal):
        registry = Registry()
        registry.plugins.append(Plugin("median", "fedpcd-median", "1.0", error="ImportError: no torch"))
        with pytest.raises(PluginError) as caught:
            load_recipe(write(minimal), registry=registry)
        assert caught.value.exit_code == ExitCode.PLUGIN
        assert "Failed to load: median (fedpcd-median): ImportError: no torch" in str(caught.value)

    def test_a_recipe_that_is_wrong_too_ends_with_that(self, write, minimal, registry):
        with pytest.raises(RecipeError) as caught:
            load_recipe(write(minimal.replace("4", "0")), registry=registry)
        assert caught.value.exit_code == ExitCode.USAGE

    def test_a_component_that_raises_anything_is_named(self, write, minimal):
        @dataclass(frozen=True, kw_only=True)
        class Crashing(Aggregator):
            name = "fedpcd"

            def cross_check(self):
                raise ZeroDivisionError("oh no")

        from fedpcd_cli.registry import get_registry

        real = get_registry()
        registry = Registry(components={**real.components, "aggregator": {}})
        registry.add("aggregator", Crashing, Plugin("x", "x-dist", "1"))
        with pytest.raises(
            PluginError, match="aggregator 'fedpcd' failed to check its parameters: ZeroDivisionError"
        ):
            load_recipe(write(minimal), registry=registry)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "run: rounds must be at least 1; found 0"),
        ({"extends": "x.yaml"}, "run: extends is not a key of a recipe"),
        ({"rounds": float("nan")}, "run: rounds must be a whole number; found nan"),
        ({"rounds": {1, 2}}, "run: rounds must be plain data; found {1, 2}"),
        ({3: 4}, "run: keys of the document must be texts; found 3"),
        ({"local": {"lr": float("inf")}}, "run: local.lr must be a finite number; found inf"),
        ({"rounds": 10**400}, "run: rounds must be "),
    ],
)
def test_documents_are_checked_like_files(resolve, registry, change, message):
    document = {**resolve().document, **change}
    with pytest.raises(RecipeError) as caught:
        recipe_from_document(document, registry=registry, source="run")
    assert any(line.startswith(message) for line in caught.value.problems)
