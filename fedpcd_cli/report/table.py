"""Tables as plain cells, before a terminal, Markdown or LaTeX gives them a look."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fedpcd_cli.report.build import BlockReport, Options
from fedpcd_cli.report.captions import block_caption, seeds_text
from fedpcd_cli.report.grouping import Block, Group, Member, column_of
from fedpcd_cli.report.marks import BEST, marks
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.settings import short_key, sort_value, value_text
from fedpcd_cli.report.statistics import Summary
from fedpcd_cli.report.targets import parse_target

Rename = Callable[[str], str]


@dataclass(frozen=True)
class Column:
    """A heading.

    Attributes:
        title: Its text.
        above: A heading that it shares with its neighbors.
        is_number: Whether cells stand to the right.
        is_in_caption: Whether the caption says it too, if all rows say the same.
    """

    title: str
    above: str = ""
    is_number: bool = True
    is_in_caption: bool = False


@dataclass(frozen=True)
class Cell:
    """One entry.

    Attributes:
        parts: The number, and its deviation and interval if there are any; side by side or below each other.
        mark: `best`, `second` or nothing.
    """

    parts: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        title: Heading; empty for none.
        columns: Headings.
        rows: Cells, one row per group and then one per run that stands apart.
        caption: Lines below.
        n_fixed: Columns at the left that are repeated when a wide table is cut.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: tuple[str, ...] = field(default=())
    n_fixed: int = 1

    @property
    def has_marks(self) -> bool:
        return any(cell.mark for row in self.rows for cell in row)


def named_marks(line: str, best: str, second: str) -> str:
    """Return a caption's line with what best and second best look like in this format."""
    return line.replace("{best}", best).replace("{second}", second)


def tables(report: BlockReport, options: Options, title: str = "", rename: Rename = str) -> list[Table]:
    """Return a block's tables: the values, the differences from a baseline, the rounds to a target.

    Args:
        report: The block.
        options: What was asked for.
        title: Heading of the first table.
        rename: Turns the name of a rule or a setting into the one that is shown.
    """
    first = _pivot_table(report, options, rename) if options.pivot else _plain_table(report.block, options, rename)
    caption = block_caption(report, options, has_marks=first.has_marks)
    found = [Table(title, first.columns, first.rows, tuple(caption), first.n_fixed)]
    if report.differences:
        found.append(_difference_table(report, options, rename))
    if report.reached:
        found.append(_target_table(report, options, rename))
    return found


def shown_label(group: Group, rename: Rename) -> str:
    """Return a group's label with its rule and settings named as they are to be shown."""
    rest = group.label.removeprefix(group.aggregator)
    return rename(group.aggregator) + re.sub(r"[a-z][a-z0-9_]*(?==)", lambda found: rename(found[0]), rest)


def _plain_table(block: Block, options: Options, rename: Rename) -> Table:
    groups = [group for group in block.groups if group.averaged]
    columns = [Column("Rule", is_number=False), Column("Seeds", is_in_caption=True)]
    columns.append(Column("Round", is_in_caption=True))
    columns += [Column(measure.title) for measure in options.measures]
    marked = [_marks(groups, measure) for measure in options.measures]
    rows = []
    for i, group in enumerate(groups):
        cells = [_text(shown_label(group, rename)), _text(seeds_text(m.run.seed for m in group.averaged))]
        cells.append(_text(_rounds_of(group.averaged)))
        for measure, column in zip(options.measures, marked, strict=True):
            cells.append(value_cell(measure, group.summary(measure.key), options, column[i]))
        rows.append(tuple(cells))
    for group in block.groups:
        rows += [_apart_row(group, member, options, rename) for member in group.apart]
    return Table("", tuple(columns), tuple(rows), n_fixed=3)


def _apart_row(group: Group, member: Member, options: Options, rename: Rename) -> tuple[Cell, ...]:
    run, chosen = member.run, member.chosen
    values = [measure.format(chosen.values[measure.key] if chosen else None) for measure in options.measures]
    texts = [f"{shown_label(group, rename)} ({run.ending})", str(run.seed), _rounds_of([member]), *values]
    return tuple(_text(text) for text in texts)


def _pivot_table(report: BlockReport, options: Options, rename: Rename) -> Table:
    groups = [group for group in report.block.groups if group.averaged]
    heads = _sorted_columns(groups, options.pivot)
    # What `--best-over` chose may differ from column to column; the caption says it.
    labels = {group: _label_without_choice(group, rename) for group in report.block.groups}
    names = list(dict.fromkeys(labels[group] for group in groups))
    columns = [Column("Rule", is_number=False)]
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for head in heads:
        inside = {labels[group]: group for group in groups if column_of(group, options.pivot) == head}
        above = _column_text(options.pivot, head, rename)
        for measure in options.measures:
            columns.append(Column(measure.title, above))
            marked = dict(zip(inside, _marks(list(inside.values()), measure), strict=True))
            for name in names:
                summary = inside[name].summary(measure.key) if name in inside else None
                cells[name].append(value_cell(measure, summary, options, marked.get(name, "")))
    rows = [(_text(name), *cells[name]) for name in names]
    return Table("", tuple(columns), tuple(rows))


