"""Normalization of a round's constraints (FedPCD, step 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def empty_ema() -> dict[str, np.ndarray]:
    """Return the moving averages before any client took part."""
    return {
        "client_ids": np.zeros(0, dtype=np.int64),
        "means": np.zeros(0),
        "counts": np.zeros(0, dtype=np.int64),
    }


def update_ema(
    ema: Mapping[str, Any], client_ids: Sequence[int] | np.ndarray, squared_norms: np.ndarray, beta: float
) -> dict[str, np.ndarray]:
    """Return the averages after clients `[m]` took part once more: v <- beta v + (1 - beta) ||g||²."""
    ids = np.asarray(client_ids, dtype=np.int64)
    known = np.union1d(ema["client_ids"], ids)
    means, counts = np.zeros(known.size), np.zeros(known.size, dtype=np.int64)
    before = np.searchsorted(known, ema["client_ids"])
    means[before], counts[before] = ema["means"], ema["counts"]
    now = np.searchsorted(known, ids)
    means[now] = beta * means[now] + (1.0 - beta) * squared_norms
    counts[now] += 1
    return {"client_ids": known, "means": means, "counts": counts}


def ema_norms(ema: Mapping[str, Any], client_ids: np.ndarray, beta: float) -> np.ndarray:
    """Return the root of each client's bias-corrected average v / (1 - beta^n), `[c]`; all must be known."""
    positions = np.searchsorted(ema["client_ids"], client_ids)
    corrected = ema["means"][positions] / (1.0 - beta ** ema["counts"][positions])
    return np.asarray(np.sqrt(corrected))


def divisors(normalization: str, norms: np.ndarray, moving_norms: np.ndarray | None, epsilon: float) -> np.ndarray:
    """Return what each constraint is divided by, `[c]`: `l2` its own norm, `ema` the moving one, `none` 1."""
    if normalization == "none":
        return np.ones_like(norms)
    base = norms if normalization == "l2" or moving_norms is None else moving_norms
    return np.asarray(base + epsilon)
