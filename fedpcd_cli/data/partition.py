"""The contract of partition schemes, and the partition that results."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcd_cli.components import Component


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """The samples that a scheme deals out.

    Attributes:
        targets: Class of each sample, int64 `[n]`.
        n_classes: K.
        owners: Natural owner of each sample, int64 `[n]`, or None.
    """

    targets: np.ndarray
    n_classes: int
    owners: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Dealing:
    """Who holds which sample of a pool.

    Attributes:
        indices: Per client, sorted int64 positions in the pool. Every position stands in exactly one client.
        notes: What the scheme had to repair or round, one sentence each, for the record.
    """

    indices: tuple[np.ndarray, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartitionScheme(Component):
    """Base of everything that can be named in `data.partition.scheme`. Fields are the recipe's parameters.

    Class attributes:
        summary: One line for listings, which names the variant exactly.
    """

    kind: ClassVar[str] = "partition"
    summary: ClassVar[str] = ""

    @abstractmethod
    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Deal every sample of the pool to exactly one of N clients, in bounded time.

        Raises:
            DataError: The request is impossible, for example more clients than samples.
        """


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """The finished federation: each client's training and test samples.

    Attributes:
        scheme: Name of the scheme.
        protocol: `matched` (train and test pools merged, then split within each client) or `official` (train
            pool dealt by the scheme, test pool dealt after each client's own mixture).
        train_indices: Per client, sorted int64 indices into the dataset's samples.
        test_indices: The same for test samples. Disjoint from all training indices.
        notes: Repairs and remarks, one sentence each.
        digest: SHA-256 (hex) over protocol and all indices.
    """

    scheme: str
    protocol: str
    train_indices: tuple[np.ndarray, ...]
    test_indices: tuple[np.ndarray, ...]
    notes: tuple[str, ...]
    digest: str

    @property
    def n_clients(self) -> int:
        """N, clients without samples included."""
        return len(self.train_indices)
