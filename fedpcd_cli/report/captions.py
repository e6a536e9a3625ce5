"""What stands below a table: everything that its numbers depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedpcd_cli.report.build import BlockReport, Options, Report
from fedpcd_cli.report.grouping import Member, generated_fingerprints
from fedpcd_cli.report.runs import Run
from fedpcd_cli.report.settings import value_text


def block_caption(report: BlockReport, options: Options, *, has_marks: bool) -> list[str]:
    """Return the lines: data and protocol, seeds and rounds, what the numbers are, what ended early, notes."""
    block = report.block
    members = [member for group in block.groups for member in group.members]
    lines = list(dict.fromkeys(_data_line(member.run, members) for member in members))
    lines.append(f"{_seeds_line(block.runs)}; last round {_last_rounds(block.runs)}.")
    percent = [m.title for m in options.measures if m.scale == 100]
    sizes = {len(group.averaged) for group in block.groups}
    what = "Mean ± sample standard deviation over seeds" if max(sizes) > 1 else "One seed each"
    if options.interval and max(sizes) > 1:
        what += ", [± half the 95% Student interval of the mean]"
    lines.append(
        f"{options.at.sentence(options.by)} {what}"
        + ("; accuracies and spread in percent" if percent else "")
        + "; each client counts once."
    )
    if has_marks:
        lines.append("{best}: best, {second}: second best; numbers that read the same share their mark.")
    bases = dict.fromkeys((group.aggregator, group.base) for group in block.groups if group.base)
    lines += [f"{rule} has {base} unless its row says otherwise." for rule, base in bases]
    lines += _ended_early(members, options)
    lines += [f"{m.title}: {m.definition}." for m in options.measures if m.from_clients or not _is_standard(m.key)]
    notes = dict.fromkeys([*report.notes, *_notes(block.runs, members)])
    return [*lines, *(f"Note: {note.rstrip('.')}." for note in notes)]


def blocks_sentence(report: Report) -> str | None:
    """Return why there are several tables; None if there is one."""
    if len(report.blocks) < 2:
        return None
    facts = []
    for name in report.split_by:
        values = dict.fromkeys(_short(b.block.facts.get(name)) for b in report.blocks)
        facts.append(f"{name} ({', '.join(values)})")
    return (
        f"These runs can't be compared with each other: they differ in {' and '.join(facts)}. "
        f"There are {len(report.blocks)} tables, one for each."
    )


def block_title(report: BlockReport, full: Report) -> str:
    """Return what sets this block apart from the others."""
    if len(full.blocks) < 2:
        return ""
    return ", ".join(f"{name} {_short(report.block.facts.get(name))}" for name in full.split_by)


def seeds_text(seeds: Iterable[int]) -> str:
    """Return seeds in short.

    >>> seeds_text([3, 1, 2]), seeds_text([1, 2, 5]), seeds_text([1, 2])
    ('1–3', '1, 2, 5', '1, 2')
    """
    ordered = sorted(set(seeds))
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}–{ordered[-1]}"
    return ", ".join(map(str, ordered))


def _data_line(run: Run, members: Sequence[Member]) -> str:
    same = [m for m in members if (m.run.dataset, m.run.scheme, m.run.n_clients) == _data_of(run)]
    counts = sorted({m.chosen.n_evaluated for m in same if m.chosen})
    evaluated = "not evaluated yet" if not counts else f"{_range(counts)} evaluated"
    fraction = run.settings.get("data.test.fraction")
    share = f", {100 * fraction:.3g}% of each client's samples" if run.protocol == "matched" and fraction else ""
    return f"{run.dataset}, {run.n_clients} clients ({evaluated}), {run.scheme}, {run.protocol} test data{share}."


def _data_of(run: Run) -> tuple[str, str, int]:
    return (run.dataset, run.scheme, run.n_clients)


def _seeds_line(runs: Sequence[Run]) -> str:
    seeds = {run.seed for run in runs}
    text = f"Seed{'s' if len(seeds) > 1 else ''} {seeds_text(seeds)}"
    data = {run.data_seed for run in runs}
    if all(run.data_seed == run.seed for run in runs) and len(seeds) > 1:
        return f"{text}, each with its own split (data seed = seed)"
    return f"{text}, data seed{'s' if len(data) > 1 else ''} {seeds_text(data)}"


def _last_rounds(runs: Sequence[Run]) -> str:
    totals = sorted({run.n_rounds for run in runs})
    return ", ".join(map(str, totals))


def _ended_early(members: Sequence[Member], options: Options) -> list[str]:
    early = [m for m in members if not m.run.is_finished]
    if not early:
        return []
    if options.at.kind == "round":
        included = [m for m in early if m.counts]
        if included:
            names = ", ".join(f"{m.run.aggregator} seed {m.run.seed} ({m.run.ending})" for m in included)
            return [f"Counted though unfinished, as they were evaluated at this round: {names}."]
        return []
    names = ", ".join(f"{m.run.aggregator} seed {m.run.seed} {m.run.ending}" for m in early)
    return [f"Not averaged: {names}."]


def _notes(runs: Sequence[Run], members: Sequence[Member]) -> list[str]:
    notes = [note for run in runs for note in run.notes]
    if len({run.digest for run in runs}) == 1:
        notes += runs[0].split_notes
    for member in members:
        if member.chosen and member.run.model == "personal" and member.chosen.n_unseen:
            count = member.chosen.n_unseen
            notes.append(
                f"{count} client{'s' if count > 1 else ''} never took part; the {member.run.unseen} model stands "
                "for their personal one."
            )
    for rule in dict.fromkeys(run.aggregator for run in runs):
        mine = [run for run in runs if run.aggregator == rule and run.model == "global"]
        bad = sum(run.n_infeasible for run in mine)
        if bad:
            total = sum(run.reached for run in mine)
            notes.append(
                f"{rule}: in {bad} of {total} rounds clients contradicted each other, and on_infeasible decided."
            )
    if generated_fingerprints(runs):
        notes.append("The data themselves are drawn anew for every data seed.")
    splits: dict[tuple[int, str, tuple[str, str, int]], set[str]] = {}
    for run in runs:
        splits.setdefault((run.data_seed, run.protocol, _data_of(run)), set()).add(run.digest)
    torn = sorted({seed for (seed, _, _), digests in splits.items() if len(digests) > 1})
    if torn:
        notes.append(f"Runs of data seed {seeds_text(torn)} do not share one split.")
    return notes


def _is_standard(key: str) -> bool:
    from fedpcd_cli.metrics import DEFINITIONS

    return key in DEFINITIONS


def _range(counts: Sequence[int]) -> str:
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _short(value: object) -> str:
    text = value_text(value)
    return text[:8] if len(text) == 64 else text
