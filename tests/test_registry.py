"""Discovery of plug-ins, without installing any."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.errors import PluginError, UsageError
from fedpcd_cli.registry import Plugin, Registry, get_registry, load_module

SMALLEST = '''
from dataclasses import dataclass
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, State, hookimpl

@dataclass(frozen=True, kw_only=True)
class CoordinateMedian(Aggregator):
    """Coordinate-wise median."""
    name = "median"
    shrink: float = 1.0

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        median = cohort.pseudo_gradients.median(dim=0).values
        return Aggregation(direction=self.shrink * median), state

@hookimpl
def fedpcd_register_aggregators(register) -> None:
    register(CoordinateMedian)
'''


def install(folder, name, source):
    """Write a distribution as an installer would."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[fedpcd]\n{name} = {name}\n")


def fedpcd(folder, *arguments):
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from fedpcd_cli.app import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_every_built_in_plugin_loads():
    assert [plugin.error for plugin in get_registry().plugins] == [None] * len(get_registry().plugins)
    assert {"fedavg", "fedpcd"} <= set(get_registry().names("aggregator"))
    assert set(get_registry().names("partition")) == {"iid", "dirichlet", "dirichlet-class", "shards", "natural"}
    assert set(get_registry().names("model")) == {"linear", "mlp", "cnn", "lenet5", "resnet20", "resnet18"}
    assert set(get_registry().names("dataset")) == {
        "digits", "fashion-mnist", "cifar10", "cifar100", "image-folder", "npz", "synthetic",
    }  # fmt: skip


def test_a_third_party_rule_trains_by_one_word_in_the_recipe(tmp_path):
    install(tmp_path, "fedpcd_median_example", SMALLEST)
    done = fedpcd(
        tmp_path, "train", "quick-start", "--set", "aggregator=median", "--set", "rounds=1", "--set",
        f"output.root={tmp_path / 'runs'}", "--format", "csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ",median,global,1.0," in done.stdout


def test_a_broken_plugin_stops_nobody_and_says_why(tmp_path):
    install(tmp_path, "fedpcd_broken_example", "raise RuntimeError('no licence')")
    listed = fedpcd(tmp_path, "plugins")
    assert listed.returncode == 0
    assert "fedpcd" in listed.stdout
    text = " ".join(listed.stdout.split())
    assert "fedpcd_broken_example (fedpcd_broken_example 1.0) failed: RuntimeError: no licence" in text
    asked = fedpcd(tmp_path, "config", "quick-start", "--set", "aggregator=broken")
    assert asked.returncode in (2, 4)
    assert "no licence" in asked.stderr


def test_a_duplicate_name_is_an_error_that_names_both(tmp_path):
    for name in ("fedpcd_one_example", "fedpcd_two_example"):
        install(tmp_path, name, SMALLEST)
    done = fedpcd(tmp_path, "config", "quick-start", "--set", "aggregator=median")
    assert done.returncode in (2, 4)
    assert "registered twice, by fedpcd_one_example and fedpcd_two_example" in done.stderr


def test_unknown_names_get_the_nearest_one():
    with pytest.raises(UsageError, match=r"Unknown aggregator 'fedpdc'\. Did you mean 'fedpcd'\?") as caught:
        get_registry().get("aggregator", "fedpdc")
    assert "Run 'fedpcd plugins'" in str(caught.value)


def test_only_subclasses_with_a_name_are_taken():
    @dataclass(frozen=True, kw_only=True)
    class Nameless(Aggregator):
        def aggregate(self, cohort, state):
            raise NotImplementedError

    registry = Registry()
    plugin = Plugin(name="x", distribution="d", version="1")
    with pytest.raises(PluginError, match="must be a subclass of Aggregator"):
        registry.add("aggregator", int, plugin)
    with pytest.raises(PluginError, match="Nameless has no name"):
        registry.add("aggregator", Nameless, plugin)


def test_an_unknown_hook_is_reported():
    class Misspelled:
        from fedpcd_cli.api import hookimpl

        @staticmethod
        @hookimpl
        def fedpcd_register_agregators(register):
            """Never called."""

    registry = Registry()
    plugin = Plugin(name="x", distribution="d", version="1")
    load_module(registry, plugin, Misspelled)
    assert plugin.error is not None
    assert "fedpcd_register_agregators" in plugin.error