def _difference_table(report: BlockReport, options: Options, rename: Rename) -> Table:
    baseline = report.differences[0].baseline
    columns = [Column("Rule", is_number=False), Column("Pairs")]
    columns += [Column(measure.title) for measure in options.measures]
    rows = []
    for difference in report.differences:
        sample = next(iter(difference.summaries.values()))
        cells = [_text(_label_at(difference.group, options, rename)), _text(str(sample.n if sample else 0))]
        for measure in options.measures:
            summary = difference.summaries[measure.key]
            if summary is None:
                cells.append(_text("–"))
                continue
            parts = [measure.format(summary.mean, signed=True)]
            if summary.half_width is not None:
                parts.append(f"±{measure.format(summary.half_width)}")
            interval = summary.interval
            is_clear = interval is not None and (interval[0] > 0 or interval[1] < 0)
            cells.append(Cell(tuple(parts), BEST if is_clear else ""))
        rows.append(tuple(cells))
    name = rename(baseline.aggregator) if options.pivot else shown_label(baseline, rename)
    caption = (
        f"Mean of (rule − {name}) over common seeds on equal splits, ± half its 95% Student interval.",
        "{best}: the interval leaves out 0. No correction for the number of comparisons.",
    )
    return Table(f"Paired difference from {name}", tuple(columns), tuple(rows), caption, n_fixed=2)


def _target_table(report: BlockReport, options: Options, rename: Rename) -> Table:
    by = options.by
    unit = "%" if by.scale == 100 else ""
    targets = list(dict.fromkeys(f"{by.format(reached.target)}{unit}" for reached in report.reached))
    named = options.target or ""
    is_number = parse_target(named, by) is not None
    title = f"Rounds to {by.title} {targets[0]}" if len(targets) == 1 else f"Rounds to the final {by.title}"
    if not is_number:
        title += f", the final mean of {rename(named)}" if len(targets) == 1 else f" of {rename(named)}"
    columns = [Column("Rule", is_number=False), *([Column("Target")] if len(targets) > 1 else [])]
    columns += [Column(name) for name in ("Mean curve", "Of all", "Per seed", "Seeds there")]
    rows = []
    for reached in report.reached:
        n_rounds = reached.group.any_run.n_rounds
        summary = reached.summary
        share = f"{100 * reached.of_mean / n_rounds:.0f}%" if reached.of_mean is not None else "–"
        per_seed = ["never"] if summary is None else [f"{summary.mean:.1f}"]
        if summary is not None and summary.std is not None:
            per_seed.append(f"±{summary.std:.1f}")
        cells = [_text(_label_at(reached.group, options, rename))]
        cells += [_text(f"{by.format(reached.target)}{unit}")] if len(targets) > 1 else []
        cells += [_text("never" if reached.of_mean is None else str(reached.of_mean)), _text(share)]
        rows.append((*cells, Cell(tuple(per_seed)), _text(f"{len(reached.rounds)} of {reached.n_runs}")))
    caption = (
        "First evaluated round at or past the target: of the mean over seeds, and of each seed (mean ± std of "
        "those that got there).",
    )
    return Table(title, tuple(columns), tuple(rows), caption)


def _label_at(group: Group, options: Options, rename: Rename) -> str:
    """Return a group's label with the column of the pivot that it stands in."""
    setting = _column_text(options.pivot, column_of(group, options.pivot), rename)
    return shown_label(group, rename) + (f" at {setting}" if setting else "")


def _column_text(pivot: Sequence[str], values: Sequence[object], rename: Rename) -> str:
    pairs = zip(pivot, values, strict=True)
    return ", ".join(f"{rename(short_key(key))} {value_text(value)}" for key, value in pairs)


def value_cell(measure: Measure, summary: Summary | None, options: Options, mark: str = "") -> Cell:
    """Return mean, ± sample deviation, and [± half the interval] if asked for."""
    if summary is None:
        return Cell(("–",))
    parts = [measure.format(summary.mean)]
    if summary.std is not None:
        parts.append(f"±{measure.format(summary.std)}")
        if options.interval:
            parts.append(f"[±{measure.format(summary.half_width)}]")
    return Cell(tuple(parts), mark)


def _marks(groups: Sequence[Group], measure: Measure) -> list[str]:
    shown = [measure.format(s.mean) if (s := group.summary(measure.key)) else None for group in groups]
    return marks(shown, higher_is_better=measure.higher_is_better)


def _label_without_choice(group: Group, rename: Rename) -> str:
    plain = replace(group, label=group.label.removesuffix(group.choice).rstrip())
    return shown_label(plain, rename)


def _sorted_columns(groups: Sequence[Group], pivot: Sequence[str]) -> list[tuple[object, ...]]:
    found = dict.fromkeys(column_of(group, pivot) for group in groups)
    return sorted(found, key=lambda values: [sort_value(value) for value in values])


def _rounds_of(members: Sequence[Member]) -> str:
    rounds = [t for member in members if member.chosen for t in member.chosen.rounds]
    if not rounds:
        return "–"
    return str(rounds[0]) if min(rounds) == max(rounds) else f"{min(rounds)}–{max(rounds)}"


def _text(text: str) -> Cell:
    return Cell((text,))
