"""FedMGDA+: the shortest combination of normalized updates near given weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_baselines.losses import by_client
from fedpcd_baselines.products import gram_in_range
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Param, State


@dataclass(frozen=True, kw_only=True)
class FedMGDAPlus(Aggregator):
    """Box-constrained multiple-gradient descent (Hu et al., IEEE TNSE 2022, Algorithm 1, Eq. 25).

    With u_i = g_i / ||g_i|| the step is eta_g sum_i lambda_i u_i, where lambda minimizes ||sum_i lambda_i u_i||²
    over the simplex, each entry within epsilon of its initial weight. epsilon = 0 is the mean of the normalized
    updates; epsilon = 1 is MGDA, a direction that no client of the round opposes to first order. The result is
    not normalized again: its length is at most eta_g, whatever the clients' lengths. A client whose update is
    zero is left out of the program (the codes end in NaN or a solver's error).

    Initial weights are uniform and eta_g is 1, decayed with the local rate: the paper leaves the first free and
    decays the second in steps; a co-author's code has uniform weights and a constant 1. `lambda0: data` with
    `server_step: lr` is FedLF's and easyFL's code, whose steps are far shorter than a client's own. `server.lr`
    multiplies eta_g.
    """

    name: ClassVar[str] = "fedmgda-plus"
    title: ClassVar[str] = "FedMGDA+"
    paper: ClassVar[str] = "Hu et al., IEEE TNSE 2022"
    idea: ClassVar[str] = "shortest mixture of normalized updates, weights within ε of the initial ones"
    cost: ClassVar[str] = "m² P + QP(m)"

    epsilon: Annotated[
        float,
        Param(
            "How far a weight may move from its initial value: 0 is the normalized mean, 1 is MGDA.",
            symbol="ε",
            grid=(0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0),
            ge=0,
            le=1,
        ),
    ] = 0.1
    eta_g: Annotated[
        float,
        Param("Length of the step if all clients agree.", symbol="η_g", grid=(0.1, 0.5, 1.0, 1.5, 2.0), gt=0),
    ] = 1.0
    lambda0: Annotated[
        Literal["uniform", "data"],
        Param("Initial weights: all equal, or the share of the cohort's examples.", symbol="λ⁰"),
    ] = "uniform"
    server_step: Annotated[
        Literal["decayed", "constant", "lr"],
        Param("η_g decays as the local rate does, stays constant, or is multiplied by the local rate itself."),
    ] = "decayed"

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the shortest mixture; the state is the local rate of the first round."""
        from fedpcd_cli.api import combine, minimum_norm

        first_lr = float(state.get("first_lr", cohort.local_lr))
        rows = cohort.pseudo_gradients
        gram = gram_in_range(rows)
        norms = np.sqrt(np.diag(gram))
        moved = np.flatnonzero(norms > 0)
        coefficients = np.zeros(cohort.size)
        diagnostics: dict[str, Any] = {}
        if moved.size:
            inverse = 1.0 / norms[moved]
            initial = np.ones(moved.size) if self.lambda0 == "uniform" else cohort.client_weights[moved]
            initial = initial / initial.sum()
            solution = minimum_norm(
                gram[np.ix_(moved, moved)] * inverse[:, None] * inverse[None, :],
                lower=np.maximum(0.0, initial - self.epsilon),
                upper=np.minimum(1.0, initial + self.epsilon),
            )
            coefficients[moved] = self._rate(cohort.local_lr, first_lr) * solution.weights * inverse
            weights = np.zeros(cohort.size)
            weights[moved] = solution.weights
            diagnostics = {
                "weights": by_client(cohort, weights),
                "norm": float(np.sqrt(solution.squared_norm)),
                "residual": float(solution.residual),
            }
        if moved.size < cohort.size:
            diagnostics["zero_updates"] = [cohort.client_ids[row] for row in np.flatnonzero(norms == 0)]
        direction = combine(rows, coefficients)
        aggregation = Aggregation(direction=direction, client_coefficients=coefficients, diagnostics=diagnostics)
        return aggregation, {"first_lr": first_lr}

    def _rate(self, local_lr: float, first_lr: float) -> float:
        """Return the step's length over the local rate, by which the engine multiplies the direction."""
        if self.server_step == "lr":
            return self.eta_g
        return self.eta_g / (first_lr if self.server_step == "decayed" else local_lr)
