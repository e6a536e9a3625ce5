"""FedAvg: the weighted mean of the pseudo-gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Param, State


@dataclass(frozen=True, kw_only=True)
class FedAvg(Aggregator):
    """Weighted mean of the pseudo-gradients (McMahan et al., AISTATS 2017, Algorithm 1).

    Clients are sampled uniformly and weighted by their examples; `uniform` weighs all equally.
    """

    name: ClassVar[str] = "fedavg"
    title: ClassVar[str] = "FedAvg"
    paper: ClassVar[str] = "McMahan et al., AISTATS 2017"
    idea: ClassVar[str] = "average the updates, weighted by examples"
    cost: ClassVar[str] = "m P"

    weights: Annotated[
        Literal["examples", "uniform"],
        Param("Weight of a client: its share of the cohort's examples, or all equal.", symbol="p"),
    ] = "examples"

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the mean; there is no state."""
        from fedpcd_cli.api import combine

        weights = cohort.client_weights if self.weights == "examples" else np.full(cohort.size, 1.0 / cohort.size)
        direction = combine(cohort.pseudo_gradients, weights)
        return Aggregation(direction=direction, client_coefficients=weights), state
