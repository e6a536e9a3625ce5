"""q-FFL: clients with a larger loss pull harder, by a power q."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedpcd_baselines.losses import by_client, finite_losses
from fedpcd_baselines.products import squared_norms
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, State

_LOSS_FLOOR = 1e-10
_SMALLEST_LOG = math.log(5e-324)  # below it float64 is zero
_FROZEN = 1e-3


@dataclass(frozen=True, kw_only=True)
class QFFL(Aggregator):
    """q-FedAvg, the federated solver of q-FFL (Li et al., ICLR 2020, Algorithm 2; the authors' code agrees).

    With f_i = F_i + 1e-10, F_i the loss at the received model, and L = 1 / lr the estimate of the Lipschitz
    constant, the step is u = sum_i f_i^q g_i / sum_i h_i, h_i = q f_i^(q-1) ||g_i||² + f_i^q / lr. No sum is
    weighted by examples, so q = 0 is the *uniform* mean. The authors sample clients in proportion to their
    examples; here all rules sample uniformly.

    For q < 1 a client with a loss near zero and a nonzero update makes h huge and all but stops the round. That
    is the rule; it is kept, and reported.
    """

    name: ClassVar[str] = "qffl"
    title: ClassVar[str] = "q-FFL"
    paper: ClassVar[str] = "Li et al., ICLR 2020"
    idea: ClassVar[str] = "weigh clients by a power of their loss, with a step length from a Lipschitz estimate"
    cost: ClassVar[str] = "m P"

    q: Annotated[
        float,
        Param(
            "Power of the loss: 0 is the uniform mean, larger is fairer and slower.",
            symbol="q",
            grid=(0.1, 0.2, 1.0, 2.0, 5.0, 15.0),
            ge=0,
        ),
    ] = 0.1

    @property
    def needs(self) -> Needs:
        """F_i, the loss at the received model."""
        return Needs(received_loss=True)

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the step of Algorithm 2 over the local rate; there is no state."""
        from fedpcd_cli.api import combine

        rows = cohort.pseudo_gradients
        losses = finite_losses(cohort, cohort.received_losses, self.name)
        coefficients = np.zeros(cohort.size)
        diagnostics: dict[str, Any] = losses.diagnostics
        warnings = losses.warnings
        if losses.rows.size:
            powers, curvatures = self._terms(losses.values, squared_norms(rows)[losses.rows], cohort.local_lr)
            total = powers.sum() + curvatures.sum()
            if total > 0:
                coefficients[losses.rows] = powers / total
                shortening = float(powers.sum() / total)
                diagnostics["shortening"] = shortening
                diagnostics["coefficients"] = by_client(cohort, coefficients)
                if shortening < _FROZEN:
                    row = losses.rows[int(curvatures.argmax())]
                    warnings = (
                        *warnings,
                        f"round {cohort.round_index}: q-FFL shortens the step to {shortening:.2g} of the mean; "
                        f"client {cohort.client_ids[row]} weighs most (small loss or long update)",
                    )
        direction = combine(rows, coefficients)
        aggregation = Aggregation(
            direction=direction, client_coefficients=coefficients, diagnostics=diagnostics, warnings=warnings
        )
        return aggregation, state

    def _terms(self, losses: np.ndarray, squares: np.ndarray, local_lr: float) -> tuple[np.ndarray, np.ndarray]:
        """Return f^q and lr q f^(q-1) ||g||², `[k]` each, both over the largest f^q; zeros if that underflows.

        The ratio of the sums needs no more, and neither leaves the range of float64 for a large q.
        """
        f = np.maximum(losses, 0.0) + _LOSS_FLOOR
        top = float(f.max())
        if self.q * math.log(top) < _SMALLEST_LOG:
            return np.zeros_like(f), np.zeros_like(f)
        powers = (f / top) ** self.q
        with np.errstate(over="ignore"):  # an infinite h is the frozen round
            return powers, local_lr * self.q * (powers / f) * squares
