"""Sweeps over a setting, and what each part of a rule contributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedpcd_cli.report.constraints import mean_active
from fedpcd_cli.report.figure_data import Sweep, final_values
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.report.settings import short_key, sort_value, value_text
from fedpcd_cli.report.table import Rename
from fedpcd_cli.views.report_figure_curves import Drawing
from fedpcd_cli.views.report_figure_files import new_figure
from fedpcd_cli.views.report_palette import look_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = (MEASURES["mean_accuracy"], MEASURES["worst10_accuracy"])


def sweep_figure(found: Sequence[Sweep], rename: Rename) -> Drawing:
    """Return mean and worst-10% accuracy over a setting's values, and the constraints that were active below.

    Raises:
        StoreError: A record is damaged.
    """
    key = found[0].key
    values = sorted({group.settings[key] for sweep in found for group in sweep.groups}, key=sort_value)
    rows, lines, active = [], [], []
    for sweep in found:
        names = [mean_active(group) for group in sweep.groups]
        samples = [[np.array(final_values(group, m)) for group in sweep.groups] for m in _PANELS]
        lines.append((sweep, samples))
        if any(name is not None for name in names):
            active.append((sweep, names))
        for i, group in enumerate(sweep.groups):
            count = names[i]
            rows.append(
                {
                    "group": group.label, "setting": key, "value": group.settings[key],
                    "seeds": len(samples[0][i]),
                    **{f"{m.key}_{word}": pick(samples[j][i]) for j, m in enumerate(_PANELS)
                       for word, pick in (("mean", np.mean), ("std", _std))},
                    "active_constraints": count[0] if count else None, "constraints": count[1] if count else None,
                }
            )  # fmt: skip

    def draw() -> Figure:
        figure = new_figure(3.3 if active else 2.3)
        ratios = [2.2, 1.0] if active else [1.0]
        panels = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
        for sweep, samples in lines:
            look = look_of(sweep.groups[0].aggregator)
            at = sweep.positions(values)
            for measure, dash, fill, of_groups in zip(
                _PANELS, ("-", (0, (4, 2))), (look.color, "white"), samples, strict=True
            ):
                panels[0].errorbar(
                    at, [100 * v.mean() for v in of_groups], yerr=[100 * _std(v) for v in of_groups],
                    color=look.color, linestyle=dash, marker=look.marker, markerfacecolor=fill,
                    capsize=1.5, elinewidth=0.7,
                    label=f"{rename(sweep.groups[0].aggregator)}, {measure.title.lower()}",
                )  # fmt: skip
        panels[0].set_ylabel("accuracy (%)")
        for number, (sweep, counts) in enumerate(active):
            width = 0.7 / len(active)
            places = np.array(sweep.positions(values)) + (number - (len(active) - 1) / 2) * width
            heights = [count[0] if count else 0.0 for count in counts]
            panels[1].bar(places, heights, width, color=look_of(sweep.groups[0].aggregator).color, alpha=0.75)
            panels[1].set_ylabel("active\nconstraints")
        panels[-1].set_xticks(range(len(values)), [value_text(value) for value in values])
        panels[-1].set_xlabel(rename(short_key(key)))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return draw, rows


def ablation_figure(plain: Group, others: Sequence[tuple[str, Group]], rename: Rename) -> Drawing:
    """Return bars of the plain rule and of each group that changes one thing about it."""
    bars = [(rename(plain.aggregator), plain), *others]
    samples = {m: [np.array(final_values(group, m)) for _, group in bars] for m in _PANELS}

    def draw() -> Figure:
        figure = new_figure(0.65 + 0.24 * len(bars))
        panels = figure.subplots(1, 2, sharey=True)
        color = look_of(plain.aggregator).color
        at = np.arange(len(bars))[::-1]
        for axes, measure in zip(panels, _PANELS, strict=True):
            means = np.array([100 * v.mean() for v in samples[measure]])
            drawn = axes.barh(
                at, means, height=0.68, color=color, xerr=[100 * _std(v) for v in samples[measure]],
                error_kw={"elinewidth": 0.7, "capsize": 1.5},
            )  # fmt: skip
            for bar in list(drawn)[1:]:
                bar.set(facecolor="#BBBBBB", edgecolor=color, linewidth=0.7)
            axes.axvline(means[0], color=color, linewidth=0.7, linestyle=(0, (2, 2)))
            axes.set_title(f"{measure.title.lower()} (%)")
            axes.set_xlim(left=0)
        panels[0].set_yticks(at, [_with_symbol(name, rename) for name, _ in bars])
        return figure

    rows = [
        {
            "group": group.label, "change": name if group is not plain else "",
            "seeds": len(samples[_PANELS[0]][i]),
            **{f"{m.key}_{word}": pick(samples[m][i]) for m in _PANELS
               for word, pick in (("mean", np.mean), ("std", _std))},
        }
        for i, (name, group) in enumerate(bars)
    ]  # fmt: skip
    return draw, rows


def _with_symbol(name: str, rename: Rename) -> str:
    key, _, value = name.partition("=")
    return f"{rename(key)} = {value}" if value else name


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else 0.0
