"""FedLF: a fair direction layer by layer, with the absent clients' last updates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_baselines.losses import finite_losses
from fedpcd_baselines.products import mean_length, squared_norms
from fedpcd_cli.api import Aggregation, Aggregator, Cohort, Needs, Param, ServerContext, State

# Conflict that the authors' guard tolerates, and what is rounding relative to the lengths.
_GUARD, _GUARD_ROUNDING = 1e-6, 1e-9


@dataclass(frozen=True, kw_only=True)
class FedLF(Aggregator):
    """Layer-wise fair direction (Pan et al., AAAI 2024, Algorithm 1, Eq. 5-8 and appendix A.1).

    In every layer, the shortest vector in the convex hull of the clients' fragments, of the gradient of the
    fairness objective -cos(1, F) and of the last fragments of clients that are absent now: it conflicts with
    none of them. The layers are joined and rescaled to the length of the plain uniform mean.

    Paper and authors' code (gfedplat) differ. From the code: all fragments of a layer get the mean length of the
    cohort's, absent clients count for ⌊M/m⌋ rounds (M clients stored), and layers that stand still are not
    merged. From the paper: pseudo-gradients come from local training (the code trains nothing and sends one
    full-batch gradient: `gradient: full_batch`), a layer is the weight and bias of a module (the code takes every
    tensor by itself: `grouping: tensor`); `merge_zero_layers` follows the paper too.

    Where the code fails: fragments of length zero are left out of their layer; with equal losses there is no
    fair row; a direction that is zero, up to rounding, is no step. The authors' guard against conflicts of more
    than 1e-6 is kept and stays idle, because the programs are solved exactly; it ignores what is rounding at the
    scale of the updates.

    The memory holds one update per client seen, N P numbers, and the products of all pairs per layer, N² per
    layer: only products with the current cohort are computed in a round.
    """

    name: ClassVar[str] = "fedlf"
    title: ClassVar[str] = "FedLF"
    paper: ClassVar[str] = "Pan et al., AAAI 2024"
    idea: ClassVar[str] = (
        "in every layer the shortest vector that conflicts with no client, absent ones included, nor with fairness"
    )
    cost: ClassVar[str] = "m (m + K) P + QP(m + K + 1) per layer, K = absent clients remembered; memory N P"

    grouping: Annotated[
        Literal["layer", "tensor"],
        Param("A layer is the weight and bias of one module, as in the paper, or one tensor, as in the code."),
    ] = "layer"
    merge_zero_layers: Annotated[
        bool,
        Param("Solve a layer that stands still again together with the next one, as in the paper."),
    ] = False
    gradient: Annotated[
        Literal["local", "full_batch"],
        Param("Clients train locally, as in the paper, or send one full-batch gradient, as in the code."),
    ] = "local"

    @property
    def needs(self) -> Needs:
        """F_i, the loss at the received model; a full-batch gradient in place of local training if asked for."""
        return Needs(received_loss=True, full_batch_gradient=self.gradient == "full_batch")

    def init(self, context: ServerContext) -> State:
        """Return an empty memory."""
        return {"clients": {}, "rows": None, "grams": np.zeros((0, 0, 0))}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the fair direction, and the memory with the cohort's updates in it."""
        from fedpcd_baselines.fedlf_history import assemble, recall, remember
        from fedpcd_baselines.fedlf_layers import fairness_weights, products_with, solve_layers

        losses = finite_losses(cohort, cohort.received_losses, self.name)
        rows = cohort.pseudo_gradients
        direction = rows.new_zeros(rows.shape[1])
        if losses.rows.size == 0:
            return self._aggregation(direction, losses.diagnostics, losses.warnings), state
        if losses.rows.size < cohort.size:
            rows = rows[losses.rows]
        ids = [cohort.client_ids[row] for row in losses.rows]
        layout = cohort.layout
        spans = layout.tensor_spans if self.grouping == "tensor" else layout.group_spans
        slots, window = recall(state, ids, cohort.round_index)
        system = assemble(state, rows, spans, slots)
        h = fairness_weights(losses.values)
        vanishing = 1e-8 if rows.element_size() == 8 else 4e-6  # the spec's limit; rounding of a float32 sum
        steps = solve_layers(system, h, merge=self.merge_zero_layers, vanishing=vanishing)
        for step in steps:
            system.add_to(direction, step.layers, step.coefficients)
        length = math.sqrt(squared_norms(direction[None])[0])
        scale, guarded = 0.0, False
        if length > 0:
            total = system.gram(range(len(spans)))[: len(ids), : len(ids)]
            target = mean_length(rows, total, np.arange(len(ids)))
            norms = np.sqrt(np.diag(total))
            scale, guarded = _guard(products_with(system, steps), norms, length, target / length)
        facts = {
            **losses.diagnostics,
            "history": int(slots.size),
            "history_rounds": window,
            "fair_row": bool(h.any()),
            "zero_layers": [layer for step in steps if step.is_zero for layer in step.layers],
            "residual": max(float(step.residual) for step in steps),
        }
        if self.merge_zero_layers:
            facts["merged_layers"] = [list(step.layers) for step in steps if len(step.layers) > 1]
        if guarded:
            facts["guarded"] = True
        aggregation = self._aggregation(direction.mul_(scale), facts, losses.warnings)
        return aggregation, remember(state, system, ids, cohort.n_clients, cohort.round_index)

    @staticmethod
    def _aggregation(direction: Any, facts: dict[str, Any], warnings: tuple[str, ...]) -> Aggregation:
        return Aggregation(direction=direction, diagnostics=facts, warnings=warnings)


def _guard(products: np.ndarray, norms: np.ndarray, length: float, scale: float) -> tuple[float, bool]:
    """Return the factor of the direction, and whether the guard (step 5) changed it.

    Args:
        products: g_i · d, `[m]`.
        norms: ‖g_i‖, `[m]`.
        length: ‖d‖.
        scale: The factor that gives d the length of the uniform mean.
    """
    wanted = scale
    rounding = _GUARD_ROUNDING * norms * length
    while float((-products - rounding).max()) * scale > _GUARD:
        if scale <= 2.0:
            return 1.0, True
        scale /= 2.0
    return scale, scale != wanted
