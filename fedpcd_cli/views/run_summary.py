"""What the tables show of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fedpcd_cli.errors import StoreError
from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.store.reader import RunReader


@dataclass(frozen=True)
class RunSummary:
    """One run at its last evaluation.

    Attributes:
        path: The run directory, as it was given.
        recipe: The recipe's name.
        aggregator: The rule's name.
        model: `global` or `personal`.
        params: The rule's parameters.
        seed: Seed of model, cohorts and local training.
        data_seed: Seed of the partition.
        state: `finished`, `running`, ...
        round_index: Round of the evaluation shown.
        n_rounds: T.
        metrics: Key -> value, see `metrics.DEFINITIONS`; None before the first evaluation.
        n_evaluated: Clients with test examples.
        n_clients: N.
        dataset: Dataset's name.
        scheme: Partition scheme with its parameters.
        protocol: Test protocol.
        notes: What a reader must know about the data.
        partition_digest: Equal digests, equal splits.
    """

    path: str
    recipe: str
    aggregator: str
    model: str
    params: dict[str, Any]
    seed: int
    data_seed: int
    state: str
    round_index: int | None
    n_rounds: int
    metrics: dict[str, float] | None
    n_evaluated: int
    n_clients: int
    dataset: str
    scheme: str
    protocol: str
    notes: tuple[str, ...]
    partition_digest: str

    def as_dict(self) -> dict[str, Any]:
        """Return one flat row for JSON and CSV."""
        return {
            "path": self.path,
            "recipe": self.recipe,
            "dataset": self.dataset,
            "scheme": self.scheme,
            "protocol": self.protocol,
            "n_clients": self.n_clients,
            "n_evaluated": self.n_evaluated,
            "partition_digest": self.partition_digest,
            "aggregator": self.aggregator,
            "model": self.model,
            **{f"aggregator.{key}": value for key, value in self.params.items()},
            "seed": self.seed,
            "data_seed": self.data_seed,
            "state": self.state,
            "round": self.round_index,
            "rounds": self.n_rounds,
            **{key: self.metrics[key] if self.metrics else None for key in DEFINITIONS},
        }


def summarize(run: RunReader) -> list[RunSummary]:
    """Return the summary of a run, finished or not: one per kind of model that the recipe asks to show.

    Raises:
        StoreError: The directory is no run, or a file in it is damaged.
    """
    status, recipe, environment = run.status, run.recipe, run.environment
    evaluation = run.evaluations[-1] if run.evaluations else None
    try:
        data, partition = environment["data"], environment["partition"]
        aggregator = dict(recipe["aggregator"])
        name = aggregator.pop("name")
        aggregator = {**aggregator.pop("params", {}), **aggregator}
        scheme = dict(recipe["data"]["partition"])
        scheme = {**scheme.pop("params", {}), **scheme}
        details = ", ".join(f"{k} {v}" for k, v in scheme.items() if k not in ("scheme", "n_clients"))
        state = "killed" if status.state == "running" and not status.owner_is_alive else str(status.state)
        common = RunSummary(
            path=str(run.root),
            recipe=recipe["name"],
            aggregator=name,
            model="global",
            params=aggregator,
            seed=recipe["seed"],
            data_seed=recipe["seed"] if recipe.get("data_seed") is None else recipe["data_seed"],
            state=state,
            round_index=evaluation["round"] if evaluation else None,
            n_rounds=status.n_rounds,
            metrics={key: evaluation["metrics"][key] for key in DEFINITIONS} if evaluation else None,
            n_evaluated=evaluation["metrics"]["n_evaluated"] if evaluation else 0,
            n_clients=partition["n_clients"],
            dataset=data["dataset"],
            scheme=f"{partition['scheme']} ({details})" if details else partition["scheme"],
            protocol=partition["protocol"],
            notes=tuple(data["notes"]),
            partition_digest=partition["digest"],
        )
        personal = evaluation.get("personal") if evaluation else None
        wanted = recipe["evaluation"].get("model", "both")
        if personal is None:
            return [common]
        own = replace(
            common,
            model="personal",
            metrics={key: personal["metrics"][key] for key in DEFINITIONS},
            notes=(*common.notes, *_unseen_note(personal["n_unseen"], recipe["evaluation"]["unseen"])),
        )
        return [own] if wanted == "personal" else [common, own]
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{run.root}: damaged (missing {error}).") from None


def _unseen_note(n_unseen: int, stand_in: str) -> list[str]:
    if n_unseen == 0:
        return []
    return [f"{n_unseen} clients never took part; the {stand_in} model stands for their personal one."]
