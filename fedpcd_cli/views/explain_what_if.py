"""A round beside what it would have been, and over all tolerances."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedpcd_cli.explain.rows import ConstraintRow, constraint_rows, sort_rows
from fedpcd_cli.explain.sort_key import SortKey
from fedpcd_cli.explain.what_if import Change, SweepPoint, angle_between
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.views.explain_head import status_sentence
from fedpcd_cli.views.explain_numbers import counted, degrees, number
from fedpcd_cli.views.explain_table import marks

_CLIENTS = 15


def what_if_view(recorded: Certificate, changed: Certificate, change: Change) -> RenderableType:
    """Return the recorded round and the changed one side by side."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    title = Text(f"What if: {describe(change)}", style="bold")
    table.add_column("")
    table.add_column("Recorded", overflow="fold")
    table.add_column("What if", overflow="fold")
    table.add_row("status", status_sentence(recorded), status_sentence(changed))
    for name, before, after in zip(_FACTS, _facts(recorded), _facts(changed), strict=True):
        table.add_row(name, before, after)
    table.add_row("angle between both", degrees(angle_between(recorded, changed)), "")
    note = "The average keeps the clients that are left out; only their constraints go." if change.without else ""
    return Group(title, table, *([Text(note)] if note else []), Text(), _clients(recorded, changed))


_FACTS = ("tau", "constraints", "active", "angle to FedAvg", "correction", "least progress")


def _facts(certificate: Certificate) -> tuple[str, ...]:
    """Return the cells of one round, in the order of the table."""
    return (
        f"{certificate.tau:g}",
        str(certificate.size),
        str(int(certificate.active.sum())),
        degrees(certificate.angle_degrees),
        number(certificate.correction_length),
        number(min((row.after for row in constraint_rows(certificate)), default=None)),
    )


def describe(change: Change) -> str:
    """Return the change in words."""
    parts = []
    if change.tau is not None:
        parts.append(f"tau {change.tau:g}")
    if change.history_rounds is not None:
        parts.append(f"history of {counted(change.history_rounds, 'round')}")
    if change.without:
        noun = "client" if len(change.without) == 1 else "clients"
        parts.append(f"without {noun} {', '.join(map(str, change.without))}")
    if change.primary is not None:
        parts.append("measured from the average" if change.primary else "without the primary direction")
    return ", ".join(parts)


def _clients(recorded: Certificate, changed: Certificate) -> RenderableType:
    """Return the clients that one of both rounds bends for or leaves short, largest difference first."""
    before = {row.client_id: row for row in sort_rows(constraint_rows(recorded), SortKey.NEED)}
    after = {row.client_id: row for row in constraint_rows(changed)}

    def moved(client: int) -> float:
        other = after.get(client)
        return -abs(before[client].multiplier - (other.multiplier if other is not None else 0.0))

    chosen = [
        client for client, row in before.items()
        if row.active or row.short or (client in after and (after[client].active or after[client].short))
    ]  # fmt: skip
    chosen.sort(key=moved)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    table.add_column("", no_wrap=True, min_width=2)
    table.add_column("Client", justify="right", no_wrap=True)
    for title in ("Progress", "μ", "", "Progress\nwhat if", "μ\nwhat if"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True, min_width=2)
    for client in chosen[:_CLIENTS]:
        row, other = before[client], after.get(client)
        cells = [marks(row.short, row.active), str(client), number(row.after), number(row.multiplier)]
        cells += ["", "–", "left out"] if other is None else _changed_cells(other)
        table.add_row(*cells)
    if not chosen:
        return Text("No client falls short in either.")
    left = len(chosen) - _CLIENTS
    return Group(table, Text(f"{counted(left, 'client')} more; --format json has all.")) if left > 0 else table


def _changed_cells(row: ConstraintRow) -> list[str]:
    return [marks(row.short, row.active), number(row.after), number(row.multiplier)]


def sweep_view(points: Sequence[SweepPoint], contradicts: bool) -> RenderableType:
    """Return the round at every tolerance, with a bar for the angle."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    title = Text("Over the tolerance τ", style="bold")
    table.add_column("", no_wrap=True)
    for heading in ("τ", "Angle", "Active", "Least\nprogress", "Correction"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = max((point.angle_degrees or 0.0 for point in points), default=0.0)
    for point in points:
        angle = point.angle_degrees
        bar = "infeasible" if not point.feasible else _bar(angle or 0.0, largest)
        table.add_row(
            ">" if point.recorded else "",
            f"{point.tau:g}",
            degrees(angle),
            str(point.n_active),
            number(point.least_progress),
            number(point.correction_length),
            bar,
            style="bold" if point.recorded else "",
        )
    return Group(title, table, Text("> as recorded"), Text(feasibility_sentence(contradicts)))


def feasibility_sentence(contradicts: bool) -> str:
    """Return from which tau on the program is infeasible, and why that is so simple."""
    if contradicts:
        return (
            "Infeasible for every τ > 0: some clients pull exactly apart. d̃ may have any length, so no τ between "
            "0 and 1 is a threshold; only τ = 0 has a solution."
        )
    return (
        "Feasible for every τ in [0, 1]: d̃ may have any length, so constraints that one τ > 0 can meet together "
        "all can, at the price of a larger angle."
    )


def _bar(value: float, largest: float) -> str:
    return "█" * round(24 * value / largest) if largest > 0 else ""
