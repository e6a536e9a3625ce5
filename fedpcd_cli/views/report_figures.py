"""All figures of a report: which ones its runs allow, and their files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedpcd_cli.report.build import BlockReport, Options, Report
from fedpcd_cli.report.figure_data import ablations, by_column, curves, representatives, sweeps
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.report.settings import short_key
from fedpcd_cli.report.table import Rename
from fedpcd_cli.views.report_figure_files import save

_MEAN, _WORST = MEASURES["mean_accuracy"], MEASURES["worst10_accuracy"]


def write_figures(report: Report, folder: Path, rename: Rename) -> tuple[list[Path], list[str]]:
    """Write every family of figures that the runs allow.

    Returns:
        The files, and a sentence for each family that is missing.

    Raises:
        StoreError: A record is damaged, or a file can't be written.
    """
    files: list[Path] = []
    missing: dict[str, None] = {}
    for number, block in enumerate(report.blocks, start=1):
        for column, groups in by_column(block.block.groups, report.options.pivot).items():
            parts = [column, *([f"table{number}"] if len(report.blocks) > 1 else [])]
            suffix = re.sub(r"[^A-Za-z0-9.+-]+", "-", "-".join(["", *filter(None, parts)]))
            if not any(group.averaged for group in groups):
                missing.setdefault(f"no figure{suffix}: no finished run", None)
                continue
            for item in _families(block, groups, report.options, folder, suffix, rename):
                if isinstance(item, str):
                    missing.setdefault(item, None)
                else:
                    files += item
    return files, list(missing)


def _families(
    block: BlockReport, groups: Sequence[Group], options: Options, folder: Path, suffix: str, rename: Rename
) -> Iterator[list[Path] | str]:
    from fedpcd_cli.views import report_figure_constraints as constraints
    from fedpcd_cli.views import report_figure_curves as lines
    from fedpcd_cli.views import report_figure_settings as settings

    shown = representatives(groups, options.by)
    if len(shown) < sum(bool(group.averaged) for group in groups):
        yield f"curves, frontier, clients and constraints{suffix} show one group of each rule"
    measures = list(dict.fromkeys([_MEAN, _WORST, *([options.by] if options.target is not None else [])]))
    found = {measure: curves(shown, measure) for measure in measures}
    target = next((reached.target for reached in block.reached if reached.group in groups), None)
    mark = None if target is None else (options.by, target)
    yield save(folder, f"curves{suffix}", *lines.curves_figure(found, mark, rename))
    yield save(folder, f"frontier{suffix}", *lines.frontier_figure(shown, rename))
    yield save(folder, f"clients{suffix}", *lines.clients_figure(shown, rename))
    swept = sweeps(groups)
    for key, of_rules in swept.items():
        yield save(folder, f"sweep-{short_key(key)}{suffix}", *settings.sweep_figure(of_rules, rename))
    if not swept:
        yield f"no sweep{suffix}: no setting takes three numbers while all others stay"
    changed = ablations(groups)
    for plain, others in changed:
        name = f"ablation{suffix}" if len(changed) == 1 else f"ablation-{plain.aggregator}-{plain.model}{suffix}"
        yield save(folder, name, *settings.ablation_figure(plain, others, rename))
    if not changed:
        yield f"no ablation{suffix}: no rule has two groups that change one setting of a third"
    drawn = constraints.constraints_figure(shown, rename)
    if drawn is None:
        yield f"no constraints{suffix}: no rule here solves a program"
    else:
        yield save(folder, f"constraints{suffix}", *drawn)
