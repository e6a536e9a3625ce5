"""A federated run, round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedpcd_cli.aggregators.base import ServerContext, State
from fedpcd_cli.data.transform import Transform
from fedpcd_cli.engine.client_memory import PersonalModels
from fedpcd_cli.engine.device import resolve_device, resolve_threads, set_threads
from fedpcd_cli.engine.device_data import DeviceData
from fedpcd_cli.engine.evaluate import Evaluation, evaluate, evaluate_personal
from fedpcd_cli.engine.flat_model import FlatModel, build_module
from fedpcd_cli.engine.growth import GrowthWatch
from fedpcd_cli.engine.local import ClientReport, LocalTrainer
from fedpcd_cli.engine.sampling import cohort_size, sample_cohort
from fedpcd_cli.engine.server import (
    aggregate_and_step,
    all_excluded_error,
    average_buffers,
    update_cosines,
    what_is_broken,
)
from fedpcd_cli.errors import DataError, UsageError
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.record import Exclusion, RoundRecord

if TYPE_CHECKING:
    from fedpcd_cli.data.federation import Federation
    from fedpcd_cli.recipe.schema import Recipe
    from fedpcd_cli.rounds.certificate import Certificate

NO_EXAMPLES = "holds no training examples"


@dataclass(frozen=True, eq=False)
class RoundResult:
    """One finished round.

    Attributes:
        record: What happened, without times.
        certificate: The program behind the direction, for rules that solve one.
        seconds: Wall-clock seconds of `local` training, the `server` step and the `solve` within it.
    """

    record: RoundRecord
    certificate: Certificate | None
    seconds: Mapping[str, float]


class Simulation:
    """All of a run's moving parts; between two rounds, :meth:`state` is all there is to save.

    Args:
        recipe: The resolved recipe.
        federation: Its data, dealt to the clients.
        check_interrupt: Called before each client's training; raises to stop the run between two rounds.

    Raises:
        UsageError: The model can't take the data, the device is not there, normalization doesn't fit.
        DataError: No client holds test samples.
    """

    def __init__(
        self,
        recipe: Recipe,
        federation: Federation,
        check_interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        self.recipe = recipe
        self.device = resolve_device(recipe.engine.device)
        self.n_threads = resolve_threads(recipe.engine.threads)
        set_threads(self.n_threads)
        self._check_interrupt = check_interrupt
        dtype = torch.float64 if recipe.engine.precision == "float64" else torch.float32
        dataset = federation.dataset
        module = build_module(recipe.model, dataset.sample_shape, dataset.n_classes, recipe.seed)
        self.model = FlatModel(module, self.device, dtype)
        transform = Transform.build(
            dataset, recipe.data.normalize, recipe.data.augment, device=self.device, dtype=dtype
        )
        self.data = DeviceData.load(federation, transform, self.device)
        if not self.data.test_counts.any():
            raise DataError("data: no client holds test samples; raise data.test.fraction or lower n_clients.")
        self.n_clients = federation.partition.n_clients
        self.cohort_size = cohort_size(self.n_clients, recipe.server.participation_rate)
        self.aggregator = recipe.aggregator
        self._needs = self.aggregator.needs
        self._trainer = LocalTrainer(self.model, self.data, recipe.local, self._needs, recipe.seed)
        self._tensor_names = [(slot.name, slot.span) for slot in self.model.layout.slots]
        self.round_index = 0
        self.params = self.model.initial.clone()
        self.buffers = self.model.initial_buffers.clone()
        self.aggregator_state: State = self.aggregator.init(
            ServerContext(
                n_clients=self.n_clients,
                cohort_size=self.cohort_size,
                layout=self.model.layout,
                params=self.model.initial,
            )
        )
        if self._needs.personal_proximal is None and recipe.evaluation.model == "personal":
            raise UsageError(
                "evaluation.model must be 'global' or 'both' for a rule that trains no personal models; found "
                f"'personal' with '{self.aggregator.name}'."
            )
        self.personal = PersonalModels(self.model.initial) if self._needs.personal_proximal is not None else None
        self.growth = GrowthWatch()
        self.is_consistent = True
        self._updates: torch.Tensor | None = None

    def run_round(self) -> RoundResult:
        """Run the next round.

        Raises:
            DivergedError: No usable update, or a direction that is not finite. The parameters are those of the
                round before; while :attr:`is_consistent` is False the rule's state may be half a round ahead.
        """
        round_index = self.round_index + 1
        recipe = self.recipe
        lr = recipe.local.lr * recipe.local.lr_decay ** (round_index - 1)
        sampled = sample_cohort(recipe.seed, round_index, self.n_clients, self.cohort_size)
        updates = self._update_matrix()
        buffer_rows = updates.new_empty(self.cohort_size, self.model.n_buffers)
        client_ids: list[int] = []
        reports: list[ClientReport] = []
        excluded: list[Exclusion] = []
        personal_after: dict[int, torch.Tensor] = {}
        started = time.perf_counter()
        for client_id in sampled:
            self._check_interrupt()
            if self.data.n_train(client_id) == 0:
                excluded.append(Exclusion(client_id=client_id, reason=NO_EXAMPLES))
                continue
            row = len(client_ids)
            personal = self.personal.copy_of(client_id) if self.personal is not None else None
            report = self._trainer.train(
                self.params, self.buffers, client_id, round_index, lr, updates[row], personal
            )
            reason = what_is_broken("update", updates[row], self._tensor_names)
            if reason is None and personal is not None:
                reason = what_is_broken("personal model", personal, self._tensor_names)
            if reason is not None:
                # The next client overwrites the row.
                excluded.append(Exclusion(client_id=client_id, reason=reason))
                continue
            self.model.read_buffers(buffer_rows[row])
            client_ids.append(client_id)
            reports.append(report)
            if personal is not None:
                personal_after[client_id] = personal
        local_seconds = time.perf_counter() - started
        if not client_ids and any(e.reason != NO_EXAMPLES for e in excluded):
            raise all_excluded_error(round_index, excluded)
        if not client_ids:
            return self._skipped_round(round_index, lr, excluded, local_seconds)

        n_examples = np.array([self.data.n_train(c) for c in client_ids], dtype=np.int64)
        cohort = Cohort(
            round_index=round_index,
            n_rounds=recipe.rounds,
            n_clients=self.n_clients,
            client_ids=tuple(client_ids),
            n_examples=n_examples,
            pseudo_gradients=updates[: len(client_ids)],
            params=self.params,
            local_lr=lr,
            server_lr=recipe.server.lr,
            layout=self.model.layout,
            received_losses=_losses([r.received_loss for r in reports]),
            running_losses=np.array([r.running_loss for r in reports]) if self._needs.running_loss else None,
            final_losses=_losses([r.final_loss for r in reports]),
        )
        norms = tuple(torch.linalg.vector_norm(cohort.pseudo_gradients, dim=1).tolist())
        started = time.perf_counter()
        self.is_consistent = False
        step = aggregate_and_step(self.aggregator, cohort, self.aggregator_state, self.params)
        server_seconds = time.perf_counter() - started
        self.aggregator_state = step.state
        if self.model.n_buffers:
            self.buffers = average_buffers(buffer_rows[: len(client_ids)], n_examples)
        if self.personal is not None:
            self.personal.store(personal_after)
        self.round_index = round_index
        self.is_consistent = True
        if self._needs.keeps_updates:
            self._updates = None
        warnings = [f"round {round_index}: client {e.client_id} left out: {e.reason}" for e in excluded]
        warnings += step.aggregation.warnings
        growth = self.growth.observe(norms)
        if growth is not None:
            warnings.append(f"round {round_index}: {growth}")
        record = RoundRecord(
            round_index=round_index,
            client_ids=cohort.client_ids,
            n_examples=tuple(int(n) for n in n_examples),
            excluded=tuple(excluded),
            local_lr=lr,
            update_norms=norms,
            update_cosines=update_cosines(cohort.pseudo_gradients, norms, step),
            training_loss=float(cohort.client_weights @ np.array([r.running_loss for r in reports])),
            direction_norm=step.direction_norm,
            diagnostics=step.aggregation.diagnostics,
            warnings=tuple(warnings),
        )
        certificate = step.aggregation.certificate
        seconds = {"local": local_seconds, "server": server_seconds}
        if certificate is not None:
            seconds["solve"] = certificate.seconds
        return RoundResult(record, certificate, seconds)

    def evaluate(self) -> Evaluation:
        """Evaluate the model that the rule's paper evaluates, on every client; personal models beside it."""
        params = self.aggregator.evaluated_params(self.params, self.aggregator_state)
        scores = evaluate(self.model, self.data, params, self.buffers)
        personal = self.personal
        if personal is None or self.recipe.evaluation.model == "global":
            return Evaluation(self.round_index, scores)
        stand_in = self.params if self.recipe.evaluation.unseen == "global" else self.model.initial

        def params_of(client_id: int) -> torch.Tensor:
            return personal.of(client_id) if personal.has_trained(client_id) else stand_in

        own = evaluate_personal(self.model, self.data, params_of, self.buffers)
        n_unseen = sum(not personal.has_trained(client_id) for client_id in range(self.n_clients))
        return Evaluation(self.round_index, scores, own, n_unseen)

    def state(self) -> dict[str, Any]:
        """Return everything that the next round depends on, as plain nested data (not copied)."""
        return {
            "round_index": self.round_index,
            "params": self.params,
            "buffers": self.buffers,
            "aggregator": self.aggregator_state,
            "personal": self.personal.state() if self.personal is not None else None,
            "growth": self.growth.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state` returned; tensors must lie on this run's device."""
        self.round_index = state["round_index"]
        self.params = state["params"]
        self.buffers = state["buffers"]
        self.aggregator_state = state["aggregator"]
        if self.personal is not None:
            self.personal.restore(state["personal"])
        self.growth = GrowthWatch(**state["growth"])

    def _update_matrix(self) -> torch.Tensor:
        """Return the `[m, P]` matrix that the clients train in; the same one every round if it may be."""
        if self._updates is None:
            self._updates = self.params.new_empty(self.cohort_size, self.params.numel())
        return self._updates

    def _skipped_round(
        self, round_index: int, lr: float, excluded: list[Exclusion], seconds: float
    ) -> RoundResult:
        """A cohort of clients without examples: nobody trains, the model stays."""
        self.round_index = round_index
        warning = f"round {round_index}: no client of the cohort holds training examples; no step"
        record = RoundRecord(
            round_index=round_index,
            client_ids=(),
            n_examples=(),
            excluded=tuple(excluded),
            local_lr=lr,
            update_norms=(),
            update_cosines=(),
            training_loss=None,
            direction_norm=0.0,
            warnings=(warning,),
        )
        return RoundResult(record, None, {"local": seconds, "server": 0.0})


def _losses(values: list[float | None]) -> np.ndarray | None:
    present = [value for value in values if value is not None]
    return np.array(present) if present else None
