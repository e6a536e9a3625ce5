"""Runs that differ only in their seeds form a group; groups that may be compared form a block."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedpcd_cli.report.choose import Chosen
from fedpcd_cli.report.runs import Run
from fedpcd_cli.report.settings import SEEDS, WITHOUT_EFFECT, identity, short_key, sort_value, value_text
from fedpcd_cli.report.statistics import Summary, summarize

_UNSET = object()
_NOT_DATA = ("data.normalize", "data.augment")


@dataclass(frozen=True, eq=False)
class Member:
    """One run with the values that were chosen for it.

    Attributes:
        run: The run.
        chosen: Its values; None if it was never evaluated.
        counts: Whether it is averaged. Runs that ended early are not, unless all are read at one round.
    """

    run: Run
    chosen: Chosen | None
    counts: bool


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one rule with the same settings.

    Attributes:
        settings: What they share; seeds belong to the first.
        averaged: Those that count, by seed.
        apart: Those that ended early and are shown on their own.
        label: How this group is told from the others of its block.
        choice: What `--best-over` chose, as `[best of 6: tau=0.02]`.
        base: Values of the settings that its label doesn't name, though they vary among its rule's groups.
        notes: What a reader must know: the choice with everything that was tried, runs that repeat others.
    """

    settings: Mapping[str, Any]
    averaged: tuple[Member, ...]
    apart: tuple[Member, ...]
    label: str = ""
    choice: str = ""
    base: str = ""
    notes: tuple[str, ...] = ()

    @property
    def any_run(self) -> Run:
        return (self.averaged or self.apart)[0].run

    @property
    def aggregator(self) -> str:
        return self.any_run.aggregator

    @property
    def model(self) -> str:
        return self.any_run.model

    @property
    def members(self) -> tuple[Member, ...]:
        return (*self.averaged, *self.apart)

    def values(self, key: str) -> dict[Hashable, float]:
        """Return one measure by (seed, data seed), of the runs that count."""
        return {m.run.seeds: m.chosen.values[key] for m in self.averaged if m.chosen is not None}

    def summary(self, key: str) -> Summary | None:
        """Return mean and deviation over the runs that count; None if none does."""
        values = list(self.values(key).values())
        return summarize(values) if values else None


@dataclass(frozen=True, eq=False)
class Block:
    """Groups on the same data, under the same protocol, after the same number of rounds.

    Attributes:
        facts: What makes them comparable, name -> value.
        groups: In the order of the table.
    """

    facts: Mapping[str, Any]
    groups: tuple[Group, ...]

    @property
    def runs(self) -> list[Run]:
        return [member.run for group in self.groups for member in group.members]


def group_runs(members: Sequence[Member]) -> list[Group]:
    """Return the groups in order of appearance; a run that repeats another's seeds is named, not counted."""
    found: dict[Hashable, list[Member]] = {}
    first: dict[Hashable, Run] = {}
    notes: dict[Hashable, list[str]] = {}
    for member in members:
        run = member.run
        if member.counts:
            twin = first.setdefault((run.key, run.seeds), run)
            if twin is not run:
                sentence = f"{run.root} repeats the seeds of {twin.root} with equal settings; they count once."
                notes.setdefault(run.key, []).append(sentence)
                continue
        found.setdefault(run.key, []).append(member)
    groups = []
    for key, same in found.items():
        ordered = sorted(same, key=lambda member: member.run.seeds)
        averaged = tuple(member for member in ordered if member.counts)
        apart = tuple(member for member in ordered if not member.counts)
        settings = (averaged or apart)[0].run.settings
        groups.append(Group(settings, averaged, apart, notes=tuple(notes.get(key, ()))))
    return groups


def generated_fingerprints(runs: Sequence[Run]) -> set[str]:
    """Return the fingerprints of data that are drawn anew from every data seed, and so differ between seeds."""
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(run.fingerprint, set()).add(run.data_seed)
    by_data: dict[Hashable, set[str]] = {}
    for run in runs:
        by_data.setdefault(_data_settings(run), set()).add(run.fingerprint)
    found: set[str] = set()
    for prints in by_data.values():
        all_seeds = [seed for fingerprint in prints for seed in seeds[fingerprint]]
        if len(prints) > 1 and len(set(all_seeds)) == len(all_seeds) == len(prints):
            found |= prints
    return found


def comparison_facts(run: Run, generated: set[str]) -> dict[str, Any]:
    """Return what two runs must share to stand in one table."""
    return {
        **dict(_data_settings(run)),
        "data fingerprint": "generated" if run.fingerprint in generated else run.fingerprint,
        "test protocol": run.protocol,
        "rounds": run.n_rounds,
    }


