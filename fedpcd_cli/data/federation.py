"""The federation: a dataset and who holds which part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from fedpcd_cli.data import protocol
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext
from fedpcd_cli.data.partition import Partition, PartitionScheme
from fedpcd_cli.errors import DataError


class PartitionSection(Protocol):
    """`data.partition` of a recipe."""

    @property
    def scheme(self) -> PartitionScheme: ...
    @property
    def n_clients(self) -> int: ...


class SplitSection(Protocol):
    """`data.test` of a recipe."""

    @property
    def protocol(self) -> protocol.Protocol: ...
    @property
    def fraction(self) -> float: ...


class DataSection(Protocol):
    """What this module reads of a recipe's `data`."""

    @property
    def dataset(self) -> DatasetSource: ...
    @property
    def root(self) -> Path | None: ...
    @property
    def download(self) -> bool: ...
    @property
    def partition(self) -> PartitionSection: ...
    @property
    def test(self) -> SplitSection: ...


@dataclass(frozen=True, eq=False)
class Federation:
    """A dataset dealt to N clients."""

    dataset: Dataset
    partition: Partition

    @property
    def n_clients(self) -> int:
        """N."""
        return self.partition.n_clients

    @cached_property
    def train_sizes(self) -> np.ndarray:
        """Training samples per client, int64 `[N]`."""
        return np.array([len(part) for part in self.partition.train_indices], dtype=np.int64)

    @cached_property
    def test_sizes(self) -> np.ndarray:
        """Test samples per client, int64 `[N]`."""
        return np.array([len(part) for part in self.partition.test_indices], dtype=np.int64)

    @cached_property
    def train_counts(self) -> np.ndarray:
        """Training samples per client and class, int64 `[N, K]`."""
        dataset = self.dataset
        return protocol.count_classes(dataset.targets, self.partition.train_indices, dataset.n_classes)

    @cached_property
    def test_counts(self) -> np.ndarray:
        """Test samples per client and class, int64 `[N, K]`."""
        dataset = self.dataset
        return protocol.count_classes(dataset.targets, self.partition.test_indices, dataset.n_classes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a table must know about data and partition."""
        return (*self.dataset.notes, *self.partition.notes)


def build_federation(
    data: DataSection,
    data_seed: int,
    *,
    cache_dir: Path,
    progress: Callable[[str], None] = lambda _: None,
) -> Federation:
    """Load a recipe's dataset and deal it; equal arguments and equal files give an equal federation.

    Args:
        data: The recipe's `data`.
        data_seed: Seed of generated data, dealing and splitting.
        cache_dir: Where decoded data may be kept.
        progress: Called with a sentence whenever a step starts that may take seconds.

    Raises:
        DataError: Files are missing or wrong, or the partition is impossible.
    """
    if data.dataset.needs_root and data.root is None:
        raise DataError(f"data.root is required by dataset '{data.dataset.name}'; found null.")
    dataset = data.dataset.load(
        LoadContext(
            root=data.root,
            download=data.download,
            cache_dir=cache_dir,
            data_seed=data_seed,
            progress=progress,
        )
    )
    n_clients = data.partition.n_clients
    progress(f"dealing {len(dataset.targets):,} samples to {n_clients:,} clients")
    partition = protocol.deal_federation(
        dataset,
        data.partition.scheme,
        n_clients,
        protocol=data.test.protocol,
        test_fraction=data.test.fraction,
        data_seed=data_seed,
    )
    return Federation(dataset=dataset, partition=partition)
