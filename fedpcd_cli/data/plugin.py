"""Registers the built-in datasets and partition schemes."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_cli.api import DatasetSource, PartitionScheme, hookimpl
from fedpcd_cli.data.digits import Digits
from fedpcd_cli.data.npz import Npz
from fedpcd_cli.data.schemes.dirichlet import Dirichlet
from fedpcd_cli.data.schemes.dirichlet_class import DirichletClass
from fedpcd_cli.data.schemes.iid import IID
from fedpcd_cli.data.schemes.natural import Natural
from fedpcd_cli.data.schemes.shards import Shards
from fedpcd_cli.data.synthetic import Synthetic


@hookimpl
def fedpcd_register_datasets(register: Callable[[type[DatasetSource]], None]) -> None:
    for dataset in (Digits, Npz, Synthetic):
        register(dataset)


@hookimpl
def fedpcd_register_partitions(register: Callable[[type[PartitionScheme]], None]) -> None:
    for scheme in (IID, Dirichlet, DirichletClass, Shards, Natural):
        register(scheme)
