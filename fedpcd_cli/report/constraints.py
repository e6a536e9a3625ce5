"""What rules that solve a program did, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.errors import StoreError
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.runs import Run
from fedpcd_cli.store.reader import RunReader


@dataclass(frozen=True, eq=False)
class ConstraintSeries:
    """The programs of one run.

    Attributes:
        run: The run.
        rounds: Rounds that posed one, `[k]`.
        n_constraints: How many constraints, `[k]`.
        n_active: How many with a positive multiplier, `[k]`.
        angles: Degrees between FedAvg and the update, `[k]`; NaN where either is zero.
        infeasible: Rounds whose constraints contradict each other.
        multipliers: Client's multiplier in each round, `[N, k]`; 0 where it is not active.
    """

    run: Run
    rounds: np.ndarray
    n_constraints: np.ndarray
    n_active: np.ndarray
    angles: np.ndarray
    infeasible: tuple[int, ...]
    multipliers: np.ndarray


def constraint_series(run: Run) -> ConstraintSeries | None:
    """Read a run's round records; None if its rule solved no program.

    Raises:
        StoreError: A record is damaged.
    """
    path = RunReader(run.root).paths.rounds
    records = [r for r in RunReader(run.root).rounds if "n_active" in (r.get("diagnostics") or {})]
    if not records:
        return None
    try:
        facts = [record["diagnostics"] for record in records]
        multipliers = np.zeros((run.n_clients, len(records)))
        for column, fact in enumerate(facts):
            for client, value in fact.get("multipliers", {}).items():
                multipliers[int(client), column] = value
        return ConstraintSeries(
            run=run,
            rounds=np.array([record["round"] for record in records], dtype=np.int64),
            n_constraints=np.array([fact["n_constraints"] for fact in facts], dtype=np.float64),
            n_active=np.array([fact["n_active"] for fact in facts], dtype=np.float64),
            angles=np.array(
                [np.nan if fact["angle_degrees"] is None else fact["angle_degrees"] for fact in facts],
                dtype=np.float64,
            ),
            infeasible=tuple(r["round"] for r, fact in zip(records, facts, strict=True) if not fact["feasible"]),
            multipliers=multipliers,
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StoreError(
            f"{path}: damaged record ({error}).", hint="Restore the file from a copy, or run the recipe again."
        ) from None


def of_group(group: Group) -> list[ConstraintSeries]:
    """Return the programs of all runs of a group that count.

    Raises:
        StoreError: A record is damaged.
    """
    found = [constraint_series(member.run) for member in group.averaged if member.run.model == "global"]
    return [one for one in found if one is not None]


def mean_active(group: Group) -> tuple[float, float] | None:
    """Return active and all constraints per round, averaged over rounds and runs; None without programs.

    Raises:
        StoreError: A record is damaged.
    """
    found = of_group(group)
    if not found:
        return None
    return (
        float(np.mean([one.n_active.mean() for one in found])),
        float(np.mean([one.n_constraints.mean() for one in found])),
    )


def angle_table(found: Sequence[ConstraintSeries]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds that all runs share, `[k]`, and their angles, `[n, k]`."""
    rounds = sorted(set.intersection(*(set(one.rounds.tolist()) for one in found)))
    table = [one.angles[np.searchsorted(one.rounds, rounds)] for one in found]
    return np.array(rounds, dtype=np.int64), np.array(table)
