"""Ditto: a global model by uniform averaging, and a personal model beside it on every client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, State


@dataclass(frozen=True, kw_only=True)
class Ditto(Aggregator):
    """Uniform mean of the pseudo-gradients; the fairness is on the clients (Li et al., ICML 2021, Algorithm 1).

    Each client of a round trains two models on the same batches and with the same rate: the global one, and its
    own, v <- v - lr (grad F_i(v) + lambda (v - w_t)), which it keeps; the personal step comes first, as in the
    authors' code. A client that never took part has v = w_0. The authors report the personal models; as an
    aggregation rule Ditto is the unweighted FedAvg. Authors sample clients in proportion to their examples; here
    all rules sample uniformly.

    The rows named Ditto in the FedMDFG and FedLF papers are another algorithm, kept as `ditto_variant: gfedplat`
    for reproduction only: no personal model; each local step is followed by a second one with the same gradient
    plus lambda (w - w_t), on the only model; and the server moves a 1/N-th of the way to one client after the
    other, so that the result depends on their order (here ascending client id) and is about m/N of FedAvg's step.
    """

    name: ClassVar[str] = "ditto"
    title: ClassVar[str] = "Ditto"
    paper: ClassVar[str] = "Li et al., ICML 2021"
    idea: ClassVar[str] = "average uniformly; each client keeps a personal model that is pulled to the global one"
    cost: ClassVar[str] = "m P"

    lam: Annotated[
        float,
        Param(
            "Pull of the personal models to the global one; 0 trains them alone.",
            symbol="λ",
            grid=(0.1, 0.5, 1.0, 2.0),
            ge=0,
        ),
    ] = 1.0

    ditto_variant: Annotated[
        Literal["paper", "gfedplat"],
        Param("The authors' algorithm, or what FedLF's platform calls Ditto; the latter for reproduction only."),
    ] = "paper"

    @property
    def needs(self) -> Needs:
        """A personal model per client, or the platform's second step, both with the proximal term."""
        if self.ditto_variant == "gfedplat":
            return Needs(repeated_step_proximal=self.lam)
        return Needs(personal_proximal=self.lam)

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the mean, or the sum of the platform's steps; the server keeps nothing."""
        from fedpcd_cli.api import combine

        if self.ditto_variant == "gfedplat":
            # w <- w + (w_i - w)/N, one client after the other: earlier moves shrink with each later one.
            order = np.argsort(np.argsort(cohort.client_ids))
            weights = (1.0 - 1.0 / cohort.n_clients) ** (cohort.size - 1 - order) / cohort.n_clients
        else:
            weights = np.full(cohort.size, 1.0 / cohort.size)
        direction = combine(cohort.pseudo_gradients, weights)
        return Aggregation(direction=direction, client_coefficients=weights), state
