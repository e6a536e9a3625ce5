"""What is said of a run above each of its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedpcd_cli.errors import StoreError
from fedpcd_cli.store.reader import RunReader
from fedpcd_cli.store.status import RunState


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """One run, finished or not.

    Attributes:
        path: Its directory, as it was given.
        recipe: The recipe's name.
        rule: The rule's name.
        params: The rule's parameters.
        seed: Seed of model, cohorts and local training.
        n_rounds: T.
        state: `finished`, `running`, `killed`, ...
    """

    path: str
    recipe: str
    rule: str
    params: dict[str, Any]
    seed: int
    n_rounds: int
    state: str

    @property
    def window(self) -> int | None:
        """H, for rules that have one."""
        value = self.params.get("history_rounds")
        return value if isinstance(value, int) else None


def run_facts(run: RunReader) -> RunFacts:
    """Return the facts of a run.

    Raises:
        StoreError: The folder is no run, of a newer format, or damaged.
    """
    status, recipe = run.status, run.recipe
    killed = status.state is RunState.RUNNING and not status.owner_is_alive
    try:
        aggregator = dict(recipe["aggregator"])
        name = str(aggregator.pop("name"))
        return RunFacts(
            path=str(run.root),
            recipe=str(recipe["name"]),
            rule=name,
            params={**aggregator.pop("params", {}), **aggregator},
            seed=int(recipe["seed"]),
            n_rounds=status.n_rounds,
            state="killed" if killed else str(status.state),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{run.paths.recipe}: damaged (missing {error}).") from None
