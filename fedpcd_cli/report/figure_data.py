"""The numbers behind each figure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.report.choose import series
from fedpcd_cli.report.grouping import Group, column_of
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.settings import WITHOUT_EFFECT, identity, short_key, sort_value, value_text
from fedpcd_cli.report.targets import common_mean, curves_of

CROWDED = 9
"""From this many groups on, a figure of all rules shows one group of each."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One group's measure over the rounds.

    Attributes:
        group: The group.
        rounds: Rounds at which all its runs were evaluated, `[k]`.
        values: One row per run, `[n, k]`.
    """

    group: Group
    rounds: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.values.mean(axis=0))

    @property
    def std(self) -> np.ndarray | None:
        """Sample deviation over the seeds, `[k]`; None for one seed."""
        return None if len(self.values) < 2 else np.asarray(self.values.std(axis=0, ddof=1))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Groups that differ in one setting only.

    Attributes:
        key: The setting.
        groups: In order of its value, of one rule.
    """

    key: str
    groups: tuple[Group, ...]

    def positions(self, values: Sequence[object]) -> list[int]:
        """Return where each group stands among all values of the figure."""
        return [list(values).index(group.settings[self.key]) for group in self.groups]


def curves(groups: Sequence[Group], measure: Measure) -> list[Curve]:
    """Return the curve of every group with a run that counts.

    Raises:
        StoreError: A record is damaged.
    """
    found = []
    for group in groups:
        runs = curves_of(group, measure)
        if runs:
            rounds, values = common_mean(runs)
            found.append(Curve(group, rounds, values))
    return found


def representatives(groups: Sequence[Group], by: Measure) -> list[Group]:
    """Return all groups that count, or of each rule one where there are many: its plain one, or else its best."""
    counting = [group for group in groups if group.averaged]
    if len(counting) < CROWDED:
        return counting
    chosen: dict[Hashable, Group] = {}
    for group in counting:
        name = (group.aggregator, group.model)
        plain = group.aggregator if group.model == "global" else f"{group.aggregator} ({group.model})"
        best = chosen.get(name)
        if best is None or group.label == plain or (best.label != plain and _score(group, by) > _score(best, by)):
            chosen[name] = group
    return list(chosen.values())


def client_accuracies(group: Group) -> np.ndarray:
    """Return the accuracy of every evaluated client, of all seeds together, at the last of the rounds shown.

    Raises:
        StoreError: A record is damaged.
    """
    found = []
    for member in group.averaged:
        if member.chosen is None:
            continue
        log = member.run.log
        scores = log.scores(log.rounds.index(member.chosen.rounds[-1]), member.run.model)
        held = scores["n_test"] > 0
        found.append(scores["n_correct"][held] / scores["n_test"][held])
    return np.concatenate(found)


def sweeps(groups: Sequence[Group]) -> dict[str, list[Sweep]]:
    """Return, by setting, the groups that differ in nothing else and take at least three numbers of it."""
    counting = [group for group in groups if group.averaged]
    keys = dict.fromkeys(key for group in counting for key, value in group.settings.items() if _is_number(value))
    found: dict[str, list[Sweep]] = {}
    for key in keys:
        if key in WITHOUT_EFFECT or key in ("seed", "data_seed", "rounds"):
            continue
        families: dict[Hashable, list[Group]] = {}
        for group in counting:
            if _is_number(group.settings.get(key)):
                rest = tuple(item for item in identity(group.settings) if item[0] != key)
                families.setdefault((group.model, rest), []).append(group)
        for family in families.values():
            if len({group.settings[key] for group in family}) >= 3:
                ordered = sorted(family, key=lambda group: sort_value(group.settings[key]))
                found.setdefault(key, []).append(Sweep(key, tuple(ordered)))
    return found


def ablations(groups: Sequence[Group]) -> list[tuple[Group, list[tuple[str, Group]]]]:
    """Return each rule's plain group with the groups that change one thing about it, named by the change.

    Of a setting that is swept, only the value 0, which switches it off, is part of an ablation.
    """
    found = []
    counting = [group for group in groups if group.averaged and not group.choice]
    for plain in counting:
        name = plain.aggregator if plain.model == "global" else f"{plain.aggregator} ({plain.model})"
        if plain.label != name:
            continue
        mine = dict(identity(plain.settings))
        changed: list[tuple[str, Group]] = []
        values: dict[str, int] = {}
        for group in counting:
            if (group.aggregator, group.model) != (plain.aggregator, plain.model):
                continue
            other = dict(identity(group.settings))
            keys = [key for key in {**mine, **other} if mine.get(key) != other.get(key)]
            if len(keys) == 1:
                values[keys[0]] = values.get(keys[0], 0) + 1
                changed.append((keys[0], group))
        kept = [
            (f"{short_key(key)}={value_text(group.settings.get(key))}", group)
            for key, group in changed
            if values[key] < 2 or group.settings.get(key) == 0 or not _is_number(group.settings.get(key))
        ]
        if len(kept) >= 2:
            found.append((plain, kept))
    return found


def by_column(groups: Sequence[Group], pivot: Sequence[str]) -> dict[str, list[Group]]:
    """Return groups by the column of a pivot that they belong to, named for a file: `alpha0.1-rate0.5`."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        values = zip(pivot, column_of(group, pivot), strict=True)
        name = "-".join(f"{short_key(key)}{value_text(value)}" for key, value in values)
        found.setdefault(name, []).append(group)
    return found


def target_points(curve: Curve, target: float, measure: Measure) -> tuple[int, float] | None:
    """Return round and value at which the mean curve first is at or past the target; None if never."""
    there = np.flatnonzero(curve.mean >= target if measure.higher_is_better else curve.mean <= target)
    return (int(curve.rounds[there[0]]), float(curve.mean[there[0]])) if there.size else None


def final_values(group: Group, measure: Measure) -> list[float]:
    """Return a measure of every run that counts, as it is in the table or else at its last evaluation."""
    found = []
    for member in group.averaged:
        if member.chosen is not None and measure.key in member.chosen.values:
            found.append(member.chosen.values[measure.key])
        else:
            found.append(float(series(member.run.log, member.run.model, measure)[-1]))
    return found


def _score(group: Group, by: Measure) -> float:
    summary = group.summary(by.key)
    if summary is None:
        return -np.inf
    return summary.mean if by.higher_is_better else -summary.mean


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
