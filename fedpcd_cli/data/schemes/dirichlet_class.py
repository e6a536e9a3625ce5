"""Class-wise Dirichlet: each class is dealt over the clients."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedpcd_cli.components import Param
from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.data.schemes.dealing import check_request, log_dirichlet
from fedpcd_cli.errors import DataError


@dataclass(frozen=True, kw_only=True)
class DirichletClass(PartitionScheme):
    """Each class k is cut over the clients at π_k ~ Dir(α 1_N), so that sizes differ too (LDA; Hsu et al., 2019).

    With `balance`, clients that already hold n / N samples get none of the classes that follow, as in the
    FedLF code. Other tools draw again until the smallest client has enough samples, which never ends for small
    α. Here a client below `min_size` is filled once, from the largest client at that moment, as in the CRAFT
    code; the note tells how many samples moved.
    """

    name: ClassVar[str] = "dirichlet-class"
    summary: ClassVar[str] = "each class is dealt over clients by Dir(α) (LDA); sizes vary; min_size is repaired"

    dirichlet_alpha: Annotated[
        float, Param("Concentration; small means each class is held by few clients.", symbol="α", ge=1e-9, le=1e9)
    ] = 0.1
    min_size: Annotated[int, Param("Smallest number of samples of a client.", ge=0)] = 10
    balance: Annotated[bool, Param("Give nothing more to clients that hold n / N samples.")] = False

    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Deal every sample to exactly one client; none below `min_size`.

        Raises:
            DataError: `min_size` times N is more than there is.
        """
        check_request(pool, n_clients)
        n = len(pool.targets)
        if self.min_size * n_clients > n:
            raise DataError(
                f"data.partition.min_size must be at most {n // n_clients} ({n} samples, {n_clients} clients); "
                f"found {self.min_size}."
            )
        members: list[list[np.ndarray]] = [[] for _ in range(n_clients)]
        held = np.zeros(n_clients, dtype=np.int64)
        by_class = np.argsort(pool.targets, kind="stable")
        ends = np.cumsum(np.bincount(pool.targets, minlength=pool.n_classes))
        for samples in np.split(by_class, ends[:-1]):
            if len(samples) == 0:
                continue
            log_shares = log_dirichlet(rng, self.dirichlet_alpha, (1, n_clients))[0]
            if self.balance:
                # Before the last sample is dealt the clients hold less than n, so one is below n / N.
                log_shares = np.where(held * n_clients >= n, -np.inf, log_shares)
            cuts = _cuts(log_shares, len(samples))
            counts = np.diff(np.concatenate([[0], cuts]))
            shuffled = rng.permutation(samples)
            for client in np.flatnonzero(counts):
                members[client].append(shuffled[cuts[client] - counts[client] : cuts[client]])
            held += counts
        empty = np.empty(0, dtype=np.int64)
        clients = [np.concatenate(parts) if parts else empty for parts in members]
        notes = _repair(clients, self.min_size, rng)
        return Dealing(indices=tuple(np.sort(client).astype(np.int64) for client in clients), notes=notes)


def _cuts(log_shares: np.ndarray, n: int) -> np.ndarray:
    """Return ⌊n cumsum(π)⌋, int64 `[N]`; the last client that takes part ends at n."""
    weights = np.exp(log_shares - log_shares.max())
    cumulative = np.cumsum(weights)
    cuts: np.ndarray = np.floor(cumulative * (n / cumulative[-1])).clip(max=n).astype(np.int64)
    cuts[np.flatnonzero(weights)[-1] :] = n  # rounding must not leave the last sample to a client without a share
    return cuts


def _repair(clients: list[np.ndarray], min_size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Fill clients below `min_size` in place from the largest ones: at most 2 N moves."""
    small = [i for i, client in enumerate(clients) if len(client) < min_size]
    if not small:
        return ()
    largest = [(-len(client), i) for i, client in enumerate(clients) if len(client) > min_size]
    heapq.heapify(largest)
    n_moved = 0
    for receiver in small:
        while len(clients[receiver]) < min_size:
            _, donor = heapq.heappop(largest)
            stock = rng.permutation(clients[donor])
            n = min(min_size - len(clients[receiver]), len(stock) - min_size)
            clients[receiver] = np.concatenate([clients[receiver], stock[:n]])
            clients[donor] = stock[n:]
            n_moved += n
            if len(clients[donor]) > min_size:
                heapq.heappush(largest, (-len(clients[donor]), donor))
    return (
        f"dirichlet-class: {len(small)} of {len(clients)} clients had fewer than {min_size} samples; "
        f"{n_moved} samples moved to them from the largest clients",
    )
