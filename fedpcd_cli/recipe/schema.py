"""The typed recipe: what a run is, with every default filled in.

Each section is frozen, refuses unknown keys, converts nothing in silence and holds no NaN or infinity. Reading
YAML, naming lines and collecting all problems is the business of the modules beside this one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.data.dataset import DatasetSource
from fedpcd_cli.data.partition import PartitionScheme
from fedpcd_cli.models.base import ModelSpec

MAX_INTEGER = 2**63 - 1
_NAME_PATTERN = r"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$"
_DEVICE_PATTERN = r"^(auto|cpu|mps|cuda(:[0-9]{1,3})?)$"
_THREADS = "must be a whole number of at least 1, or auto"


def _check_name(value: str) -> str:
    if not re.fullmatch(_NAME_PATTERN, value):
        raise PydanticCustomError(
            "name",
            "must be 1 to 64 small letters, digits, '-', '_' or '.', with a letter or digit at both ends",
        )
    return value


def _check_device(value: str) -> str:
    if not re.fullmatch(_DEVICE_PATTERN, value):
        raise PydanticCustomError("device", "must be auto, cpu, cuda, mps, or a numbered device such as cuda:1")
    return value


def _check_threads(value: Any) -> Any:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise PydanticCustomError("threads", _THREADS)


def _check_path(value: Any) -> Any:
    text = str(value)
    if not isinstance(value, str | Path) or not text.strip() or any(ord(char) < 32 for char in text):
        raise PydanticCustomError("path", "must be a path")
    return value


def _expand_user(path: Path) -> Path:
    return Path(os.path.expanduser(path))  # unlike Path.expanduser, it leaves an unknown user's "~name" as it is


def _make_absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _component(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"$comment": f"component:{kind}"})


Seed = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
RecipePath = Annotated[Path, BeforeValidator(_check_path), AfterValidator(_expand_user)]


class Section(BaseModel):
    """Base of all sections."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Normalize(Section):
    """Statistics subtracted and divided by, one value per channel (pixels in [0, 1]) or feature."""

    mean: tuple[float, ...] = Field(min_length=1, description="Mean per channel or feature.")
    std: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        min_length=1, description="Standard deviation per channel or feature."
    )


class Augment(Section):
    """Random changes of training images; test images are left as they are."""

    crop_padding: int = Field(
        default=0, ge=0, le=64, description="Pixels of black border for random crops; 0 means no crop."
    )
    flip: bool = Field(default=False, description="Mirror images left to right with probability 1/2.")


class PartitionSection(Section):
    """Who holds which samples."""

    scheme: Annotated[InstanceOf[PartitionScheme], _component("partition")] = Field(
        description="The scheme that deals the samples to clients."
    )
    n_clients: Positive = Field(description="N, the number of clients.")


class TestSection(Section):
    """How each client's test data comes about."""

    __test__ = False  # not a test case, whatever pytest makes of its name

    protocol: Literal["matched", "official"] = Field(
        default="matched",
        description=(
            "matched: train and test pools are merged, dealt, and split within each client. official: the test "
            "pool is dealt after each client's own mixture and the train pool is left untouched."
        ),
    )
    fraction: float = Field(
        default=1 / 6, gt=0, lt=1, description="Share of a client's samples that become test data (matched only)."
    )


class DataSection(Section):
    """The dataset and how it is dealt to clients."""

    dataset: Annotated[InstanceOf[DatasetSource], _component("dataset")] = Field(
        description="Where samples come from."
    )
    root: Annotated[RecipePath, AfterValidator(_make_absolute)] | None = Field(
        default=None, description="Folder or archive of the dataset's files; relative to the working directory."
    )
    download: bool = Field(default=False, description="Whether missing files may be fetched from the network.")
    normalize: Normalize | None = Field(
        default=None, description="Input statistics; null leaves inputs as they are."
    )
    augment: Augment | None = Field(default=None, description="Random crops and flips in training; null for none.")
    partition: PartitionSection = Field(description="Who holds which samples.")
    test: TestSection = Field(default=TestSection(), description="How each client's test data comes about.")


