"""Independent and identically distributed clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.data.schemes.dealing import check_request


@dataclass(frozen=True, kw_only=True)
class IID(PartitionScheme):
    """A random permutation cut into N parts whose sizes differ by at most one."""

    name: ClassVar[str] = "iid"
    summary: ClassVar[str] = "random samples, equal sizes"

    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Deal every sample to exactly one client."""
        check_request(pool, n_clients)
        parts = np.array_split(rng.permutation(len(pool.targets)), n_clients)
        return Dealing(indices=tuple(np.sort(part).astype(np.int64) for part in parts))
