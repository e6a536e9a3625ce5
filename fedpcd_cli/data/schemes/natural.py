"""Natural owners: the data's own clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Natural(PartitionScheme):
    """Each owner in the data is one client; client i is the i-th owner in ascending order of its id."""

    name: ClassVar[str] = "natural"
    summary: ClassVar[str] = "one client per owner that the dataset names"

    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Give each owner its samples.

        Raises:
            DataError: The data has no owners, a sample has none, or `n_clients` is not the number of owners.
        """
        if pool.owners is None:
            raise DataError(
                "data.partition.scheme 'natural' needs a dataset with owners; this one has none.",
                hint="Use 'synthetic', or 'npz' with train_clients and test_clients, or another scheme.",
            )
        if (pool.owners < 0).any():
            raise DataError(
                f"data.partition.scheme 'natural' needs an owner for every sample; "
                f"{np.count_nonzero(pool.owners < 0)} samples have none.",
                hint="If the test samples have none, set data.test.protocol to 'official'.",
            )
        owners, positions = np.unique(pool.owners, return_inverse=True)
        if n_clients != len(owners):
            raise DataError(
                f"data.partition.n_clients must be {len(owners)}, the number of owners in the data; "
                f"found {n_clients}.",
                hint=f"Set data.partition.n_clients to {len(owners)}.",
            )
        order = np.argsort(positions, kind="stable").astype(np.int64)
        return Dealing(indices=tuple(np.split(order, np.cumsum(np.bincount(positions))[:-1])))
