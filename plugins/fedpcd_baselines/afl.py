"""AFL: descent on the model, ascent on the mixture of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_baselines.losses import by_client, finite_losses
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, ServerContext, State

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class AFL(Aggregator):
    """Agnostic federated learning (Mohri, Sivek, Suresh, ICML 2019, Stochastic-AFL).

    min over w, max over lambda in the simplex of sum_i lambda_i F_i(w). A round steps along the
    lambda-weighted mean of the cohort's pseudo-gradients, then takes lambda one projected ascent step along the
    losses at the received model; both use the old point, as in the paper. Evaluated is the running mean of the
    iterates w_0, w_1, ..., as in the paper; training goes on from the newest one.

    lambda has one entry per client of the federation and starts uniform. No code of the authors is public.
    FedLF's and FedMDFG's code keeps one entry per *position* in the cohort instead, which follows no client once
    cohorts change; `afl_state: slot` reproduces that (with an exact projection, where that code divides by
    rho + 1e-6). Other codes update lambda first, or test the projection's threshold against the wrong sum;
    neither is followed.
    """

    name: ClassVar[str] = "afl"
    title: ClassVar[str] = "AFL"
    paper: ClassVar[str] = "Mohri et al., ICML 2019"
    idea: ClassVar[str] = "play against the worst mixture of clients; evaluate the mean of all iterates"
    cost: ClassVar[str] = "m P + N log N"

    gamma_lambda: Annotated[
        float,
        Param(
            "Step of the ascent on the mixture; 0 keeps it uniform, a large one leaves few clients.",
            symbol="γ_λ",
            grid=(0.01, 0.1, 0.5),
            ge=0,
        ),
    ] = 0.01
    afl_state: Annotated[
        Literal["client", "slot"],
        Param("One mixture weight per client, or per position in the cohort as in FedLF's code.", symbol="λ"),
    ] = "client"
    evaluate: Annotated[
        Literal["mean", "last"],
        Param("Evaluate the mean of all iterates, as the paper does, or the newest one."),
    ] = "mean"

    @property
    def needs(self) -> Needs:
        """F_i, the loss at the received model."""
        return Needs(received_loss=True)

    def init(self, context: ServerContext) -> State:
        """Return the uniform mixture, `[N]` (`[m]` for slots), and w_0 as the mean of one iterate."""
        size = context.n_clients if self.afl_state == "client" else context.cohort_size
        state: dict[str, Any] = {"mixture": np.full(size, 1.0 / size)}
        if self.evaluate == "mean":
            state |= {"mean": context.params.clone(), "steps": 0}
        return state

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Step by the old mixture, then move the mixture and the mean of the iterates."""
        from fedpcd_cli.api import combine, project_simplex

        losses = finite_losses(cohort, cohort.received_losses, self.name)
        rows, mixture = cohort.pseudo_gradients, np.array(state["mixture"])
        weights = np.zeros(cohort.size)
        if losses.rows.size == 0:
            aggregation = Aggregation(
                direction=combine(rows, weights),
                client_coefficients=weights,
                diagnostics=losses.diagnostics,
                warnings=losses.warnings,
            )
            return aggregation, state
        entries = losses.rows
        if self.afl_state == "client":
            entries = np.array(cohort.client_ids, dtype=np.int64)[losses.rows]
        share = mixture[entries]
        total = share.sum()
        weights[losses.rows] = share / total if total > 0 else 1.0 / share.size
        direction = combine(rows, weights)
        mixture[entries] += self.gamma_lambda * losses.values
        mixture = project_simplex(mixture)
        next_state: dict[str, Any] = {"mixture": mixture}
        if self.evaluate == "mean":
            next_state |= self._next_mean(cohort, state, direction)
        after = np.zeros(cohort.size)
        after[losses.rows] = mixture[entries]
        aggregation = Aggregation(
            direction=direction,
            client_coefficients=weights,
            diagnostics={
                **losses.diagnostics,
                "weights": by_client(cohort, weights),
                "mixture_after": by_client(cohort, after),
                "mixture_support": int(np.count_nonzero(mixture)),
            },
            warnings=losses.warnings,
        )
        return aggregation, next_state

    def evaluated_params(self, params: torch.Tensor, state: State) -> torch.Tensor:
        """Return the mean of all iterates, w_0 among them, or the newest one."""
        mean: torch.Tensor = state["mean"] if self.evaluate == "mean" else params
        return mean

    @staticmethod
    def _next_mean(cohort: Cohort, state: State, direction: torch.Tensor) -> dict[str, Any]:
        """Move the mean of k points to that of k + 1, in place; the new one is w_t - server_lr lr d."""
        steps = int(state["steps"]) + 1
        share = 1.0 / (steps + 1)
        mean: torch.Tensor = state["mean"]
        mean.lerp_(cohort.params, share).add_(direction, alpha=-share * cohort.server_lr * cohort.local_lr)
        return {"mean": mean, "steps": steps}