class LocalSection(Section):
    """Local SGD of every client."""

    epochs: Positive | None = Field(
        default=None, description="Passes over the client's data per round; 1 if steps is not given either."
    )
    steps: Positive | None = Field(
        default=None, description="Mini-batch steps per round, whatever the client's size; instead of epochs."
    )
    batch_size: Positive = Field(default=20, description="Samples per step; the last short batch is kept.")
    lr: float = Field(default=0.01, gt=0, description="Learning rate η of round 1.")
    lr_decay: float = Field(default=1.0, gt=0, le=1, description="Factor on the learning rate after every round.")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="SGD momentum, reset in every round.")
    weight_decay: float = Field(default=0.0, ge=0, description="L2 penalty of the local steps.")

    @model_validator(mode="before")
    @classmethod
    def _one_length(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        epochs, steps = values.get("epochs"), values.get("steps")
        if epochs is not None and steps is not None:
            raise PydanticCustomError(
                "both",
                "must have epochs or steps, not both; found epochs {epochs} and steps {steps}. Set one to null",
                {"epochs": epochs, "steps": steps},
            )
        return {**values, "epochs": 1} if epochs is None and steps is None else values


class ServerSection(Section):
    """The server's step and whom it asks."""

    lr: float = Field(
        default=1.0, gt=0, description="η_g as a multiple of the local rate: 1 with FedAvg's direction is FedAvg."
    )
    participation_rate: float = Field(
        default=0.1, gt=0, le=1, description="m / N, the share of clients sampled in a round."
    )


class EvaluationSection(Section):
    """When all clients are evaluated (always at round 0 and at the end)."""

    every: Positive = Field(default=10, description="Rounds between evaluations of all clients.")
    model: Literal["global", "personal", "both"] = Field(
        default="both",
        description="Models in the table; personal ones exist only for rules that train them, such as Ditto.",
    )
    unseen: Literal["initial", "global"] = Field(
        default="initial",
        description="What stands for the personal model of a client that was never sampled.",
    )


class EngineSection(Section):
    """Where and how exactly a run computes."""

    device: Annotated[
        str, AfterValidator(_check_device), Field(json_schema_extra={"pattern": _DEVICE_PATTERN})
    ] = Field(default="auto", description="auto takes cuda, then mps, then cpu.")
    threads: Annotated[
        int | Literal["auto"],
        BeforeValidator(_check_threads),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]}),
    ] = Field(default="auto", description="CPU threads; auto takes every core this process may use.")
    precision: Literal["float32", "float64"] = Field(
        default="float32", description="Floating type of model and updates; float64 is slower and for checks."
    )


class OutputSection(Section):
    """Where a run is written and how often it can be resumed from."""

    root: RecipePath = Field(
        default=Path("runs"), description="Folder of all runs; relative to the working directory."
    )
    checkpoint_seconds: float = Field(
        default=60.0, ge=0, description="Least time between checkpoints; 0 writes one after every round."
    )


class Recipe(Section):
    """One run, completely."""

    name: Annotated[str, AfterValidator(_check_name), Field(json_schema_extra={"pattern": _NAME_PATTERN})] = Field(
        description="Folder of the runs below output.root; the file's name if left out."
    )
    seed: Seed = Field(default=1, description="Seed of initial weights, cohorts and local training.")
    data_seed: Seed | None = Field(
        default=None, description="Seed of the partition and generated data; null: seed."
    )
    rounds: Positive = Field(description="T, the number of rounds.")
    data: DataSection = Field(description="The dataset and how it is dealt to clients.")
    model: Annotated[InstanceOf[ModelSpec], _component("model")] = Field(description="The network of all clients.")
    local: LocalSection = Field(default=LocalSection(), description="Local SGD of every client.")
    server: ServerSection = Field(default=ServerSection(), description="The server's step and whom it asks.")
    aggregator: Annotated[InstanceOf[Aggregator], _component("aggregator")] = Field(
        description="The rule that turns client updates into the server's direction."
    )
    evaluation: EvaluationSection = Field(
        default=EvaluationSection(), description="When all clients are evaluated."
    )
    engine: EngineSection = Field(default=EngineSection(), description="Where and how exactly a run computes.")
    output: OutputSection = Field(default=OutputSection(), description="Where a run is written.")

    @property
    def effective_data_seed(self) -> int:
        """The seed of everything about data."""
        return self.seed if self.data_seed is None else self.data_seed
