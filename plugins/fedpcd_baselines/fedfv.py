"""FedFV: project conflicts out, first within the cohort, then against earlier cohorts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_baselines.losses import finite_losses
from fedpcd_baselines.products import gram_in_range, mean_length, squared_norms
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, ServerContext, State

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class FedFV(Aggregator):
    """Federated fair averaging (Wang et al., IJCAI 2021, Algorithms 1-3, as in the authors' easyFL v1.0).

    Clients are ordered by the loss at the received model. Each update is made orthogonal, one after the other in
    that order, to every update that it conflicts with; those with the largest losses stay as they are. The mean
    of the results is then made orthogonal to the sum of the conflicting updates of the last `tau` rounds, and
    rescaled to the length of the plain uniform mean. Equal losses are ordered by client id.

    All of the first part happens in coefficients, on the Gram matrix. An earlier update counts while its client
    has not taken part since. The state holds the update matrices of the last `tau` rounds as the engine made
    them, tau m P numbers: an update's scale cancels in step two, so pseudo-gradients serve as displacements.

    Later versions of the authors' code (FLGo) look at the current cohort and the tau - 1 rounds before it:
    `fedfv_external: flgo`. With more than two clients the result may still conflict with some. A combination that
    cancels to rounding is no step (the authors' code divides by zero).
    """

    name: ClassVar[str] = "fedfv"
    title: ClassVar[str] = "FedFV"
    paper: ClassVar[str] = "Wang et al., IJCAI 2021"
    idea: ClassVar[str] = (
        "project conflicting updates off each other, largest losses last, then off earlier rounds"
    )
    cost: ClassVar[str] = "m² P + τ m P + m³"

    alpha: Annotated[
        float,
        Param(
            "Share of clients, those with the largest losses, whose updates are not projected.",
            symbol="α",
            grid=(0.1, 0.2, 0.5),
            ge=0,
            le=1,
        ),
    ] = 0.1
    tau: Annotated[
        int,
        Param(
            "How many rounds back conflicts with absent clients are mitigated; 0 for none.",
            symbol="τ",
            grid=(0, 1, 2, 3, 10),
            ge=0,
        ),
    ] = 1
    fedfv_external: Annotated[
        Literal["v1.0", "flgo"],
        Param("Rounds t-τ ... t-1 as in the paper and easyFL v1.0, or t-τ+1 ... t as in FLGo."),
    ] = "v1.0"

    @property
    def needs(self) -> Needs:
        """F_i, the loss at the received model, and the update matrix itself for the rounds to come."""
        return Needs(received_loss=True, keeps_updates=self._window > 0)

    @property
    def _window(self) -> int:
        """Number of past rounds that a round looks at."""
        return self.tau if self.fedfv_external == "v1.0" else max(0, self.tau - 1)

    def init(self, context: ServerContext) -> State:
        """Return the memory of no rounds."""
        return {"rounds": {}}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the projected mean and the memory with this round in it."""
        from fedpcd_cli.api import combine

        losses = finite_losses(cohort, cohort.received_losses, self.name)
        rows, used = cohort.pseudo_gradients, losses.rows
        if used.size == 0:
            aggregation = Aggregation(
                direction=combine(rows, np.zeros(cohort.size)),
                diagnostics=losses.diagnostics,
                warnings=losses.warnings,
            )
            return aggregation, state
        ids = np.array(cohort.client_ids, dtype=np.int64)
        gram = gram_in_range(rows)
        order = used[np.lexsort((ids[used], losses.values))]
        kept = order[math.ceil((order.size - 1) * (1 - self.alpha)) :] if self.alpha > 0 else order[:0]
        projected, n_projections = _project_conflicts(gram, order, kept)
        coefficients = projected.sum(axis=0) / used.size
        fair = combine(rows, coefficients)
        size = float(np.abs(coefficients) @ np.sqrt(np.diag(gram)))  # of the terms of the sum
        memory = _remember(state["rounds"], cohort, used, self._window)
        conflicting = self._mitigate(fair, cohort, memory)
        length = math.sqrt(squared_norms(fair[None])[0])
        target = mean_length(rows, gram, used)
        scale = target / length if length > _rounding(fair) * size else 0.0
        aggregation = Aggregation(
            direction=fair.mul_(scale),
            client_coefficients=None if conflicting else coefficients * scale,
            diagnostics={
                **losses.diagnostics,
                "kept": [int(client) for client in np.sort(ids[kept])],
                "projections": n_projections,
                "external_conflicts": conflicting,
            },
            warnings=losses.warnings,
        )
        memory = {t: entry for t, entry in memory.items() if t > cohort.round_index - self._window}
        return aggregation, {"rounds": memory}

    def _mitigate(self, fair: torch.Tensor, cohort: Cohort, memory: Mapping[int, Any]) -> dict[str, list[int]]:
        """Make `fair`, `[P]`, orthogonal in place to the conflicting updates of each round, oldest first.

        Returns:
            The conflicting clients of each round that changed something, by round.
        """
        from fedpcd_cli.api import combine, inner_products

        found: dict[str, list[int]] = {}
        t = cohort.round_index
        if t - 1 < self.tau:  # the authors count rounds from 0
            return found
        newest = t - 1 if self.fedfv_external == "v1.0" else t
        for source in range(newest - self.tau + 1, newest + 1):
            if source not in memory:
                continue
            updates, present = memory[source]["updates"], memory[source]["rows"]
            members = np.array(list(present.values()), dtype=np.int64)
            products = inner_products(updates, fair[None])[:, 0]
            against = members[products[members] < 0]
            if against.size == 0:
                continue
            indicator = np.zeros(updates.shape[0])
            indicator[against] = 1.0
            opposed = combine(updates, indicator)
            square = squared_norms(opposed[None])[0]
            fair.add_(opposed, alpha=-float(products[against].sum()) / square)
            found[str(source)] = sorted(client for client, row in present.items() if products[row] < 0)
        return found


def _project_conflicts(gram: np.ndarray, order: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the projected updates as coefficients of the original ones, `[m, m]`, and how often one was changed.

    Row i is what became of update i. Every update meets the originals in the same order, so all are projected
    off one original at a time.
    """
    coefficients = np.zeros_like(gram)
    coefficients[order, order] = 1.0
    free = np.setdiff1d(order, kept)
    count = 0
    for j in order:
        square = gram[j, j]
        products = coefficients[free] @ gram[:, j]
        conflicting = (products < 0) & (free != j)
        if square == 0 or not conflicting.any():
            continue
        coefficients[free[conflicting], j] -= products[conflicting] / square
        count += int(conflicting.sum())
    return coefficients, count


def _remember(rounds: Mapping[int, Any], cohort: Cohort, used: np.ndarray, window: int) -> dict[int, Any]:
    """Return the last rounds and this one, `{round: {rows: {client: row}, updates: [m, P]}}`.

    A client stays in its newest round only; rounds that nobody is left in are forgotten.
    """
    seen = {cohort.client_ids[row]: int(row) for row in used}
    memory: dict[int, Any] = {}
    for t, entry in rounds.items():
        left = {client: row for client, row in entry["rows"].items() if client not in seen}
        if left and t >= cohort.round_index - window:
            memory[t] = {"rows": left, "updates": entry["updates"]}
    memory[cohort.round_index] = {"rows": seen, "updates": cohort.pseudo_gradients}
    return memory


def _rounding(vector: torch.Tensor) -> float:
    """Return the length of a sum, relative to its terms, below which it is rounding."""
    import torch

    return 32 * torch.finfo(vector.dtype).eps
