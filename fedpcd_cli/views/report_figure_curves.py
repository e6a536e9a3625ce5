"""Accuracy over the rounds, accuracy against spread, and the clients' accuracies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcd_cli.report.figure_data import Curve, client_accuracies, final_values, target_points
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.measures import MEASURES, Measure
from fedpcd_cli.report.table import Rename, shown_label
from fedpcd_cli.views.report_figure_files import Rows, new_figure
from fedpcd_cli.views.report_palette import line_style, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawing = tuple[Callable[[], "Figure"], Rows]
_BINS = 20


def curves_figure(
    found: Mapping[Measure, Sequence[Curve]], mark: tuple[Measure, float] | None, rename: Rename
) -> Drawing:
    """Return one panel per measure: mean over seeds, a band of ± one sample deviation, and the target."""
    variants = _variants([curve.group for curve in next(iter(found.values()))])

    def draw() -> Figure:
        count = len(next(iter(found.values())))
        figure = new_figure(1.75 * len(found) + 0.14 * ((count + 1) // 2) + 0.3)
        panels = np.atleast_1d(figure.subplots(len(found), 1, sharex=True))
        for axes, (measure, lines) in zip(panels, found.items(), strict=True):
            for curve in lines:
                _draw_curve(axes, curve, measure, rename, variants[curve.group], alpha=0.15 if count < 7 else 0.08)
            if mark is not None and mark[0] is measure:
                _draw_target(axes, lines, measure, mark[1])
            axes.set_ylabel(_unit(measure))
            axes.margins(x=0.01)
        panels[-1].set_xlabel("round")
        _legend_below(figure, panels[0])
        return figure

    return draw, _curve_rows(found, mark)


def frontier_figure(groups: Sequence[Group], rename: Rename) -> Drawing:
    """Return mean accuracy against spread, with the ranges over seeds; up and to the left is better for all."""
    mean, spread = MEASURES["mean_accuracy"], MEASURES["accuracy_std"]
    points = [
        (group, np.array(final_values(group, spread)), np.array(final_values(group, mean))) for group in groups
    ]

    def draw() -> Figure:
        figure = new_figure(2.5 + 0.14 * ((len(groups) + 1) // 2))
        axes = figure.subplots()
        variants = _variants(groups)
        for group, x, y in points:
            look = look_of(group.aggregator)
            is_filled = group.model == "global" and variants[group] == 0
            axes.errorbar(
                100 * x.mean(), 100 * y.mean(), xerr=_range(100 * x), yerr=_range(100 * y), color=look.color,
                marker=look.marker, markersize=6 if group.aggregator == "fedpcd" else 4.5, linestyle="none",
                markerfacecolor=look.color if is_filled else "white", elinewidth=0.7,
                label=shown_label(group, rename),
            )  # fmt: skip
        axes.set(xlabel="spread σ of client accuracies (%)", ylabel=_unit(mean))
        axes.text(0.02, 0.98, "better ↖", transform=axes.transAxes, va="top", fontsize=6.5, color="#555555")
        axes.margins(0.08)
        _legend_below(figure, axes)
        return figure

    rows = [
        {
            "group": group.label, "seeds": len(x),
            "spread": x.mean(), "spread_low": x.min(), "spread_high": x.max(),
            "mean_accuracy": y.mean(), "mean_accuracy_low": y.min(), "mean_accuracy_high": y.max(),
        }
        for group, x, y in points
    ]  # fmt: skip
    return draw, rows


def clients_figure(groups: Sequence[Group], rename: Rename) -> Drawing:
    """Return a histogram of client accuracies per group, and the share of clients below each accuracy."""
    accuracies = {group: np.sort(client_accuracies(group)) for group in groups}
    variants = _variants(groups)

    def draw() -> Figure:
        figure = new_figure(2.2 + (0.5 if len(groups) < 9 else 0.38) * len(groups))
        below, *panels = figure.subplots(len(groups) + 1, 1, sharex=True, height_ratios=[3.4, *[1] * len(groups)])
        top = max(np.histogram(100 * a, _BINS, (0, 100))[0].max() / a.size for a in accuracies.values())
        for group, axes in zip(groups, panels, strict=True):
            values = 100 * accuracies[group]
            color = look_of(group.aggregator).color
            below.ecdf(values, **line_style(group.aggregator, variants[group]))
            shares = np.full(values.size, 1 / values.size)
            axes.hist(values, bins=_BINS, range=(0, 100), weights=shares, color=color, alpha=0.75)
            axes.axvline(values.mean(), color="black", linewidth=0.8, linestyle=(0, (3, 2)))
            axes.set_ylim(0, 1.05 * top)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.text(0.01, 0.92, shown_label(group, rename), transform=axes.transAxes, va="top", fontsize=6.5,
                      color=color, fontweight="bold")  # fmt: skip
        below.set_ylabel("share of clients\nat or below")
        panels[-1].set_xlabel("test accuracy of a client (%); dashed: mean")
        panels[-1].set_xlim(0, 100)
        return figure

    rows = [
        {"group": group.label, "accuracy": float(value), "share_at_or_below": (i + 1) / values.size}
        for group, values in accuracies.items()
        for i, value in enumerate(values)
    ]
    return draw, rows


def _draw_curve(axes: Axes, curve: Curve, measure: Measure, rename: Rename, variant: int, *, alpha: float) -> None:
    style = line_style(curve.group.aggregator, variant)
    mean, std = measure.scale * curve.mean, curve.std
    axes.plot(curve.rounds, mean, label=shown_label(curve.group, rename), **style)
    if std is not None:
        band = measure.scale * std
        low, high = mean - band, mean + band
        if measure.scale == 100:  # no share lies beyond
            low, high = np.maximum(low, 0), np.minimum(high, 100)
        axes.fill_between(curve.rounds, low, high, color=style["color"], alpha=alpha, linewidth=0)


def _draw_target(axes: Axes, lines: Sequence[Curve], measure: Measure, target: float) -> None:
    axes.axhline(measure.scale * target, color="#555555", linewidth=0.7, linestyle=(0, (2, 2)))
    for curve in lines:
        point = target_points(curve, target, measure)
        if point is not None:
            look = look_of(curve.group.aggregator)
            axes.plot(point[0], measure.scale * point[1], marker=look.marker, color=look.color, markersize=4.5,
                      markeredgecolor="white", markeredgewidth=0.5, zorder=5)  # fmt: skip


def _curve_rows(
    found: Mapping[Measure, Sequence[Curve]], mark: tuple[Measure, float] | None
) -> list[dict[str, Any]]:
    rows = []
    for measure, lines in found.items():
        for curve in lines:
            std = curve.std
            for i, t in enumerate(curve.rounds.tolist()):
                rows.append(
                    {
                        "metric": measure.key,
                        "group": curve.group.label,
                        "seeds": len(curve.values),
                        "round": t,
                        "mean": float(curve.mean[i]),
                        "std": None if std is None else float(std[i]),
                        "target": mark[1] if mark is not None and mark[0] is measure else None,
                    }
                )
    return rows


def _variants(groups: Sequence[Group]) -> dict[Group, int]:
    seen: dict[str, int] = {}
    found = {}
    for group in groups:
        found[group] = seen.get(group.aggregator, 0)
        seen[group.aggregator] = found[group] + 1
    return found


def _range(values: np.ndarray) -> np.ndarray | None:
    if values.size < 2:
        return None
    return np.array([[values.mean() - values.min()], [values.max() - values.mean()]])


def _unit(measure: Measure) -> str:
    names = {"mean_accuracy": "mean accuracy", "worst10_accuracy": "worst-10% accuracy"}
    name = names.get(measure.key, measure.title.lower())
    return f"{name} (%)" if measure.scale == 100 else name


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if max((len(label) for label in labels), default=0) < 13 else 2
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))
