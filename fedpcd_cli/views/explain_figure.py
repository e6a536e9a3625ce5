"""A round as a picture file: the plane of the correction, progress before and after, and who pulls with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedpcd_cli.explain.conflicts import conflicts
from fedpcd_cli.explain.plane import Plane, plane
from fedpcd_cli.explain.rows import ConstraintRow, constraint_rows, sort_rows
from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.explain.sort_key import SortKey
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.views.explain_head import status_sentence
from fedpcd_cli.views.explain_numbers import degrees

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: distinct under every color blindness. Shapes and dashes tell the same.
_AVERAGE, _UPDATE, _SHORT, _OTHER, _REGION = "#000000", "#009E73", "#D55E00", "#0072B2", "#CDEBDD"
_LABELED = 45  # rows up to which each one is named


def round_figure(certificate: Certificate, facts: RunFacts) -> Figure:
    """Return the figure of one round: three panels side by side."""
    from matplotlib.figure import Figure

    rows = constraint_rows(certificate)
    height = min(10.0, max(5.4, 1.8 + 0.17 * min(len(rows), _LABELED)))
    figure = Figure(figsize=(13.0, height), layout="constrained")
    panels, legends = figure.subplots(2, 3, height_ratios=[height - 1.1, 0.6])
    for axes in legends:
        axes.set_axis_off()
    _draw_space(panels[0], legends[0], certificate, rows)
    _draw_progress(panels[1], legends[1], sort_rows(rows, SortKey.NEED)[::-1])
    _draw_matrix(figure, panels[2], legends[2], certificate)
    angle = f", {degrees(certificate.angle_degrees)} from FedAvg" if certificate.active.any() else ""
    figure.suptitle(
        f"{facts.recipe}, round {certificate.round_index}, τ = {certificate.tau_used:g}: "
        f"{status_sentence(certificate)}{angle}",
        fontsize="medium",
        wrap=True,
    )
    return figure


def _draw_space(axes: Axes, legend: Axes, certificate: Certificate, rows: list[ConstraintRow]) -> None:
    """Draw the plane through the FedAvg direction and the correction."""
    axes.set_title("plane of FedAvg and the correction", fontsize="medium")
    found = plane(certificate)
    if found is None:
        axes.text(0.5, 0.5, "no direction to draw", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    middle, half = _window(found)
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal")
    share = f"{100 * found.share:.0f}% of the clients' squared length lies in this plane"
    axes.set_xlabel(f"along FedAvg, g̃₀\n({share})", fontsize="small")
    across = "towards the correction" if certificate.active.any() else "where clients differ"
    axes.set_ylabel(f"across, {across}", fontsize="small")
    axes.axhline(0, color="#CCCCCC", lw=0.6, zorder=0)
    axes.axvline(0, color="#CCCCCC", lw=0.6, zorder=0)
    reach = float(np.abs(middle).max()) + half
    region = found.region(reach)
    if certificate.feasible and len(region):
        axes.fill(*region.T, color=_REGION, zorder=0)
    elif not certificate.feasible and certificate.tau_used > 0:
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        text = "no direction is admissible"
        axes.text(0.98, 0.02, text, ha="right", fontsize=8, transform=axes.transAxes, bbox=box, zorder=5)
    few = len(rows) <= 12
    for end, threshold, row in zip(found.clients, found.thresholds, rows, strict=True):
        color = _SHORT if row.short else _OTHER
        if row.active or row.short or few:
            _draw_boundary(axes, end, threshold, 2 * reach, color, is_active=row.active)
        _arrow(axes, end, color, width=1.6 if row.active else 0.8, dashed=row.age > 0)
    named = [(end, row) for end, row in zip(found.clients, rows, strict=True) if row.active or row.short or few]
    _name(axes, sorted(named, key=lambda pair: -pair[1].multiplier), 0.07 * half)
    _arrow(axes, found.reference, _AVERAGE, width=3.4)
    if found.update is not None:
        _arrow(axes, found.update, _UPDATE, width=2.0)
    _space_legend(legend)


def _window(found: Plane) -> tuple[np.ndarray, float]:
    """Return the middle and half the side of the square that holds everything that is drawn."""
    ends = [np.zeros((1, 2)), found.clients, found.reference[None]]
    ends += [] if found.update is None else [found.update[None]]
    low, high = np.concatenate(ends).min(axis=0), np.concatenate(ends).max(axis=0)
    return (low + high) / 2, 0.62 * float((high - low).max())


def _name(axes: Axes, named: list[tuple[np.ndarray, ConstraintRow]], distance: float) -> None:
    """Write client ids behind their arrows, the heaviest first, leaving out those that would cover another."""
    taken: list[np.ndarray] = []
    for end, row in named:
        place = end * (1 + 0.8 * distance / max(float(np.linalg.norm(end)), 1e-9))
        if all(np.linalg.norm(place - other) > distance for other in taken):
            taken.append(place)
            color = _SHORT if row.short else _OTHER
            x, y = float(place[0]), float(place[1])
            axes.text(x, y, str(row.client_id), fontsize=7, color=color, ha="center", va="center", zorder=4)


def _draw_boundary(
    axes: Axes, normal: np.ndarray, threshold: float, reach: float, color: str, *, is_active: bool
) -> None:
    """Draw where a client's promise is exactly kept: normal · p = threshold."""
    squared = float(normal @ normal)
    if squared < 1e-12:
        return
    foot = normal * threshold / squared
    along = np.array([-normal[1], normal[0]]) / np.sqrt(squared) * reach
    width, alpha = (1.2, 0.8) if is_active else (0.5, 0.4)
    axes.plot(*np.stack([foot - along, foot + along]).T, color=color, lw=width, alpha=alpha, zorder=1)


