"""One run as the report sees it: its settings, how far it came, and where its evaluations lie."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedpcd_cli.errors import StoreError
from fedpcd_cli.report.settings import flatten, identity, value_text
from fedpcd_cli.store.evaluation_log import EvaluationLog, count_infeasible, last_recorded_round
from fedpcd_cli.store.reader import RunReader
from fedpcd_cli.store.status import RunState

_HIDDEN_DETAILS = ("data.partition.scheme", "data.partition.n_clients")


@dataclass(frozen=True, eq=False)
class Run:
    """One run under one kind of model; Ditto's run counts twice.

    Attributes:
        root: The run directory, as it was given.
        recipe: The recipe's name.
        settings: All settings, flat.
        aggregator: The rule's name.
        model: `global` or `personal`.
        seed: Seed of model, cohorts and local training.
        data_seed: Seed of the partition.
        state: `finished`, `running`, `interrupted`, `failed`, `diverged` or `killed`.
        message: What the run said when it ended early.
        reached: Last finished round.
        n_rounds: T.
        n_clients: N.
        dataset: Dataset's name.
        fingerprint: Hash of its samples.
        scheme: Partition scheme with its parameters.
        protocol: Test protocol.
        notes: What a reader must know about the data.
        split_notes: What a reader must know about the split.
        digest: Equal digests, equal splits.
        n_infeasible: Rounds whose constraints contradicted each other.
        unseen: What stands for the personal model of a client that never took part.
        log: Its evaluations.
    """

    root: Path
    recipe: str
    settings: Mapping[str, Any]
    aggregator: str
    model: str
    seed: int
    data_seed: int
    state: str
    message: str
    reached: int
    n_rounds: int
    n_clients: int
    dataset: str
    fingerprint: str
    scheme: str
    protocol: str
    notes: tuple[str, ...]
    split_notes: tuple[str, ...]
    digest: str
    n_infeasible: int
    unseen: str
    log: EvaluationLog

    @property
    def is_finished(self) -> bool:
        return self.state == RunState.FINISHED

    @property
    def key(self) -> Hashable:
        """Equal for runs that differ only in their seeds."""
        return (self.model, identity(self.settings))

    @property
    def seeds(self) -> tuple[int, int]:
        """What pairs this run with one of another rule."""
        return (self.seed, self.data_seed)

    @property
    def ending(self) -> str:
        """Return `diverged at 120 of 500`, for runs that did not finish."""
        return f"{self.state} at {self.reached} of {self.n_rounds}"


def load_runs(reader: RunReader) -> list[Run]:
    """Return what a directory holds: the run under the global model, under personal models, or both.

    Raises:
        StoreError: The directory is no run, of a newer format, or a file in it is missing or damaged.
    """
    status, recipe, environment = reader.status, reader.recipe, reader.environment
    log = EvaluationLog.scan(reader.paths.evaluations)
    try:
        settings = flatten(recipe)
        data, partition = environment["data"], environment["partition"]
        details = ", ".join(
            f"{key.rsplit('.', 1)[-1]} {value_text(value)}"
            for key, value in settings.items()
            if key.startswith("data.partition.") and key not in _HIDDEN_DETAILS
        )
        killed = status.state is RunState.RUNNING and not status.owner_is_alive
        seed = recipe["seed"]
        common = Run(
            root=reader.root,
            recipe=recipe["name"],
            settings=settings,
            aggregator=settings["aggregator"],
            model="global",
            seed=seed,
            data_seed=seed if recipe.get("data_seed") is None else recipe["data_seed"],
            state="killed" if killed else str(status.state),
            message=status.message,
            reached=status.round_index
            if status.state is RunState.FINISHED
            else max(status.round_index, last_recorded_round(reader.paths.rounds)),
            n_rounds=status.n_rounds,
            n_clients=partition["n_clients"],
            dataset=data["dataset"],
            fingerprint=data["fingerprint"],
            scheme=f"{partition['scheme']} ({details})" if details else partition["scheme"],
            protocol=partition["protocol"],
            notes=tuple(data["notes"]),
            split_notes=tuple(partition.get("notes", ())),
            digest=partition["digest"],
            n_infeasible=count_infeasible(reader.paths.rounds) if "aggregator.on_infeasible" in settings else 0,
            unseen=settings.get("evaluation.unseen", "initial"),
            log=log,
        )
        wanted = settings.get("evaluation.model", "both")
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{reader.root}: damaged (missing {error}).", hint="Restore it from a copy, or run the recipe again."
        ) from None
    _check_complete(common)
    if not log.has_personal:
        return [common]
    personal = replace(common, model="personal")
    return [personal] if wanted == "personal" else [common, personal]


def _check_complete(run: Run) -> None:
    """Refuse a finished run whose evaluations were cut off: its last line would pass for its result."""
    if run.is_finished and (not run.log.rounds or run.log.rounds[-1] != run.n_rounds):
        last = f"ends at round {run.log.rounds[-1]}" if run.log.rounds else "is empty or missing"
        raise StoreError(
            f"{run.log.path}: the run finished {run.n_rounds} rounds, but this file {last}.",
            hint="Restore the file from a copy, or run the recipe again with --force.",
        )
