"""A registry of small components, and recipes written into an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.components import Component, Param, Problem
from fedpcd_cli.data.dataset import DatasetSource
from fedpcd_cli.data.partition import PartitionScheme
from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.recipe.load import ResolvedRecipe, load_recipe
from fedpcd_cli.registry import Plugin, Registry


@dataclass(frozen=True, kw_only=True)
class TinyPCD(Aggregator):
    name = "fedpcd"
    tau: Annotated[float, Param("Share of progress.", symbol="τ", ge=0, le=1)] = 0.5
    history_rounds: Annotated[int, Param("Rounds kept.", ge=0)] = 3
    primary: Annotated[Literal["fedavg", "none"], Param("What is followed.")] = "fedavg"


@dataclass(frozen=True, kw_only=True)
class TinyAvg(Aggregator):
    name = "fedavg"
    weights: Annotated[Literal["examples", "uniform"], Param("How clients count.")] = "examples"


@dataclass(frozen=True, kw_only=True)
class TinyNeedy(Aggregator):
    """One parameter has no default; two others must agree."""

    name = "needy"
    strength: Annotated[float, Param("Must be given.", gt=0)]
    low: int = 0
    high: int = 1

    def cross_check(self):
        if self.low > self.high:
            yield Problem("low", f"must be at most high; found {self.low}")


@dataclass(frozen=True, kw_only=True)
class TinyDigits(DatasetSource):
    name = "digits"


@dataclass(frozen=True, kw_only=True)
class TinyFolder(DatasetSource):
    """Its `root` clashes with the section's own key and can only stand under params."""

    name = "folder"
    image_size: Annotated[int | None, Param("Pixels.", ge=1)] = None
    root: Annotated[int, Param("A clash of names.")] = 7


@dataclass(frozen=True, kw_only=True)
class TinyIID(PartitionScheme):
    name = "iid"


@dataclass(frozen=True, kw_only=True)
class TinyDirichlet(PartitionScheme):
    name = "dirichlet"
    dirichlet_alpha: Annotated[float, Param("Concentration.", gt=0)] = 0.1


@dataclass(frozen=True, kw_only=True)
class TinyCNN(ModelSpec):
    name = "cnn"
    dropout: Annotated[bool, Param("Whether to drop.")] = False


@dataclass(frozen=True, kw_only=True)
class TinyMLP(ModelSpec):
    name = "mlp"
    hidden: Annotated[tuple[Annotated[int, Param("Width.", ge=1)], ...], Param("Widths.")] = (20,)


MINIMAL = """\
rounds: 4
data:
  dataset: digits
  partition: {scheme: iid, n_clients: 5}
model: cnn
aggregator: fedpcd
"""


@pytest.fixture(scope="session")
def registry() -> Registry:
    registry = Registry()
    plugin = Plugin("tiny", "tiny-plugin", "1.0")
    components: dict[str, list[type[Component]]] = {
        "aggregator": [TinyPCD, TinyAvg, TinyNeedy],
        "dataset": [TinyDigits, TinyFolder],
        "partition": [TinyIID, TinyDirichlet],
        "model": [TinyCNN, TinyMLP],
    }
    for kind, classes in components.items():
        for cls in classes:
            registry.add(kind, cls, plugin)
    return registry


@pytest.fixture
def minimal() -> str:
    return MINIMAL


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a file below an empty working directory and return its relative path."""
    monkeypatch.chdir(tmp_path)

    def write(content: str | bytes, name: str = "r.yaml") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def resolve(write: Any, registry: Registry) -> Callable[..., ResolvedRecipe]:
    """Resolve a recipe given as text, with `--set` options."""

    def resolve(content: str = MINIMAL, *overrides: str, name: str = "r.yaml") -> ResolvedRecipe:
        return load_recipe(write(content, name), overrides, registry=registry)

    return resolve


@pytest.fixture
def problems(resolve: Any) -> Callable[..., list[str]]:
    """Return the lines of the error that a recipe raises."""

    def problems(content: str | bytes = MINIMAL, *overrides: str, name: str = "r.yaml") -> list[str]:
        with pytest.raises(FedPCDError) as caught:
            resolve(content, *overrides, name=name)
        return str(caught.value).split("\n")

    return problems
