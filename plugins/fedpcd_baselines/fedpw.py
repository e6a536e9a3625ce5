"""FedPW: weights from loss and consensus, small entries dropped, agreed ones amplified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedpcd_baselines.losses import FiniteLosses, finite_losses
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, ServerContext, State


@dataclass(frozen=True, kw_only=True)
class FedPW(Aggregator):
    """Fairness from parameter and client view (Guan et al., NeurIPS 2025, Eq. 5-11).

    Clients (Eq. 9-11): a client's share of the losses and its share of the consensus Δ_i · Σ Δ_j drive two
    momenta; the criterion that spreads more among the clients has the larger say in their weights. Parameters
    (Eq. 5, 7), from the second round on and tensor by tensor: every client loses its smallest entries, those
    with low losses more of them; the entries on which the clients agree most are amplified by what was dropped.

    The authors' code, which is followed here, serves full participation only, and fails for one client. Here
    sums run over the participants and a newcomer starts from its present shares; with all clients present both
    agree. The loss is the mean of the batch losses during local training. Where the code divides by zero: equal
    shares; a client that loses a whole tensor has no say in where the others agree there; entries that are zero
    for everybody are not amplified; equal entries are taken by index. Momenta grow without bound if losses grow
    far beyond the first round's, which ends in an error. Sums of shares that cancel count as equal shares.
    Buffers are averaged by the engine.
    """

    name: ClassVar[str] = "fedpw"
    title: ClassVar[str] = "FedPW"
    paper: ClassVar[str] = "Guan et al., NeurIPS 2025"
    idea: ClassVar[str] = "weigh clients by loss and consensus, drop small entries, amplify agreed ones"
    cost: ClassVar[str] = "m P + sorting of the dropped shares of m P and of P entries"

    beta: Annotated[
        float,
        Param(
            "Weight of a round's shares in the momenta, times the growth of loss or consensus since round 1.",
            symbol="β",
            ge=0,
            le=1,
        ),
    ] = 0.3
    avg_drop_rate: Annotated[
        float,
        Param(
            "Average share of a client's entries that is dropped, and share that is amplified.",
            symbol="r",
            ge=0,
            le=1,
        ),
    ] = 0.3

    @property
    def needs(self) -> Needs:
        """L_i, the mean batch loss during local training."""
        return Needs(running_loss=True)

    def init(self, context: ServerContext) -> State:
        """Return the memory before the first round."""
        return {"clients": {}, "first": None}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the weighted, adjusted mean and the clients' new weights.

        Raises:
            FedPCDError: A momentum has overflowed.
        """
        from fedpcd_baselines.fedpw_weights import drop_rates, loss_shares
        from fedpcd_cli.api import combine

        losses = finite_losses(cohort, cohort.running_losses, self.name, "running loss")
        rows = cohort.pseudo_gradients
        if losses.rows.size == 0:
            nothing = Aggregation(
                direction=combine(rows, np.zeros(cohort.size)),
                diagnostics=losses.diagnostics,
                warnings=losses.warnings,
            )
            return nothing, state
        if losses.rows.size < cohort.size:
            rows = rows[losses.rows]
        ids = [cohort.client_ids[row] for row in losses.rows]
        weights, memory = self._weights(cohort, losses, rows, ids, state)
        facts: dict[str, Any] = {**losses.diagnostics, "weights": _named(ids, weights)}
        is_first = state["first"] is None
        if is_first:
            direction = combine(rows, weights)
        else:
            from fedpcd_baselines.fedpw_tensors import adjust_tensor

            rates = drop_rates(loss_shares(losses.values), self.avg_drop_rate)
            direction = rows.new_zeros(rows.shape[1])
            reports = [
                adjust_tensor(rows[:, span], weights, rates, self.avg_drop_rate, direction[span])
                for span in cohort.layout.tensor_spans
            ]
            facts |= {
                "drop_rates": _named(ids, rates),
                "amplified": sum(report.amplified for report in reports),
                "largest_gain": max(report.gain for report in reports),
            }
        aggregation = Aggregation(
            direction=direction,
            client_coefficients=losses.spread(weights, cohort.size) if is_first else None,
            diagnostics=facts,
            warnings=losses.warnings,
        )
        return aggregation, memory

    def _weights(
        self, cohort: Cohort, losses: FiniteLosses, rows: Any, ids: list[int], state: Mapping[str, Any]
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return λ, `[m]`, and the memory after this round (steps 1 to 5)."""
        from fedpcd_baselines.fedpw_weights import (
            Consensus,
            blend,
            loss_shares,
            memory_of,
            scaled_beta,
            track,
        )

        shares, consensus = loss_shares(losses.values), Consensus.of(rows, cohort.local_lr)
        mean_loss = float(losses.values.mean())
        first = state["first"] or {"loss": mean_loss, "consensus": consensus.mean}
        beta_loss = scaled_beta(self.beta, mean_loss, first["loss"])
        beta_consensus = (
            scaled_beta(self.beta, consensus.mean, first["consensus"]) if consensus.mean > 0 else self.beta
        )
        clients, where = state["clients"], f"fedpw, round {cohort.round_index}"
        loss, loss_momentum = track(clients, ids, "loss", shares, beta_loss, where)
        agreed, agreed_momentum = track(clients, ids, "consensus", consensus.shares, beta_consensus, where)
        kept = memory_of(ids, loss, loss_momentum, agreed, agreed_momentum)
        return blend(loss, agreed), {"clients": {**clients, **kept}, "first": first}


def _named(ids: list[int], values: np.ndarray) -> dict[str, float]:
    return {str(client): float(value) for client, value in zip(ids, values, strict=True)}
