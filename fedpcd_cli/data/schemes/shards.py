"""Shards: exactly k classes per client."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedpcd_cli.components import Param
from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.data.schemes.dealing import apportion, check_request, deal_counts
from fedpcd_cli.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Shards(PartitionScheme):
    """N k shards of one class each; every client gets k shards of k different classes.

    Classes get shards in proportion to their samples (highest averages), and a class is cut evenly over its
    shards, so what does not divide is spread one sample at a time. Unlike the label-sorted shards of McMahan et
    al. (2017), a shard never straddles two classes, so "k classes" is exact.
    """

    name: ClassVar[str] = "shards"
    summary: ClassVar[str] = "exactly k classes per client; each class cut evenly over the clients that hold it"

    classes_per_client: Annotated[int, Param("How many classes each client holds.", symbol="k", ge=1)] = 2

    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Deal every sample to exactly one client.

        Raises:
            DataError: Fewer classes than k, or too few shards for all classes, or too few samples for all shards.
        """
        check_request(pool, n_clients)
        supply = np.bincount(pool.targets, minlength=pool.n_classes).astype(np.int64)
        held = _assign(_quotas(supply, n_clients, self.classes_per_client), n_clients, rng)
        counts = np.zeros((n_clients, pool.n_classes), dtype=np.int64)
        for k in np.flatnonzero(supply):
            receivers = held == k
            mask = receivers.any(axis=1)
            counts[mask, k] = apportion(int(supply[k]), np.ones(mask.sum()), rng.permutation(mask.sum()))
        return Dealing(indices=deal_counts(pool.targets, counts, rng))


def _quotas(supply: np.ndarray, n_clients: int, k: int) -> np.ndarray:
    """Return how many shards each class gets, int64 `[K]`: between 1 and min(N, samples), summing to N k."""
    present = np.flatnonzero(supply)
    key = "data.partition.classes_per_client"
    if k > len(present):
        raise DataError(f"{key} must be at most {len(present)}, the number of classes; found {k}.")
    n_shards = n_clients * k
    if n_shards < len(present):
        raise DataError(
            f"{key} must be at least {-(-len(present) // n_clients)}: {n_clients} clients with {k} classes each "
            f"can't hold {len(present)} classes."
        )
    limits = np.minimum(supply, n_clients)
    if n_shards > limits.sum():
        raise DataError(
            f"{key} must be at most {limits.sum() // n_clients} for {n_clients} clients: "
            f"the classes have too few samples for {n_shards} shards; found {k}."
        )
    quotas = (supply > 0).astype(np.int64)
    heap = [(-supply[c] / 2.0, int(c)) for c in present if limits[c] > 1]
    heapq.heapify(heap)
    for _ in range(n_shards - len(present)):
        _, c = heapq.heappop(heap)
        quotas[c] += 1
        if quotas[c] < limits[c]:
            heapq.heappush(heap, (-supply[c] / (quotas[c] + 1.0), c))
    return quotas


def _assign(quotas: np.ndarray, n_clients: int, rng: np.random.Generator) -> np.ndarray:
    """Return the classes of each client, int64 `[N, k]`, all different within a row, at random.

    Dealing the class-sorted shards in turn is right but gives every client the same few combinations, so
    random exchanges follow that keep rows free of repeats.
    """
    classes = rng.permutation(len(quotas))
    in_turn = np.repeat(classes, quotas[classes])
    held = in_turn.reshape(-1, n_clients).T[rng.permutation(n_clients)].copy()
    rows = held.tolist()
    k = held.shape[1]
    n_moves = 4 * n_clients * k
    pairs = rng.integers(n_clients, size=(n_moves, 2)).tolist()
    places = rng.integers(k, size=(n_moves, 2)).tolist()
    for (a, b), (i, j) in zip(pairs, places, strict=True):
        row_a, row_b = rows[a], rows[b]
        if row_b[j] not in row_a and row_a[i] not in row_b:
            row_a[i], row_b[j] = row_b[j], row_a[i]
    return np.array(rows, dtype=np.int64)
