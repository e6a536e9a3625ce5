"""The hooks of fedpcd: built-in and third-party plug-ins use the same ones.

A plug-in is a module named by an entry point of group `fedpcd`. It implements any of these functions, marked
with `fedpcd_cli.api.hookimpl`, and calls `register` once per class.
"""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.data.dataset import DatasetSource
from fedpcd_cli.data.partition import PartitionScheme
from fedpcd_cli.models.base import ModelSpec

PROJECT = "fedpcd"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def fedpcd_register_aggregators(register: Callable[[type[Aggregator]], None]) -> None:
    """Register aggregation rules: call `register` with each class."""


@hookspec
def fedpcd_register_datasets(register: Callable[[type[DatasetSource]], None]) -> None:
    """Register dataset sources: call `register` with each class."""


@hookspec
def fedpcd_register_partitions(register: Callable[[type[PartitionScheme]], None]) -> None:
    """Register partition schemes: call `register` with each class."""


@hookspec
def fedpcd_register_models(register: Callable[[type[ModelSpec]], None]) -> None:
    """Register models: call `register` with each class."""
