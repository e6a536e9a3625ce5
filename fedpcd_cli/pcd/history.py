"""The history cache: pseudo-gradients of the last H rounds and the inner products among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.linalg.gram import gram_matrix, inner_products

# Squared norms outside have entries whose products leave float32; such rows are multiplied in float64.
_SAFE_SQUARES = (1e-25, 1e30)


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundRows:
    """The constraints of one round before normalization: the cohort's nonzero updates, then cached ones.

    Attributes:
        client_ids: int64 `[c]`.
        source_rounds: Round of each update, int64 `[c]`.
        gram: Inner products of the raw updates, float64 `[c, c]`.
        fresh: Position in the cohort of each of the first constraints, `[k]`.
        slots: Ring row of each of the others, `[c - k]`.
        zero_ids: Clients of the cohort whose update is zero.
        multiplied_pairs: Pairs of rows whose inner product was computed in this round.
    """

    client_ids: np.ndarray
    source_rounds: np.ndarray
    gram: np.ndarray
    fresh: np.ndarray
    slots: np.ndarray
    zero_ids: tuple[int, ...]
    multiplied_pairs: int

    @property
    def size(self) -> int:
        """c, the number of constraints."""
        return int(self.client_ids.size)

    @property
    def norms(self) -> np.ndarray:
        """||g_j||, `[c]`."""
        return np.sqrt(np.diag(self.gram))


@dataclass(frozen=True, eq=False, kw_only=True)
class HistoryCache:
    """Newest update of each client that took part in the last H rounds.

    All rows lie in one matrix that is allocated by the first round, uninitialized: rows that were never used
    cost no memory. A row is found through `slots` only, so its position means nothing. The ring is written in
    place by :meth:`store`; everything else is replaced.

    Attributes:
        window: H; an update of age H still counts, one of age H + 1 does not.
        capacity: Rows of the ring, min(N, H * m).
        ring: `[capacity, P]`, None before the first round.
        slots: Ring row of each entry, int64 `[k]`.
        client_ids: int64 `[k]`, distinct.
        source_rounds: Round of each entry, int64 `[k]`.
        gram: Inner products of the entries, float64 `[k, k]`.
        multiplied_pairs: Pairs of rows multiplied since the run began.
    """

    window: int
    capacity: int
    ring: torch.Tensor | None
    slots: np.ndarray
    client_ids: np.ndarray
    source_rounds: np.ndarray
    gram: np.ndarray
    multiplied_pairs: int

    @classmethod
    def empty(cls, window: int, n_clients: int, cohort_size: int) -> HistoryCache:
        """Return the cache before round 1."""
        none = np.zeros(0, dtype=np.int64)
        return cls(
            window=window,
            capacity=min(n_clients, window * cohort_size),
            ring=None,
            slots=none,
            client_ids=none,
            source_rounds=none,
            gram=np.zeros((0, 0)),
            multiplied_pairs=0,
        )

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HistoryCache:
        """Rebuild the cache from :meth:`state`, without a copy."""
        return cls(**state)

    def state(self) -> dict[str, Any]:
        """Return the cache as plain data, tensors and arrays, without a copy."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(self.client_ids.size)

    def collect(self, rows: torch.Tensor, client_ids: Sequence[int], round_index: int) -> RoundRows:
        """Return this round's constraints; only products with the cohort's rows `[m, P]` are computed."""
        ids = np.asarray(client_ids, dtype=np.int64)
        usable = (round_index - self.source_rounds <= self.window) & ~np.isin(self.client_ids, ids)
        kept = np.flatnonzero(usable)
        kept = kept[np.argsort(self.slots[kept], kind="stable")]  # neighbors in memory are read together
        cached = self.gram[np.ix_(kept, kept)]
        among, exact = _cohort_products(rows, np.diag(cached))
        fresh = np.flatnonzero(np.diag(among) > 0)
        k, c = fresh.size, fresh.size + kept.size
        gram = np.empty((c, c))
        gram[:k, :k] = among[np.ix_(fresh, fresh)]
        gram[k:, k:] = cached
        if kept.size and self.ring is not None:
            gram[:k, k:] = inner_products(rows, self.ring, rows=self.slots[kept], exact=exact)[fresh]
            gram[k:, :k] = gram[:k, k:].T
        zero = np.diag(among) == 0
        return RoundRows(
            client_ids=np.concatenate([ids[fresh], self.client_ids[kept]]),
            source_rounds=np.concatenate([np.full(k, round_index, dtype=np.int64), self.source_rounds[kept]]),
            gram=gram,
            fresh=fresh,
            slots=self.slots[kept],
            zero_ids=tuple(int(client) for client in ids[zero]),
            multiplied_pairs=k * c,
        )

    def store(self, rows: torch.Tensor, collected: RoundRows, round_index: int) -> HistoryCache:
        """Return the cache with the cohort's rows `[m, P]` in it and without what the next round may not use.

        A client's older entry is gone; a zero update leaves none.
        """
        multiplied = self.multiplied_pairs + collected.multiplied_pairs
        if self.window == 0:
            return replace(self, multiplied_pairs=multiplied)
        k = collected.fresh.size
        survives = np.flatnonzero(round_index - collected.source_rounds[k:] < self.window)
        taken = collected.slots[survives]
        free = np.setdiff1d(np.arange(self.capacity), taken)[:k]
        if free.size < k:
            raise FedPCDError(
                f"round {round_index}: the history holds {self.capacity} updates; found {taken.size + k}. "
                "No cohort may be larger than the one the run began with."
            )
        ring = self.ring
        if ring is None:
            ring = torch.empty((self.capacity, rows.shape[1]), dtype=rows.dtype, device=rows.device)
        for slot, position in zip(free.tolist(), collected.fresh.tolist(), strict=True):
            ring[slot].copy_(rows[position])
        entries = np.concatenate([np.arange(k), k + survives])
        return replace(
            self,
            ring=ring,
            slots=np.concatenate([free, taken]),
            client_ids=collected.client_ids[entries],
            source_rounds=collected.source_rounds[entries],
            gram=collected.gram[np.ix_(entries, entries)],
            multiplied_pairs=multiplied,
        )


def _cohort_products(rows: torch.Tensor, cached_squares: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Gram matrix of the cohort, `[m, m]`, and whether float32 was too narrow for this round."""
    gram = gram_matrix(rows)
    if rows.dtype == torch.float64:
        return gram, False
    squares = np.diag(gram)
    suspicious = [int(i) for i in np.flatnonzero(squares == 0) if bool(rows[int(i)].any())]
    measured = np.concatenate([squares[squares != 0], cached_squares])
    low, high = _SAFE_SQUARES
    if not suspicious and ((measured >= low) & (measured <= high)).all():
        return gram, False
    return gram_matrix(rows, exact=True), True
