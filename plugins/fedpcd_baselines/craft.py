"""CRAFT: prescribed alignment with every client, as near as possible to the previous step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Param, ServerContext, State

if TYPE_CHECKING:
    import torch

# An eigenvalue of a float64 Gram matrix of k unit rows is rounding below k times this.
_EIGENVALUE_ROUNDING = 2.0**-50
# Float32 products will do where the smallest eigenvalue that counts exceeds their rounding this many times.
_FLOAT32_ROUNDING, _MARGIN = 2.0**-22, 1e4


@dataclass(frozen=True, eq=False, kw_only=True)
class _GroupSolution:
    """x of one layer group: `previous` times the last one plus a combination of the cohort's rows.

    Attributes:
        previous: Factor of the previous x.
        coefficients: Factor of each row, float64 `[m]`.
        rank: Directions among the clients that are above the cut-off.
        clients: Clients that moved in this group.
    """

    previous: float
    coefficients: np.ndarray
    rank: int
    clients: int


@dataclass(frozen=True, kw_only=True)
class CRAFT(Aggregator):
    """Controlled alignment of the step with every client (Wang, Liu, Thuerey, arXiv 2605.21317).

    In every layer group, x is the vector nearest to the unit vector of the previous x whose product with each
    client's unit fragment is the client's share of examples: x = ĝ + U⁺(w - U ĝ). The step is `server_lr` times
    x, whatever the lengths of the updates and with no decay: the direction is x · server_lr / local_lr, and the
    recipe's `server.lr` multiplies it further, so leave that at 1.

    As in the authors' code: clients that stand still in a group don't count there; one client alone gives its
    raw displacement; the pseudo-inverse drops singular values below max(m, d_l) 2⁻²³ of the largest (torch's
    default for float32), in every precision. That is no rounding guard but the rule's regularizer: for a layer
    with 600,000 parameters it drops everything below 7% of the largest. Beside that, the Gram matrix of float64
    products drops what its rounding hides, 3e-8 √m of the largest, which matters only if `cutoff` is smaller.

    With linearly independent clients above the cut-off, Δ_i · x = w_i ‖Δ_i‖ in every group; contradicting ones
    (two clients with one direction and different shares) are met in the least-squares sense.
    """

    name: ClassVar[str] = "craft"
    title: ClassVar[str] = "CRAFT"
    paper: ClassVar[str] = "Wang, Liu, Thuerey, arXiv 2605.21317"
    idea: ClassVar[str] = "prescribed alignment with every client in every layer, nearest to the previous step"
    cost: ClassVar[str] = "m² P + m³ per layer group; memory P"

    server_lr: Annotated[
        float,
        Param(
            "Length of the step per layer group, constant; the authors use 0.1 and 1.",
            symbol="η_s",
            grid=(0.01, 0.03, 0.1, 0.3, 1.0),
            gt=0,
        ),
    ] = 0.1
    cutoff: Annotated[
        float,
        Param(
            "Singular values below this times max(m, d_l) of the largest are dropped; 2⁻²³ is the code's.",
            symbol="rtol",
            ge=0,
            le=1,
        ),
    ] = 2.0**-23

    def init(self, context: ServerContext) -> State:
        """Return the memory before the first step."""
        return {"previous": None}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the aligned step; the previous one is replaced in place."""
        from fedpcd_cli.api import combine

        rows, previous = cohort.pseudo_gradients, state["previous"]
        spans = cohort.layout.group_spans
        solutions = [self._solve(cohort, previous, span) for span in spans]
        x = rows.new_zeros(rows.shape[1]) if previous is None else previous
        for span, solution in zip(spans, solutions, strict=True):
            part = x[span]
            if solution.previous == 0:
                part.zero_()
            else:
                part.mul_(solution.previous)
            combine(rows[:, span], solution.coefficients, out=part)
        aggregation = Aggregation(
            direction=x * (self.server_lr / cohort.local_lr),
            diagnostics={
                "rank": [solution.rank for solution in solutions],
                "clients": [solution.clients for solution in solutions],
            },
        )
        return aggregation, {"previous": x}

    def _solve(self, cohort: Cohort, previous: torch.Tensor | None, span: slice) -> _GroupSolution:
        """Return x of one group as factors of the previous x and of the cohort's pseudo-gradients."""
        rows = cohort.pseudo_gradients
        coefficients = np.zeros(cohort.size)
        gram = self._gram(rows, span)
        norms = np.sqrt(np.diag(gram))
        live = np.flatnonzero(norms > 0)
        if live.size < 2:
            coefficients[live] = cohort.local_lr  # the raw displacement; x is in no unit otherwise
            return _GroupSolution(previous=0.0, coefficients=coefficients, rank=live.size, clients=live.size)
        unit = gram[np.ix_(live, live)] / norms[live][:, None] / norms[live][None, :]
        missing = cohort.n_examples[live] / cohort.n_examples[live].sum()
        factor = 0.0
        if previous is not None:
            length, products = _along(rows, previous, span)
            if length > 0:
                factor = 1.0 / length
                missing = missing - products[live] / (length * norms[live])
        values, vectors = np.linalg.eigh(unit)
        cut = (self._relative_cutoff(live.size, span) ** 2) * values[-1]
        kept = values > max(cut, live.size * _EIGENVALUE_ROUNDING * values[-1])
        basis = vectors[:, kept]
        coefficients[live] = basis @ ((basis.T @ missing) / values[kept]) / norms[live]
        return _GroupSolution(previous=factor, coefficients=coefficients, rank=int(kept.sum()), clients=live.size)

    def _relative_cutoff(self, n_clients: int, span: slice) -> float:
        return float(max(n_clients, span.stop - span.start) * self.cutoff)

    def _gram(self, rows: torch.Tensor, span: slice) -> np.ndarray:
        """Return the Gram matrix of the group, `[m, m]`, accurate enough for the squared cut-off."""
        from fedpcd_cli.api import gram_matrix

        if self._relative_cutoff(rows.shape[0], span) ** 2 > _MARGIN * _FLOAT32_ROUNDING:
            gram = gram_matrix(rows, span=span)
            squares = np.diag(gram)
            if bool(((squares > 1e-28) & (squares < 1e30)).all()):
                return gram
        return gram_matrix(rows, span=span, exact=True)


def _along(rows: torch.Tensor, previous: torch.Tensor, span: slice) -> tuple[float, np.ndarray]:
    """Return the length of the previous x in one group and its products with all rows, `[m]`."""
    from fedpcd_cli.api import inner_products

    square = float(inner_products(previous[None], previous[None], span=span, exact=True)[0, 0])
    return math.sqrt(square), inner_products(rows, previous[None], span=span, exact=True)[:, 0]