def make_blocks(groups: Sequence[Group], pivot: Sequence[str] = ()) -> list[Block]:
    """Return the blocks in order of appearance.

    Facts that differ only between columns of a pivot table, as the data of a pivot over datasets do, keep
    groups together; facts that differ within a column don't.
    """
    generated = generated_fingerprints([group.any_run for group in groups])
    facts = [comparison_facts(group.any_run, generated) for group in groups]
    if pivot:
        seen: dict[Hashable, dict[str, set[Any]]] = {}
        for group, fact in zip(groups, facts, strict=True):
            column = seen.setdefault(column_of(group, pivot), {})
            for name, value in fact.items():
                column.setdefault(name, set()).add(value)
        names = dict.fromkeys(name for column in seen.values() for name in column)
        splitting = [name for name in names if any(len(column.get(name, {0})) > 1 for column in seen.values())]
        facts = [{name: fact.get(name) for name in splitting} for fact in facts]
    blocks: dict[Hashable, tuple[dict[str, Any], list[Group]]] = {}
    for group, fact in zip(groups, facts, strict=True):
        blocks.setdefault(tuple(fact.items()), (fact, []))[1].append(group)
    return [Block(fact, tuple(with_labels(same, pivot))) for fact, same in blocks.values()]


def column_of(group: Group, pivot: Sequence[str]) -> tuple[Any, ...]:
    """Return a group's values of the pivot keys; None where its rule has no such setting."""
    return tuple(group.settings.get(key) for key in pivot)


def with_labels(groups: Sequence[Group], hidden: Sequence[str] = ()) -> list[Group]:
    """Name each group by its rule and by the settings that tell it from the others.

    Where several settings of a rule vary, as among ablations, a group is named by what sets it apart from the
    rule's most frequent values, and `base` keeps those.

    Args:
        groups: Groups of one block.
        hidden: Settings that are shown elsewhere, as columns.
    """
    everywhere = _varying(groups, hidden, lambda key: not key.startswith("aggregator."))
    common = _most_frequent(groups, everywhere)
    labeled = []
    for group in groups:
        same_rule = [other for other in groups if other.aggregator == group.aggregator]
        own = _varying(same_rule, hidden, lambda key: key.startswith("aggregator."))
        base = {**_most_frequent(same_rule, own), **common}
        keys = [key for key in (*own, *everywhere) if key in group.settings]
        parts = [
            _assignment(key, group.settings[key]) for key in keys if group.settings[key] != base.get(key, _UNSET)
        ]
        parts = [part for part in parts if part not in group.choice]
        name = group.aggregator if group.model == "global" else f"{group.aggregator} ({group.model})"
        label = " ".join([name, *parts, *([group.choice] if group.choice else [])])
        stated = [key for key in base if key in group.settings and f"{short_key(key)}=" not in group.choice]
        shown_base = ", ".join(_assignment(key, base[key]) for key in stated)
        labeled.append(replace(group, label=label, base=shown_base))
    return labeled


def sort_groups(groups: Sequence[Group]) -> list[Group]:
    """Return groups of one rule side by side, in order of first appearance, settings ascending."""
    order = {name: i for i, name in reversed(list(enumerate(group.aggregator for group in groups)))}

    def key(group: Group) -> tuple[Any, ...]:
        own = [(name, sort_value(value)) for name, value in identity(group.settings)]
        return (order[group.aggregator], own, group.model)

    return sorted(groups, key=key)


def _varying(groups: Sequence[Group], hidden: Sequence[str], wanted: Callable[[str], bool]) -> list[str]:
    keys = dict.fromkeys(key for group in groups for key in group.settings if wanted(key))
    ignored = {"aggregator", *SEEDS, *WITHOUT_EFFECT, *hidden}
    return [
        key
        for key in keys
        if key not in ignored and len({_freeze(group.settings.get(key, _UNSET)) for group in groups}) > 1
    ]


def _most_frequent(groups: Sequence[Group], keys: Sequence[str]) -> dict[str, Any]:
    """Return each key's most frequent value; nothing if only one key varies, which is then always named."""
    if len(keys) < 2:
        return {}
    base = {}
    for key in keys:
        values = [_freeze(group.settings[key]) for group in groups if key in group.settings]
        base[key] = max(dict.fromkeys(values), key=values.count)
    return base


def _assignment(key: str, value: Any) -> str:
    return f"{short_key(key)}={value_text(value)}"


def _freeze(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


def _data_settings(run: Run) -> tuple[tuple[str, Any], ...]:
    return tuple(
        sorted(
            (key, _freeze(value))
            for key, value in run.settings.items()
            if key.startswith("data.")
            and key not in ("data.root", "data.download")
            and not key.startswith(_NOT_DATA)
        )
    )
