"""FedPCD: the admissible direction nearest to the average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from fedpcd_cli.aggregators.base import Aggregator, ServerContext, State
from fedpcd_cli.components import Param
from fedpcd_cli.rounds.aggregation import Aggregation
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.outcome import SolveStatus

if TYPE_CHECKING:
    from fedpcd_cli.pcd.decision import Decision
    from fedpcd_cli.pcd.history import RoundRows
    from fedpcd_cli.pcd.posing import Posed


@dataclass(frozen=True, kw_only=True)
class FedPCD(Aggregator):
    """Project the average onto the directions that give every client its share of progress.

    As proposed in Irshaid, Varam, AlHajri, "FedPCD: Priority-Constrained Federated Aggregation" (2026). With
    normalized pseudo-gradients g~_j of the cohort and of clients seen in the last H rounds, the direction is
    d~* = argmin ½||d~ - g~_0||² subject to g~_j · d~ >= tau ||g~_j||², rescaled to the length of the average. If
    the average satisfies every constraint, the direction is the average itself, bit for bit.

    Where the paper is silent: under `ema` only constraints are divided by moving norms, the average keeps its own
    norm; under `none` nothing is divided; a zero update is no constraint and leaves no history; a d~* of length
    zero makes no step. If the constraints contradict each other they do so for every tau > 0, because d~ may have
    any length; the smallest uniform cut (`on_infeasible: relax`) is therefore always the one to tau = 0.
    """

    name: ClassVar[str] = "fedpcd"
    title: ClassVar[str] = "FedPCD"
    paper: ClassVar[str] = "Irshaid, Varam, AlHajri, preprint 2026"
    idea: ClassVar[str] = "project the average onto the directions that give every client its share of progress"
    cost: ClassVar[str] = "m c P + QP(c), c = m + cached clients"

    tau: Annotated[
        float,
        Param(
            "Progress that every client is guaranteed, as a share of its own steepest one.",
            symbol="τ",
            grid=(0.0, 0.01, 0.02, 0.05, 0.1),
            ge=0,
            le=1,
        ),
    ] = 0.02
    history_rounds: Annotated[
        int,
        Param(
            "Rounds for which a client's last update stays a constraint.", symbol="H", grid=(0, 5, 10, 20), ge=0
        ),
    ] = 10
    normalization: Annotated[
        Literal["l2", "ema", "none"],
        Param("Divide updates by their norm, by a moving average of the client's norms, or not at all."),
    ] = "l2"
    ema_beta: Annotated[
        float,
        Param(
            "Decay of the moving average, for normalization ema only.", symbol="β", grid=(0.8, 0.999), ge=0, lt=1
        ),
    ] = 0.999
    primary: Annotated[
        Literal["fedavg", "none"],
        Param("Stay near the average (fedavg), or take the shortest admissible direction (none)."),
    ] = "fedavg"
    on_infeasible: Annotated[
        Literal["fedavg", "relax", "error"],
        Param("If constraints contradict each other: follow the average, cut tau to 0 for the round, or stop."),
    ] = "fedavg"
    weights: Annotated[
        Literal["examples", "uniform"],
        Param("Weight of a client in the average: its share of examples, or all equal.", symbol="p"),
    ] = "examples"
    solver: Annotated[
        Literal["daqp", "cvxpy"],
        Param("Exact active-set solver, or an independent interior-point one to check it (slower)."),
    ] = "daqp"
    epsilon: Annotated[float, Param("Added to every norm that is divided by.", symbol="ε", gt=0, le=1e-3)] = 1e-8

    def init(self, context: ServerContext) -> State:
        """Return an empty history; its matrix is allocated by the first round."""
        from fedpcd_cli.pcd.constraints import empty_ema
        from fedpcd_cli.pcd.history import HistoryCache

        cache = HistoryCache.empty(self.history_rounds, context.n_clients, context.cohort_size)
        return {"history": cache.state(), "ema": empty_ema()}

    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the round's direction with its certificate, and the state with the cohort in the history.

        Raises:
            FedPCDError: The constraints contradict each other and `on_infeasible` is `error`; the state is
                unchanged.
        """
        from fedpcd_cli.pcd.average import measure
        from fedpcd_cli.pcd.decision import decide
        from fedpcd_cli.pcd.direction import form
        from fedpcd_cli.pcd.history import HistoryCache
        from fedpcd_cli.pcd.posing import pose
        from fedpcd_cli.pcd.report import diagnostics, warnings

        rows, t = cohort.pseudo_gradients, cohort.round_index
        weights = cohort.client_weights if self.weights == "examples" else np.full(cohort.size, 1.0 / cohort.size)
        cache = HistoryCache.from_state(state["history"])
        found = cache.collect(rows, cohort.client_ids, t)
        ema, moving_norms = self._moving_norms(cohort, found, state["ema"])
        # The average is first held against the inner products as they are. Only if a program has to be solved are
        # they cleaned of rounding, which a bent direction would otherwise follow.
        for clean in (False, True):
            posed = pose(
                found,
                measure(rows, cache.ring, found, weights, clean=clean),
                moving_norms,
                tau=self.tau,
                normalization=self.normalization,
                epsilon=self.epsilon,
                primary=self.primary == "fedavg",
            )
            if posed.is_settled:
                break
        decision = decide(
            posed.program,
            mean_norm=posed.geometry.mean_norm,
            client_ids=found.client_ids,
            solver=self.solver,
            on_infeasible=self.on_infeasible,
            round_index=t,
        )
        step = form(rows, cache.ring, found, weights, posed, decision)
        certificate = self._certificate(t, found, posed, decision, step.normalized_length)
        aggregation = Aggregation(
            direction=step.direction,
            client_coefficients=step.coefficients,
            certificate=certificate,
            diagnostics=diagnostics(certificate),
            warnings=warnings(certificate, followed_average=decision.follows_average),
        )
        return aggregation, {"history": cache.store(rows, found, t).state(), "ema": ema}

    def _moving_norms(self, cohort: Cohort, found: RoundRows, ema: Any) -> tuple[Any, np.ndarray | None]:
        """Return the moving averages after this cohort, and their norms for each constraint, under `ema`."""
        if self.normalization != "ema":
            return ema, None
        from fedpcd_cli.pcd.constraints import ema_norms, update_ema

        squared = np.zeros(cohort.size)
        squared[found.fresh] = found.norms[: found.fresh.size] ** 2
        updated = update_ema(ema, cohort.client_ids, squared, self.ema_beta)
        return updated, ema_norms(updated, found.client_ids, self.ema_beta)

    def _certificate(
        self, round_index: int, found: RoundRows, posed: Posed, decision: Decision, direction_norm: float
    ) -> Certificate:
        solution, program, geometry = decision.solution, decision.program, posed.geometry
        vanished = direction_norm == 0
        return Certificate(
            round_index=round_index,
            client_ids=found.client_ids,
            source_rounds=found.source_rounds,
            weights=geometry.weights,
            norms=found.norms,
            scales=posed.scales,
            gram=program.gram,
            reference_products=program.reference_products,
            reference_norm=posed.reference_norm,
            mean_norm=geometry.mean_norm,
            direction_norm=direction_norm,
            tau=self.tau,
            tau_used=self.tau if program is posed.program else 0.0,
            thresholds=program.thresholds,
            multipliers=solution.multipliers,
            slacks=solution.slacks,
            active=solution.active,
            primary=program.primary,
            normalization=self.normalization,
            epsilon=self.epsilon,
            on_infeasible=self.on_infeasible,
            status=SolveStatus.NO_STEP if vanished else solution.status,
            feasible=decision.farkas is None,
            residuals=solution.residuals,
            farkas=decision.farkas,
            gram_correction=geometry.correction,
            solver=solution.solver,
            seconds=solution.seconds,
            dropped_zero_ids=found.zero_ids,
        )
