"""The papers' "best of six τ": per rule and setting, the value of a key with the best mean."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.settings import identity, short_key, sort_value, value_text


def best_over(groups: Sequence[Group], keys: Sequence[str], by: Measure, pivot: Sequence[str] = ()) -> list[Group]:
    """Return the groups with those that differ only in `keys` reduced to the best one, which says so.

    Only runs that count decide, by their mean. On equal means the smallest value wins. Rules without the keys stay
    as they are. The `pivot` keys, which are columns, are named in the notes.
    """
    families: dict[Hashable, list[Group]] = {}
    for group in groups:
        rest = tuple(item for item in identity(group.settings) if item[0] not in keys)
        families.setdefault((group.model, rest), []).append(group)
    chosen: list[Group] = []
    for family in families.values():
        candidates = [group for group in family if group.averaged]
        if len(family) < 2 or not candidates:
            chosen += family
            continue
        candidates.sort(key=lambda group: [sort_value(group.settings.get(key)) for key in keys])
        means = [group.values(by.key) for group in candidates]
        scores = [sum(values.values()) / len(values) * (1 if by.higher_is_better else -1) for values in means]
        best = candidates[scores.index(max(scores))]
        value = _values(best, keys)
        tried = ", ".join(_values(group, keys) for group in candidates)
        where = f" at {_values(best, pivot, ' ')}" if pivot else ""
        note = f"{best.aggregator}{where}: {value}, the best of {len(candidates)} by {by.title} ({tried})"
        if len(family) > len(candidates):
            note += f"; {len(family) - len(candidates)} without a finished run"
        if len({len(values) for values in means}) > 1:
            note += "; they have different numbers of seeds"
        if len(keys) == 1 and len(candidates) > 2 and best in (candidates[0], candidates[-1]):
            note += f"; it is the {'smallest' if best is candidates[0] else 'largest'} value tried"
        choice = f"[best of {len(candidates)}: {value}]"
        chosen.append(replace(best, choice=choice, notes=(*best.notes, f"{note}. Chosen on the test data.")))
    return chosen


def _values(group: Group, keys: Sequence[str], sign: str = "=") -> str:
    return ", ".join(f"{short_key(key)}{sign}{value_text(group.settings.get(key))}" for key in keys)
