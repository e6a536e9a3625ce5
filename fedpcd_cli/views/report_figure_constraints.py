"""Who pulled on FedPCD's direction, and how far it turned from FedAvg's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcd_cli.report.constraints import ConstraintSeries, angle_table, of_group
from fedpcd_cli.report.grouping import Group
from fedpcd_cli.report.table import Rename, shown_label
from fedpcd_cli.views.report_figure_curves import Drawing
from fedpcd_cli.views.report_figure_files import new_figure
from fedpcd_cli.views.report_palette import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def constraints_figure(groups: Sequence[Group], rename: Rename) -> Drawing | None:
    """Return the multipliers of the first group's first run, client by round, and all groups' angles below.

    None if no group solves a program.

    Raises:
        StoreError: A record is damaged.
    """
    found = [(group, programs) for group in groups if (programs := of_group(group))]
    if not found:
        return None
    first = found[0][1][0]

    def draw() -> Figure:
        figure = new_figure(4.1)
        heat, angles = figure.subplots(2, 1, sharex=True, height_ratios=[1.7, 1])
        _draw_heat(figure, heat, first)
        heat.set_title(f"{shown_label(found[0][0], rename)}, seed {first.run.seed}")
        for number, (group, programs) in enumerate(found):
            _draw_angles(angles, shown_label(group, rename), group.aggregator, programs, number)
        angles.set(xlabel="round", ylabel="angle between FedAvg\nand the update (°)")
        angles.set_ylim(bottom=0)
        if len(found) > 1:
            figure.legend(*angles.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return draw, _rows(found)


def _draw_heat(figure: Figure, axes: Axes, series: ConstraintSeries) -> None:
    from matplotlib.colors import LogNorm

    positive = series.multipliers[series.multipliers > 0]
    extent = (series.rounds[0] - 0.5, series.rounds[-1] + 0.5, series.run.n_clients - 0.5, -0.5)
    if positive.size == 0:
        axes.text(0.5, 0.5, "no constraint was ever active", ha="center", va="center", transform=axes.transAxes)
        return
    low, high = np.quantile(positive, [0.02, 1.0])
    image = axes.imshow(
        _by_round(series), aspect="auto", interpolation="nearest", cmap="viridis_r", extent=extent,
        norm=LogNorm(max(low, high * 1e-4), high if high > low else low * 1.01, clip=True),
    )  # fmt: skip
    figure.colorbar(image, ax=axes, label="multiplier μ", pad=0.02, aspect=28)
    axes.set_ylabel("client (white: not active)")


def _by_round(series: ConstraintSeries) -> Any:
    """Return the multipliers with a column for every round between the first and the last, masked where zero."""
    wide = np.zeros((len(series.multipliers), series.rounds[-1] - series.rounds[0] + 1))
    wide[:, series.rounds - series.rounds[0]] = series.multipliers
    return np.ma.masked_equal(wide, 0.0)


def _draw_angles(axes: Axes, label: str, rule: str, programs: Sequence[ConstraintSeries], variant: int) -> None:
    rounds, table = angle_table(programs)
    style = line_style(rule, variant) | {"linewidth": 0.9}
    known = ~np.isnan(table).any(axis=0)
    mean = table[:, known].mean(axis=0)
    axes.plot(rounds[known], mean, label=label, **style)
    if len(table) > 1:
        std = table[:, known].std(axis=0, ddof=1)
        low = np.maximum(mean - std, 0)
        axes.fill_between(rounds[known], low, mean + std, color=style["color"], alpha=0.15, linewidth=0)


def _rows(found: Sequence[tuple[Group, list[ConstraintSeries]]]) -> list[dict[str, Any]]:
    """Return the angle of every run and round, then the positive multipliers of the run in the heat map."""
    rows: list[dict[str, Any]] = []
    for group, programs in found:
        for one in programs:
            for i, t in enumerate(one.rounds.tolist()):
                angle = one.angles[i]
                rows.append(
                    {
                        "kind": "round", "group": group.label, "seed": one.run.seed, "round": t,
                        "angle_degrees": None if np.isnan(angle) else float(angle),
                        "active": int(one.n_active[i]), "constraints": int(one.n_constraints[i]),
                    }
                )  # fmt: skip
    first = found[0][1][0]
    for client, column in zip(*np.nonzero(first.multipliers), strict=True):
        rows.append(
            {
                "kind": "multiplier", "group": found[0][0].label, "seed": first.run.seed,
                "round": int(first.rounds[column]), "client": int(client),
                "multiplier": float(first.multipliers[client, column]),
            }
        )  # fmt: skip
    return rows
