"""A round's constraints as a table, and the cohort of a rule that has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedpcd_cli.explain.rows import ConstraintRow
from fedpcd_cli.views.explain_numbers import counted, number, rounds_ago

WIDE = 110
"""Columns of the console from which headings are spelled out."""
LEGEND = "! falls short along FedAvg   * active: bends the direction"


def constraint_table(rows: Sequence[ConstraintRow], n_constraints: int, width: int) -> RenderableType:
    """Return one row per constraint, short clients red and marked `!`, active ones bold and marked `*`.

    Args:
        rows: What to show, in order.
        n_constraints: How many there are.
        width: Columns of the console.
    """
    if not rows:
        return Text("No constraint to show." if n_constraints else "The round has no constraint.")
    wide = width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    table.add_column("", no_wrap=True, min_width=2)
    for title in (_WIDE_TITLES if wide else _NARROW_TITLES)[:1]:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Source" if wide else "Seen", no_wrap=True)
    for title in (_WIDE_TITLES if wide else _NARROW_TITLES)[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, wide), style=_style(row))
    left = n_constraints - len(rows)
    more = f"{counted(left, 'constraint')} more: --all shows them." if left else ""
    return Group(table, *(Text(line) for line in (LEGEND, more) if line))


_WIDE_TITLES = (
    "Client", "Weight", "Norm", "Progress along\nFedAvg", "Required\nτ‖g̃‖²", "Progress along\nthe update",
    "Slack", "Multiplier", "Share of\ncorrection",
)  # fmt: skip
_NARROW_TITLES = (
    "Client",
    "Weight",
    "Norm",
    "Along\nFedAvg",
    "Needs\nτ‖g̃‖²",
    "Along\nupdate",
    "Slack",
    "μ",
    "Share",
)


def _cells(row: ConstraintRow, wide: bool) -> list[str]:
    source = rounds_ago(row.age) if wide else ("now" if row.age == 0 else f"{row.age} ago")
    return [
        marks(row.short, row.active),
        str(row.client_id),
        source,
        f"{100 * row.weight:.1f}%" if row.age == 0 else "–",
        number(row.norm),
        number(row.before),
        f"{row.required:.3g}",
        number(row.after),
        number(row.slack),
        number(row.multiplier),
        f"{100 * row.share:.1f}%" if row.active else "–",
    ]


def marks(short: bool, active: bool) -> str:
    """Return `!` for a client that falls short and `*` for an active one."""
    return ("!" if short else " ") + ("*" if active else " ")


def _style(row: ConstraintRow) -> str:
    return " ".join(["red"] * row.short + ["bold"] * row.active)


def cohort_table(record: dict[str, Any]) -> RenderableType:
    """Return the cohort of a round without a program: examples, norms, and what the rule says of each client."""
    if not record["client_ids"]:
        return Text("Nobody trained in this round.")
    own = sorted(per_client(record))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    titles = ("Client", "Examples", "Share of\nexamples", "Norm", "Norm over\nmean norm", "Cosine to\nupdate")
    for title in (*titles, *(key.replace("_", " ") for key in own)):
        table.add_column(title, justify="right", no_wrap=title in titles)
    for row in cohort_rows(record):
        table.add_row(
            str(row["client_id"]),
            f"{row['n_examples']:,}",
            f"{100 * row['share_of_examples']:.1f}%",
            number(row["norm"]),
            number(row["relative_norm"]),
            _own(row["cosine"]),
            *(_own(row[key]) for key in own),
        )
    return table


def _own(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else "–" if value is None else str(value)  # type: ignore[arg-type]


def per_client(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the diagnostics of a rule that hold one value for each client of the cohort."""
    cohort = {str(client) for client in record["client_ids"]}
    return {
        key: value
        for key, value in record["diagnostics"].items()
        if isinstance(value, dict) and value and set(value) <= cohort
    }


def cohort_rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cohort of a record, the longest update first, with the rule's values for each client."""
    total = sum(record["n_examples"]) or 1
    mean = sum(record["update_norms"]) / max(len(record["update_norms"]), 1)
    own = per_client(record)
    rows = [
        {
            "client_id": client,
            "n_examples": n,
            "share_of_examples": n / total,
            "norm": norm,
            "relative_norm": norm / mean if mean else None,
            "cosine": cosine,
            **{key: values.get(str(client)) for key, values in own.items()},
        }
        for client, n, norm, cosine in zip(
            record["client_ids"],
            record["n_examples"],
            record["update_norms"],
            record["update_cosines"],
            strict=True,
        )
    ]
    return sorted(rows, key=lambda row: (-row["norm"], row["client_id"]))
