"""Client-wise Dirichlet: each client draws its own class mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from fedpcd_cli.components import Param
from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.data.schemes.dealing import apportion, check_request, deal_counts, log_dirichlet


@dataclass(frozen=True, kw_only=True)
class Dirichlet(PartitionScheme):
    """Each client draws a class mixture from Dir(α 1_K); sizes are set beforehand; class pools deplete.

    All clients draw together. A class that is wanted more often than it has samples is dealt at random among
    those draws and is then empty; the draws left over are repeated from the same mixtures, renormalized over the
    classes that still have samples. Each repeat empties at least one class, so there are at most K of them.
    """

    name: ClassVar[str] = "dirichlet"
    summary: ClassVar[str] = "each client draws its class mixture from Dir(α); sizes as set; class pools deplete"

    dirichlet_alpha: Annotated[
        float, Param("Concentration; small means few classes per client.", symbol="α", ge=1e-9, le=1e9)
    ] = 0.1
    sizes: Annotated[Literal["equal", "lognormal"], Param("Client sizes: within one of each other, or drawn.")] = (
        "equal"
    )
    size_sigma: Annotated[
        float, Param("Standard deviation of the logarithm of client sizes, for sizes: lognormal.", ge=0, le=10)
    ] = 1.0

    def deal(self, pool: Pool, n_clients: int, rng: np.random.Generator) -> Dealing:
        """Deal every sample to exactly one client; no client is empty."""
        check_request(pool, n_clients)
        sizes = self._sizes(len(pool.targets), n_clients, rng)
        supply = np.bincount(pool.targets, minlength=pool.n_classes).astype(np.int64)
        mixtures = log_dirichlet(rng, self.dirichlet_alpha, (n_clients, pool.n_classes))
        counts, n_redrawn = fill(mixtures, sizes, supply, rng)
        share = n_redrawn / len(pool.targets)
        notes: tuple[str, ...] = ()
        if share >= 0.01:
            notes = (f"dirichlet: {share:.1%} of the samples were drawn again because their class was used up",)
        return Dealing(indices=deal_counts(pool.targets, counts, rng), notes=notes)

    def _sizes(self, n: int, n_clients: int, rng: np.random.Generator) -> np.ndarray:
        tie_break = rng.permutation(n_clients)
        if self.sizes == "equal":
            return apportion(n, np.ones(n_clients), tie_break)
        logs = self.size_sigma * rng.standard_normal(n_clients)
        return 1 + apportion(n - n_clients, np.exp(logs - logs.max()), tie_break)


def fill(
    log_mixtures: np.ndarray, sizes: np.ndarray, supply: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Fill clients of given sizes from finite class pools, following their mixtures.

    Args:
        log_mixtures: Logarithms of each client's class mixture, `[N, K]`, finite.
        sizes: Samples per client, int64 `[N]`, summing to the sum of `supply`.
        supply: Samples per class, int64 `[K]`.

    Returns:
        Samples of each class for each client, int64 `[N, K]`, with row sums `sizes` and column sums `supply`;
        and the number of samples that came from a repeated draw.
    """
    counts = np.zeros(log_mixtures.shape, dtype=np.int64)
    left = supply.copy()
    need = sizes.copy()
    n_redrawn: int | None = None
    while need.any():
        classes = np.flatnonzero(left)
        clients = np.flatnonzero(need)
        logs = log_mixtures[np.ix_(clients, classes)]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        drawn = rng.multinomial(need[clients], weights / weights.sum(axis=1, keepdims=True))
        wanted = drawn.sum(axis=0)
        for column in np.flatnonzero(wanted > left[classes]):
            drawn[:, column] = rng.multivariate_hypergeometric(
                drawn[:, column], int(left[classes[column]]), method="marginals"
            )
        counts[np.ix_(clients, classes)] += drawn
        left[classes] -= drawn.sum(axis=0)
        need[clients] -= drawn.sum(axis=1)
        if n_redrawn is None:
            n_redrawn = int(need.sum())
    return counts, n_redrawn or 0
