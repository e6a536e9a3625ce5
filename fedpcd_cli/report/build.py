"""From run directories to everything that a report shows, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedpcd_cli.errors import StoreError
from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.report.best_over import best_over
from fedpcd_cli.report.choose import LAST, At, NotEvaluatedError, choose
from fedpcd_cli.report.differences import Difference, check_baseline, differences
from fedpcd_cli.report.grouping import Block, Member, column_of, group_runs, make_blocks, sort_groups
from fedpcd_cli.report.measures import MEASURES, STANDARD, Measure
from fedpcd_cli.report.runs import Run, load_runs
from fedpcd_cli.report.settings import find_key
from fedpcd_cli.report.targets import Reached, parse_target, reach
from fedpcd_cli.store.reader import RunReader, find_runs


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes:
        measures: Columns.
        at: Which evaluation.
        by: The metric that chooses: for `best`, `--best-over` and `--target`.
        interval: Show 95% intervals.
        baseline: Rule that the others are compared with.
        best_over: Keys whose best value is shown alone.
        pivot: Keys whose values become columns.
        target: A number or a rule to be reached.
    """

    measures: tuple[Measure, ...] = STANDARD
    at: At = LAST
    by: Measure = MEASURES["mean_accuracy"]
    interval: bool = False
    baseline: str | None = None
    best_over: tuple[str, ...] = ()
    pivot: tuple[str, ...] = ()
    target: str | None = None

    @property
    def wanted(self) -> tuple[Measure, ...]:
        """All measures to compute: the columns, the one that chooses, and what is stored anyway."""
        stored = [measure for measure in MEASURES.values() if measure.key in DEFINITIONS]
        return tuple(dict.fromkeys([*self.measures, self.by, *stored]))


@dataclass(frozen=True, eq=False)
class BlockReport:
    """One table with what goes below it."""

    block: Block
    differences: tuple[Difference, ...] = ()
    reached: tuple[Reached, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that is shown.

    Attributes:
        options: What was asked for, keys by their full names.
        blocks: Tables; groups of different blocks can't be compared.
        members: Every run with its values.
        left_out: One line for each run that can't be shown.
    """

    options: Options
    blocks: tuple[BlockReport, ...]
    members: tuple[Member, ...]
    left_out: tuple[str, ...]

    @property
    def split_by(self) -> tuple[str, ...]:
        """Names of the facts in which the blocks differ."""
        names = dict.fromkeys(name for b in self.blocks for name in b.block.facts)
        return tuple(name for name in names if len({str(b.block.facts.get(name)) for b in self.blocks}) > 1)

    @property
    def n_unfinished(self) -> int:
        return sum(not member.run.is_finished for member in self.members)


def build_report(paths: Sequence[Path], options: Options) -> Report:
    """Read the runs and compute everything.

    Raises:
        StoreError: No run can be shown; the reason of the first.
        UsageError: A key, a rule or a target isn't there.
    """
    runs, failures = _load(paths)
    members, more = _choose_all(runs, options)
    failures += more
    if not members:
        raise failures[0]
    options = _with_full_keys(options, [member.run for member in members])
    groups = sort_groups(group_runs(members))
    if options.best_over:
        groups = best_over(groups, options.best_over, options.by, options.pivot)
    blocks = make_blocks(groups, options.pivot)
    everyone = [group for block in blocks for group in block.groups]
    if options.baseline is not None:
        check_baseline(everyone, options.baseline)
    if options.target is not None and parse_target(options.target, options.by) is None:
        check_baseline(everyone, options.target, "--target")
    reports = [_report_block(block, options) for block in blocks]
    return Report(options, tuple(reports), tuple(members), tuple(_one_line(failure) for failure in failures))


def _load(paths: Sequence[Path]) -> tuple[list[Run], list[StoreError]]:
    runs: list[Run] = []
    failures: list[StoreError] = []
    roots: list[Path] = []
    for path in paths:
        try:
            roots += find_runs([path])
        except StoreError as error:
            failures.append(error)
    for root in dict.fromkeys(roots):
        try:
            runs += load_runs(RunReader(root))
        except StoreError as error:
            failures.append(error)
    return runs, failures


def _choose_all(runs: Sequence[Run], options: Options) -> tuple[list[Member], list[StoreError]]:
    members: list[Member] = []
    failures: list[StoreError] = []
    for run in runs:
        try:
            chosen = choose(run.log, run.model, options.at, options.wanted, options.by)
            members.append(Member(run, chosen, counts=run.is_finished or options.at.kind == "round"))
        except NotEvaluatedError as error:
            if run.is_finished:
                failures.append(error)
            else:
                members.append(Member(run, None, counts=False))
        except StoreError as error:
            failures.append(error)
    return members, failures


def _with_full_keys(options: Options, runs: Sequence[Run]) -> Options:
    known = [key for run in runs for key in run.settings]
    return replace(
        options,
        best_over=tuple(find_key(key, known, "--best-over") for key in options.best_over),
        pivot=tuple(find_key(key, known, "--pivot") for key in options.pivot),
    )


def _report_block(block: Block, options: Options) -> BlockReport:
    found: list[Difference] = []
    more: list[str] = []
    if options.baseline is not None:
        found, more = differences(block.groups, options.baseline, options.measures, options.pivot)
        if not found:
            more = [*more, f"No run of {options.baseline} is in this table; there is nothing to pair."]
    reached: list[Reached] = []
    if options.target is not None:
        for column in dict.fromkeys(column_of(group, options.pivot) for group in block.groups):
            same = [group for group in block.groups if column_of(group, options.pivot) == column]
            reached += reach(same, options.target, options.by)
        if not reached:
            more = [*more, f"No finished run in this table gives the target {options.target}."]
    own = [note for group in block.groups for note in group.notes]
    return BlockReport(block, tuple(found), tuple(reached), tuple(dict.fromkeys([*own, *more])))


def _one_line(error: StoreError) -> str:
    text = error.message if error.hint is None else f"{error.message} {error.hint}"
    return " ".join(text.split())