def _arrow(axes: Axes, end: np.ndarray, color: str, *, width: float, dashed: bool = False) -> None:
    style = {"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0}
    tip = (float(end[0]), float(end[1]))
    axes.annotate("", tip, (0, 0), arrowprops={**style, "ls": (0, (4, 2)) if dashed else "-"}, zorder=3)


def _space_legend(legend: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Line2D([], [], color=_AVERAGE, lw=2.6, label="FedAvg"),
        Line2D([], [], color=_UPDATE, lw=2.6, label="update (before its length is reset)"),
        Patch(color=_REGION, label="admissible in this plane"),
        Line2D([], [], color=_SHORT, lw=1.2, label="client that falls short, and its boundary"),
        Line2D([], [], color=_OTHER, lw=1.2, label="other client; thick: active"),
        Line2D([], [], color="#555555", lw=1.0, ls=(0, (4, 2)), label="dashed: seen in an earlier round"),
    ]
    legend.legend(handles=entries, fontsize=7, loc="upper center", ncols=2, frameon=False, borderaxespad=0)


def _draw_progress(axes: Axes, legend: Axes, rows: list[ConstraintRow]) -> None:
    """Draw each client's progress along FedAvg and along the update, neediest on top."""
    axes.set_title("progress before and after", fontsize="medium")
    places = np.arange(len(rows))
    before, after = np.array([row.before for row in rows]), np.array([row.after for row in rows])
    required = np.array([row.required for row in rows])
    colors = [_SHORT if row.short else _OTHER for row in rows]
    axes.hlines(places, np.minimum(before, after), np.maximum(before, after), colors=colors, lw=1, alpha=0.6)
    axes.scatter(after, places, s=14, color=_UPDATE, zorder=3, label="along the update")
    axes.scatter(before, places, s=32, facecolors="none", edgecolors=colors, zorder=3, label="along FedAvg")
    axes.scatter(required, places, s=40, marker="|", color="#000000", zorder=2, label="required, τ‖g̃‖²")
    axes.axvline(0, color="#CCCCCC", lw=0.6, zorder=0)
    if len(rows) <= _LABELED:
        names = [f"{'*' if row.active else ''}{row.client_id}" for row in rows]
        axes.set_yticks(places, names, fontsize=7)
    else:
        axes.set_yticks([])
    axes.set_ylabel("client, neediest on top; * active", fontsize="small")
    axes.set_xlabel("progress, g̃ⱼ · d̃", fontsize="small")
    axes.set_ylim(-0.7, max(len(rows), 1) - 0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    legend.legend(handles, labels, fontsize=7, loc="upper center", ncols=3, frameon=False, borderaxespad=0)


def _draw_matrix(figure: Figure, axes: Axes, legend: Axes, certificate: Certificate) -> None:
    """Draw the cosines in the order of their camps."""
    found = conflicts(certificate)
    axes.set_title(f"cosines: {found.conflicting_pairs} of {found.pairs} pairs conflict", fontsize="medium")
    if found.client_ids.size == 0:
        axes.set_axis_off()
        return
    image = axes.imshow(found.cosines, cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest")
    bar = legend.inset_axes((0.1, 0.7, 0.8, 0.25))
    figure.colorbar(image, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=7)
    if found.client_ids.size <= _LABELED:
        places = range(found.client_ids.size)
        axes.set_yticks(places, [str(client) for client in found.client_ids], fontsize=7)
        axes.set_xticks(places, [str(client) for client in found.client_ids], fontsize=7, rotation=90)
    else:
        axes.set(xticks=[], yticks=[])
    axes.set_ylabel("client, ordered by camp", fontsize="small")
