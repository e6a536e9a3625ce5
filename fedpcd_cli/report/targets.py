"""How many rounds a rule needs to reach a number, or another rule's final value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.errors import UsageError
from fedpcd_cli.report.choose import series
from fedpcd_cli.report.differences import find_baseline
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.statistics import Summary, summarize


@dataclass(frozen=True)
class Reached:
    """When one group reached the target.

    Attributes:
        group: The group.
        target: The value to reach.
        rounds: First evaluated round at or past the target, per run that got there.
        n_runs: Runs looked at.
        of_mean: First evaluated round at which the mean over the seeds is there; None if it never is.
    """

    group: Group
    target: float
    rounds: tuple[int, ...]
    n_runs: int
    of_mean: int | None

    @property
    def summary(self) -> Summary | None:
        """Mean over the runs that got there; those that didn't have no number, so read `rounds` beside it."""
        return summarize(self.rounds) if self.rounds else None


def parse_target(text: str, measure: Measure) -> float | None:
    """Return the number of `0.6`, `60%` or `60` for percents; None for a rule's name.

    Raises:
        UsageError: A share lies outside [0, 1].
    """
    is_percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        return None
    value = value / 100 if is_percent else value
    if not np.isfinite(value) or (measure.scale == 100 and not 0 <= value <= 1):
        raise UsageError(
            f"--target must be a share from 0 to 1, a percentage such as 60%, or a rule; found '{text}'."
        )
    return value


def reach(groups: Sequence[Group], target: str, measure: Measure) -> list[Reached]:
    """Return when each group of a block reached the target; nothing if no finished run of the block gives one.

    Args:
        groups: Groups of one block and, in a pivot, of one column.
        target: A number, or a rule among them whose mean at its last evaluation is to be reached.
        measure: What is to reach it.

    Raises:
        UsageError: The target is a share outside [0, 1], or a name that stands for several groups.
        StoreError: A record is damaged.
    """
    value = parse_target(target, measure)
    curves = {group: curves_of(group, measure) for group in groups}
    if value is None:
        goal = find_baseline(groups, target, "--target")
        finals = [values[-1] for _, values in curves[goal]] if goal else []
        if not finals:
            return []
        value = float(np.mean(finals))
    return [_reached(group, curves[group], value, measure) for group in groups if curves[group]]


def curves_of(group: Group, measure: Measure) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return (rounds, values) of every run of a group that counts.

    Raises:
        StoreError: A record is damaged.
    """
    return [(m.run.log.rounds, series(m.run.log, m.run.model, measure)) for m in group.averaged]


def common_mean(curves: Sequence[tuple[tuple[int, ...], np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds at which all runs were evaluated, `[k]`, and the values there, `[runs, k]`."""
    rounds = sorted(set.intersection(*(set(rounds) for rounds, _ in curves)))
    table = [
        [float(values[position[t]]) for t in rounds]
        for rounds_of_run, values in curves
        for position in [{t: i for i, t in enumerate(rounds_of_run)}]
    ]
    return np.array(rounds, dtype=np.int64), np.array(table, dtype=np.float64)


def _reached(
    group: Group, curves: Sequence[tuple[tuple[int, ...], np.ndarray]], target: float, measure: Measure
) -> Reached:
    def first(rounds: Sequence[int], values: np.ndarray) -> int | None:
        there = np.flatnonzero(values >= target if measure.higher_is_better else values <= target)
        return int(rounds[there[0]]) if there.size else None

    firsts = [first(rounds, values) for rounds, values in curves]
    rounds, table = common_mean(curves)
    return Reached(
        group=group,
        target=target,
        rounds=tuple(t for t in firsts if t is not None),
        n_runs=len(curves),
        of_mean=first(rounds.tolist(), table.mean(axis=0)) if rounds.size else None,
    )
