"""FedHEAL: drop entries whose sign is unusual for the client, weigh clients by how far they move."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_baselines.losses import by_client
from fedpcd_baselines.products import squared_norms
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Param, ServerContext, State

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class FedHEAL(Aggregator):
    """Consistent, equitable aggregation (Chen, Huang, Ye, CVPR 2024).

    An entry of a client's update counts if its sign was seen in more than `tau` of the client's past rounds; in a
    client's first round all entries count. A client's weight accumulates its share of the distance moved, and
    each entry is averaged over the clients whose entry counts.

    As in the authors' code, distances are sums of the norms of the parameter tensors, zero counts as a
    nonnegative sign, and nothing is weighted by examples. The code serves full participation only: it counts
    global rounds and fails for a client that appears later. Here every client has its own counter, shares are
    taken over the participants, and a newcomer's weight starts at 1/m; with all clients present both agree.
    Shares are compared exactly, as counts: the code's running mean decides ties by rounding.

    The memory holds one count per client and parameter, one byte for 255 rounds and two after that. Distances
    are kept as displacements, because `share: all_seen` adds those of different rounds. Buffers are averaged by
    the engine.
    """

    name: ClassVar[str] = "fedheal"
    title: ClassVar[str] = "FedHEAL"
    paper: ClassVar[str] = "Chen, Huang, Ye, CVPR 2024"
    idea: ClassVar[str] = "mask entries of unusual sign, weigh clients by how far they move"
    cost: ClassVar[str] = "m P; memory N P bytes"

    tau: Annotated[
        float,
        Param("Share of past rounds that an entry's sign must exceed to count.", symbol="τ", ge=0, le=1),
    ] = 0.3
    beta: Annotated[
        float,
        Param("Weight of a round's share of distance in a client's momentum.", symbol="β", ge=0, le=1),
    ] = 0.4
    share: Annotated[
        Literal["participants", "all_seen"],
        Param("Distance is shared among the participants, or among all clients seen, with their last distances."),
    ] = "participants"

    def init(self, context: ServerContext) -> State:
        """Return the memory of no clients."""
        return {"clients": {}}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the masked average; the sign counts are updated in place."""
        rows, clients = cohort.pseudo_gradients, dict(state["clients"])
        kept = [self._kept(row, clients.get(client)) for row, client in zip(rows, cohort.client_ids, strict=True)]
        distances = cohort.local_lr * np.array(
            [_distance(row, mask, cohort.layout.tensor_spans) for row, mask in zip(rows, kept, strict=True)]
        )
        shares = self._shares(cohort, clients, distances)
        for i, client in enumerate(cohort.client_ids):
            old = clients.get(client, {"rounds": 0, "weight": 1.0 / cohort.size, "momentum": 0.0, "counts": None})
            momentum = (1 - self.beta) * old["momentum"] + self.beta * float(shares[i])
            clients[client] = {
                "rounds": old["rounds"] + 1,
                "weight": old["weight"] + momentum,
                "momentum": momentum,
                "distance": float(distances[i]),
                "counts": _count(old["counts"], rows[i], old["rounds"]),
            }
        weights = np.array([clients[client]["weight"] for client in cohort.client_ids])
        weights = weights / weights.sum()
        aggregation = Aggregation(
            direction=_masked_mean(rows, kept, weights),
            diagnostics={
                "weights": by_client(cohort, weights),
                "kept": by_client(cohort, np.array([_share_of(mask, rows.shape[1]) for mask in kept])),
            },
        )
        return aggregation, {"clients": clients}

    def _kept(self, row: torch.Tensor, memory: Mapping[str, Any] | None) -> torch.Tensor | None:
        """Return which entries count, bool `[P]`; None for all, in a client's first round."""
        import torch

        if memory is None:
            return None
        rounds: int = memory["rounds"]
        counts: torch.Tensor = memory["counts"]
        # With whole counts, count / rounds > τ is count >= ⌊τ rounds⌋ + 1, with τ as it was written.
        least = int(Fraction(str(self.tau)) * rounds) + 1
        if least > rounds:  # τ = 1; such numbers would also wrap around in one byte
            return torch.zeros_like(row, dtype=torch.bool)
        nonnegative = row >= 0
        return (nonnegative & (counts >= least)) | (~nonnegative & (counts <= rounds - least))

    def _shares(self, cohort: Cohort, clients: Mapping[int, Any], distances: np.ndarray) -> np.ndarray:
        """Return the share of each participant in the distance moved, `[m]`; equal if nobody moved."""
        total = float(distances.sum())
        if self.share == "all_seen":
            absent = clients.keys() - set(cohort.client_ids)
            total += sum(clients[client]["distance"] for client in sorted(absent))
        return distances / total if total > 0 else np.full(cohort.size, 1.0 / cohort.size)


def _distance(row: torch.Tensor, kept: torch.Tensor | None, spans: tuple[slice, ...]) -> float:
    """Return the sum of the norms of the masked parameter tensors, in the row's units."""
    masked = _masked(row, kept)[None]
    return float(sum(math.sqrt(squared_norms(masked[:, span])[0]) for span in spans))


def _masked(row: torch.Tensor, kept: torch.Tensor | None) -> torch.Tensor:
    return row if kept is None else row * kept  # rows are finite; several times faster than a selection


def _count(counts: torch.Tensor | None, row: torch.Tensor, rounds: int) -> torch.Tensor:
    """Return how often each entry was nonnegative, `[P]`, after one more round; one byte while that suffices."""
    import torch

    nonnegative = row >= 0
    if counts is None:
        return nonnegative.to(torch.uint8)
    if rounds + 1 > 255 and counts.dtype == torch.uint8:
        counts = counts.to(torch.int16)
    elif rounds + 1 > 32767 and counts.dtype == torch.int16:
        counts = counts.to(torch.int32)
    return counts.add_(nonnegative)


def _masked_mean(rows: torch.Tensor, kept: list[torch.Tensor | None], weights: np.ndarray) -> torch.Tensor:
    """Return Σ a_i M_i Δ_i / Σ a_i M_i per entry, `[P]`; 0 where no client counts."""
    import torch

    total, share = torch.zeros_like(rows[0]), torch.zeros_like(rows[0])
    for row, mask, weight in zip(rows, kept, weights.tolist(), strict=True):
        total.add_(_masked(row, mask), alpha=weight)
        if mask is None:
            share.add_(weight)
        else:
            share.add_(mask, alpha=weight)
    return torch.where(share > 0, total / share, 0.0)


def _share_of(mask: torch.Tensor | None, size: int) -> float:
    return 1.0 if mask is None else int(mask.sum()) / size
