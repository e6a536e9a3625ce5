"""FedLF's memory: the last update of every client, and their inner products layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

# Small layers are multiplied in float64: cheap there, and that is where updates cancel to nothing.
_SMALL_LAYER = 1 << 16
# Between these, squares of float32 rows lose nothing that matters to underflow or overflow.
_SAFE_SQUARES = (1e-28, 1e30)


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerSystem:
    """The rows of one round, cohort first and history after it, and their inner products per layer.

    Attributes:
        rows: The cohort's updates, `[m, P]`.
        memory: The stored updates, `[capacity, P]`; None before the first round.
        slots: Row of `memory` for each history row, int64 `[k]`.
        spans: The layers.
        grams: Inner products within each layer, float64 `[L, m + k, m + k]`.
    """

    rows: torch.Tensor
    memory: torch.Tensor | None
    slots: np.ndarray
    spans: tuple[slice, ...]
    grams: np.ndarray

    @property
    def cohort_size(self) -> int:
        """m."""
        return int(self.rows.shape[0])

    def gram(self, layers: Sequence[int]) -> np.ndarray:
        """Return the Gram matrix of the rows on some layers together, float64 `[m + k, m + k]`."""
        return np.asarray(self.grams[list(layers)].sum(axis=0))

    def exact_gram(self, layers: Sequence[int]) -> np.ndarray:
        """Return the same, multiplied in float64 throughout."""
        from fedpcd_cli.api import inner_products

        m = self.cohort_size
        total = np.zeros(self.grams.shape[1:])
        for span in (self.spans[layer] for layer in layers):
            total[:m, :m] += inner_products(self.rows, self.rows, span=span, exact=True)
            if self.memory is not None and self.slots.size:
                old = self.memory[:, span][self.slots]
                total[:m, m:] += inner_products(self.rows[:, span], old, exact=True)
                total[m:, m:] += inner_products(old, old, exact=True)
        total[m:, :m] = total[:m, m:].T
        return (total + total.T) / 2

    def add_to(self, direction: torch.Tensor, layers: Sequence[int], coefficients: np.ndarray) -> None:
        """Add the combination of all rows, coefficients `[m + k]`, to these layers of `direction` `[P]`."""
        from fedpcd_cli.api import combine

        for span in (self.spans[layer] for layer in layers):
            combine(self.rows[:, span], coefficients[: self.cohort_size], out=direction[span])
            if self.memory is not None and self.slots.size:
                stored = np.zeros(self.memory.shape[0])
                stored[self.slots] = coefficients[self.cohort_size :]
                combine(self.memory[:, span], stored, out=direction[span])


def recall(state: Mapping[str, Any], client_ids: Sequence[int], round_index: int) -> tuple[np.ndarray, int]:
    """Return the memory rows of the absent clients that still count, in client order, and the window.

    With M stored clients and m participants the window is ⌊M/m⌋ rounds; without M > m there is no history.
    """
    clients = state["clients"]
    window = len(clients) // len(client_ids) if len(clients) > len(client_ids) else 0
    present = set(client_ids)
    kept = [
        clients[client]["row"]
        for client in sorted(clients)
        if client not in present and round_index - clients[client]["round"] <= window
    ]
    return np.array(kept if window else [], dtype=np.int64), window


def assemble(
    state: Mapping[str, Any], rows: torch.Tensor, spans: tuple[slice, ...], slots: np.ndarray
) -> LayerSystem:
    """Return the round's system; only products with the cohort's rows are computed, the others are kept ones."""
    m, k = rows.shape[0], slots.size
    memory, cached = state["rows"], state["grams"]
    grams = np.empty((len(spans), m + k, m + k))
    for layer, span in enumerate(spans):
        block = _products(rows, rows, span)
        exact = _leaves_range(np.diag(block))
        if exact:
            block = _products(rows, rows, span, exact=True)
        grams[layer, :m, :m] = (block + block.T) / 2
        if k:
            kept = _cached(cached[layer], memory, span, slots)
            exact = exact or _leaves_range(np.diag(kept))
            grams[layer, m:, m:] = kept
            grams[layer, :m, m:] = _products(rows, memory, span, rows=slots, exact=exact)
            grams[layer, m:, :m] = grams[layer, :m, m:].T
    return LayerSystem(rows=rows, memory=memory, slots=slots, spans=spans, grams=grams)


def remember(
    state: Mapping[str, Any], system: LayerSystem, client_ids: Sequence[int], n_clients: int, round_index: int
) -> dict[str, Any]:
    """Return the state with the cohort's updates and products in it; the memory is written in place."""
    clients = dict(state["clients"])
    for client in client_ids:
        row = clients[client]["row"] if client in clients else len(clients)
        clients[client] = {"row": row, "round": round_index}
    memory, grams = _grown(state, system, len(clients), n_clients)
    m = system.cohort_size
    own = np.array([clients[client]["row"] for client in client_ids], dtype=np.int64)
    for position, row in enumerate(own.tolist()):
        memory[row].copy_(system.rows[position])
    grams[:, own, :] = grams[:, :, own] = np.nan  # products of what was replaced
    grams[:, own[:, None], own] = system.grams[:, :m, :m]
    grams[:, own[:, None], system.slots] = system.grams[:, :m, m:]
    grams[:, system.slots[:, None], own] = system.grams[:, m:, :m]
    return {"clients": clients, "rows": memory, "grams": grams}


def _grown(
    state: Mapping[str, Any], system: LayerSystem, needed: int, n_clients: int
) -> tuple[torch.Tensor, np.ndarray]:
    """Return memory and products with room for `needed` clients; the room doubles, up to all clients."""
    memory: torch.Tensor | None = state["rows"]
    grams: np.ndarray = state["grams"]
    old = 0 if memory is None else memory.shape[0]
    if memory is not None and needed <= old:
        return memory, grams
    capacity = max(needed, min(2 * old, n_clients))
    wider = system.rows.new_zeros((capacity, system.rows.shape[1]))
    products = np.full((len(system.spans), capacity, capacity), np.nan)
    if memory is not None:
        wider[:old].copy_(memory)
        products[:, :old, :old] = grams
    return wider, products


def _cached(grams: np.ndarray, memory: torch.Tensor, span: slice, slots: np.ndarray) -> np.ndarray:
    """Return the products among history rows in one layer, `[k, k]`; pairs that never met are multiplied now.

    Those exist only if the window has grown faster than time, which takes a cohort that lost clients.
    """
    kept = grams[np.ix_(slots, slots)]
    incomplete = np.flatnonzero(np.isnan(kept).any(axis=1))
    if incomplete.size:
        fresh = _products(memory[slots[incomplete]], memory, span, rows=slots)
        kept[incomplete] = fresh
        kept[:, incomplete] = fresh.T
        kept[np.ix_(incomplete, incomplete)] = (fresh[:, incomplete] + fresh[:, incomplete].T) / 2
        grams[np.ix_(slots, slots)] = kept
    return np.asarray(kept)


def _products(
    a: torch.Tensor, b: torch.Tensor, span: slice, rows: np.ndarray | None = None, exact: bool = False
) -> np.ndarray:
    from fedpcd_cli.api import inner_products

    exact = exact or span.stop - span.start <= _SMALL_LAYER
    return np.asarray(inner_products(a, b, span=span, rows=rows, exact=exact))


def _leaves_range(squares: np.ndarray) -> bool:
    low, high = _SAFE_SQUARES
    return bool(((squares > high) | ((squares < low) & (squares > 0)) | np.isnan(squares)).any())
