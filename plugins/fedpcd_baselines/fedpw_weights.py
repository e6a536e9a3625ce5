"""FedPW's client side: weights from losses and from consensus, kept per client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcd_cli.api import FedPCDError

if TYPE_CHECKING:
    import torch

_SMALLEST_LOSS_SHARE = 1e-12
# Length of a sum relative to its terms, and a sum of shares relative to theirs, below which they are rounding.
_CANCELLED = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Consensus:
    """How far each client goes along with the cohort.

    Attributes:
        shares: φ_i, float64 `[m]`, sums to 1, may be negative.
        mean: Mean of Δ_i · Σ Δ_j, in displacements; 0 if the updates cancel.
    """

    shares: np.ndarray
    mean: float

    @classmethod
    def of(cls, rows: torch.Tensor, local_lr: float) -> Consensus:
        """Return the consensus of the pseudo-gradients `[m, P]`; one pass forms their sum, one multiplies it."""
        from fedpcd_baselines.products import squared_norms
        from fedpcd_cli.api import combine, inner_products

        m = rows.shape[0]
        total = combine(rows, np.ones(m))[None]
        square = float(squared_norms(total)[0])
        size = float(np.sqrt(squared_norms(rows)).sum())
        rounding = 1e-10 if rows.element_size() == 8 else 4e-6
        if math.sqrt(square) <= rounding * size:
            return cls(shares=np.full(m, 1.0 / m), mean=0.0)
        products = inner_products(total, rows)[0]
        if not np.isfinite(products).all() or abs(products.sum() - square) > 1e-3 * square:
            products = inner_products(total, rows, exact=True)[0]
        return cls(shares=products / products.sum(), mean=local_lr**2 * square / m)


def loss_shares(losses: np.ndarray) -> np.ndarray:
    """Return ℓ_i = L_i / Σ L, float64 `[m]`; equal shares if all losses are zero."""
    peak = float(np.abs(losses).max())
    total = float((losses / peak).sum()) if peak > 0 else 0.0
    return losses / peak / total if total > 0 else np.full(losses.size, 1.0 / losses.size)


def drop_rates(shares: np.ndarray, rate: float) -> np.ndarray:
    """Return r_i = min(1, m r (1/ℓ_i) / Σ 1/ℓ_j), float64 `[m]`: clients with low losses lose more."""
    inverse = 1.0 / np.maximum(shares, _SMALLEST_LOSS_SHARE)
    return np.asarray(np.minimum(1.0, shares.size * rate * inverse / inverse.sum()))


def track(
    clients: Mapping[int, Mapping[str, float]],
    ids: list[int],
    key: str,
    shares: np.ndarray,
    beta: float,
    where: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return one criterion of each participant and its momentum after this round (step 3 and 4), `[m]` each.

    Args:
        clients: What is kept of each client.
        ids: The participants.
        key: `loss` or `consensus`.
        shares: ℓ or φ, `[m]`: what newcomers start from and momenta move towards.
        beta: β_ℓ or β_φ.
        where: Rule and round, for the message.

    Raises:
        FedPCDError: The momentum has overflowed: it grows without bound while |1 - β_ℓ| > 1.
    """
    value = np.array([clients[c][key] if c in clients else s for c, s in zip(ids, shares, strict=True)])
    momentum = np.array([clients[c][f"{key}_momentum"] if c in clients else 0.0 for c in ids])
    with np.errstate(over="ignore", invalid="ignore"):
        momentum = (1 - beta) * momentum + beta * shares
        value = value + momentum
        total, size = float(value.sum()), float(np.abs(value).sum())
    if not math.isfinite(size):
        raise FedPCDError(
            f"{where}: the {key} momentum must stay finite; found a factor of {1 - beta:.3g} per round.",
            hint="Use a smaller aggregator beta: it is multiplied by the growth since the first round.",
        )
    cancelled = abs(total) <= _CANCELLED * size
    return (np.full(len(ids), 1.0 / len(ids)) if cancelled else value / total), momentum


def blend(loss: np.ndarray, consensus: np.ndarray) -> np.ndarray:
    """Return λ, float64 `[m]`: the criterion that spreads more has the larger say (step 5); sums to 1."""
    if loss.size == 1:
        return np.ones(1)
    spread_loss, spread_consensus = float(np.std(loss, ddof=1)), float(np.std(consensus, ddof=1))
    total = spread_loss + spread_consensus
    share = spread_loss / total if total > 0 else 0.5
    return np.asarray(share * loss + (1 - share) * consensus)


def scaled_beta(beta: float, now: float, first: float) -> float:
    """Return β · now / first, not clipped; β if there is nothing to compare with."""
    return beta * now / first if first > 0 else beta


def memory_of(
    ids: list[int],
    loss: np.ndarray,
    loss_momentum: np.ndarray,
    consensus: np.ndarray,
    consensus_momentum: np.ndarray,
) -> dict[int, dict[str, Any]]:
    """Return what is kept of each participant, keyed by client id."""
    columns = (loss, loss_momentum, consensus, consensus_momentum)
    names = ("loss", "loss_momentum", "consensus", "consensus_momentum")
    return {
        client: {name: float(column[i]) for name, column in zip(names, columns, strict=True)}
        for i, client in enumerate(ids)
    }
