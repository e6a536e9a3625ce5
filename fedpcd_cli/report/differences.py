"""Paired differences against a baseline over the seeds that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedpcd_cli.errors import UsageError, did_you_mean
from fedpcd_cli.report.grouping import Group, column_of
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.statistics import Summary, paired_difference


@dataclass(frozen=True, eq=False)
class Difference:
    """One group against the baseline.

    Attributes:
        group: The group.
        baseline: What it is compared with.
        summaries: Measure's key -> paired difference; None if they share no seed on one split.
    """

    group: Group
    baseline: Group
    summaries: dict[str, Summary | None]


def find_baseline(groups: Sequence[Group], name: str, option: str = "--baseline") -> Group | None:
    """Return the group of that label or rule; None if none is here.

    Raises:
        UsageError: Several are.
    """
    matches = [g for g in groups if g.label == name] or [g for g in groups if name in _names(g)]
    if len(matches) > 1:
        matches = [g for g in matches if g.label == name or g.model == "global"] if len(matches) == 2 else matches
    if len(matches) > 1:
        labels = ", ".join(f"'{group.label}'" for group in matches)
        raise UsageError(f"{option} {name} could be {labels}.", hint="Give one of these, in quotation marks.")
    return matches[0] if matches else None


def check_baseline(groups: Sequence[Group], name: str, option: str = "--baseline") -> None:
    """Refuse a name that no group has.

    Raises:
        UsageError: No group has it.
    """
    known = {text for group in groups for text in (group.label, *_names(group))}
    if name not in known:
        raise UsageError(f"{option} must name a rule of the table; found '{name}'.{did_you_mean(name, known)}")


def differences(
    groups: Sequence[Group], name: str, measures: Sequence[Measure], pivot: Sequence[str] = ()
) -> tuple[list[Difference], list[str]]:
    """Return the differences of all other groups, in each column of a pivot on its own, and notes.

    Runs are paired by (seed, data seed); a pair on two different splits is left out and named.

    Raises:
        UsageError: The name stands for several groups.
    """
    found: list[Difference] = []
    notes: list[str] = []
    for column in dict.fromkeys(column_of(group, pivot) for group in groups):
        same = [group for group in groups if column_of(group, pivot) == column]
        baseline = find_baseline(same, name)
        if baseline is None:
            continue
        splits = {m.run.seeds: m.run.digest for m in baseline.averaged}
        for group in same:
            if group is baseline:
                continue
            other = {m.run.seeds for m in group.averaged if splits.get(m.run.seeds, m.run.digest) != m.run.digest}
            if other:
                seeds = ", ".join(str(seed) for seed, _ in sorted(other))
                notes.append(
                    f"{group.label} and {baseline.label} have different splits at seed {seeds}; not paired."
                )
            summaries = {}
            for measure in measures:
                mine = {key: value for key, value in group.values(measure.key).items() if key not in other}
                summaries[measure.key] = paired_difference(mine, baseline.values(measure.key))
            found.append(Difference(group, baseline, summaries))
    return found, notes


def _names(group: Group) -> tuple[str, ...]:
    if group.model == "global":
        return (group.aggregator,)
    return (f"{group.aggregator} ({group.model})",)
