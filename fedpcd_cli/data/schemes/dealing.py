"""What schemes share: checks, exact apportionment, log-space Dirichlet draws, and dealing by counts."""

from __future__ import annotations

import numpy as np

from fedpcd_cli.data.partition import Pool
from fedpcd_cli.errors import DataError


def check_request(pool: Pool, n_clients: int) -> None:
    """Refuse federations that can't exist.

    Raises:
        DataError: No clients, no samples, or more clients than samples.
    """
    n = len(pool.targets)
    if n_clients < 1:
        raise DataError(f"data.partition.n_clients must be at least 1; found {n_clients}.")
    if n_clients > n:
        raise DataError(
            f"data.partition.n_clients must be at most {n}, the number of samples to deal; found {n_clients}."
        )


def apportion(total: int, weights: np.ndarray, tie_break: np.ndarray | None = None) -> np.ndarray:
    """Split a whole number in proportion to weights, by largest remainder.

    Args:
        total: What to split, >= 0.
        weights: Non-negative, `[n]`, at least one positive.
        tie_break: Equal remainders are served in ascending order of this, `[n]`; by position if None.

    Returns:
        int64 `[n]`, summing to `total`; each entry is within one of its exact share; zero where the weight is 0.
    """
    exact = weights.astype(np.float64) * (total / float(weights.sum()))
    shares = np.floor(exact).astype(np.int64)
    remainders = np.where(weights > 0, exact - shares, -1.0)
    left = total - int(shares.sum())
    if tie_break is None:
        tie_break = np.arange(len(weights))
    # Rounding up to 1e-9 counts as a tie, so that the last bits of a division never decide.
    order = np.lexsort((tie_break, -np.round(remainders, 9)))
    shares[order[:left]] += 1
    return shares


def log_dirichlet(rng: np.random.Generator, alpha: float, size: tuple[int, int]) -> np.ndarray:
    """Return logarithms of symmetric Dirichlet draws, float64 `[rows, n]`, finite however small alpha is.

    A Gamma(α) variate is Gamma(α + 1) U^(1/α); its logarithm does not underflow, while the variate itself does
    for α below about 0.01, which leaves 0 / 0 in the usual way of sampling.
    """
    logs = np.log(rng.standard_gamma(alpha + 1.0, size)) - rng.standard_exponential(size) / alpha
    peak = logs.max(axis=1, keepdims=True)
    normalized: np.ndarray = logs - (peak + np.log(np.exp(logs - peak).sum(axis=1, keepdims=True)))
    return normalized


def split_by_owner(owners: np.ndarray, n_clients: int) -> tuple[np.ndarray, ...]:
    """Return each client's sorted positions.

    Args:
        owners: Client of each position, int64 `[n]`, in [0, N); -1 leaves a position out.
    """
    order = np.argsort(owners, kind="stable")
    order = order[np.count_nonzero(owners < 0) :]
    sizes = np.bincount(owners[owners >= 0], minlength=n_clients)
    return tuple(np.split(order.astype(np.int64), np.cumsum(sizes)[:-1]))


def deal_counts(targets: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Deal shuffled samples so that client i gets `counts[i, k]` samples of class k.

    Args:
        targets: int64 `[n]`.
        counts: int64 `[N, K]`; each column sums to at most the class's samples, the rest is left out.

    Returns:
        Per client, sorted int64 positions.
    """
    owners = np.full(len(targets), -1, dtype=np.int64)
    by_class = np.argsort(targets, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=counts.shape[1]))])
    clients = np.arange(len(counts))
    for k in range(counts.shape[1]):
        members = rng.permutation(by_class[starts[k] : starts[k + 1]])
        receivers = np.repeat(clients, counts[:, k])
        owners[members[: len(receivers)]] = receivers
    return split_by_owner(owners, len(counts))
