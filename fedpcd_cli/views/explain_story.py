"""One client over the rounds, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedpcd_cli.explain.story import Chapter
from fedpcd_cli.views.explain_numbers import counted, number
from fedpcd_cli.views.explain_table import LEGEND, marks


def story_view(chapters: Sequence[Chapter], client_id: int, n_rounds: int) -> RenderableType:
    """Return one row per round in which something happened to the client."""
    sampled = sum(chapter.role == "sampled" for chapter in chapters)
    cached = sum(chapter.role == "cached" for chapter in chapters)
    active = sum(chapter.active for chapter in chapters)
    title = (
        f"Client {client_id}: sampled in {sampled} of {counted(n_rounds, 'round')}, cached in {cached}, "
        f"active in {active}"
    )
    if not chapters:
        return Text(f"{title}; it was never evaluated.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    table.add_column("", no_wrap=True, min_width=2)
    table.add_column("Round", justify="right", no_wrap=True)
    table.add_column("Client was", overflow="fold")
    for heading in ("Norm", "Along\nFedAvg", "Needs", "Along\nupdate", "μ", "Accuracy"):
        table.add_column(heading, justify="right", no_wrap=True)
    for chapter in chapters:
        table.add_row(
            marks(chapter.short, chapter.active),
            str(chapter.round_index),
            _role(chapter),
            number(chapter.norm),
            number(chapter.before),
            "–" if chapter.required is None else f"{chapter.required:.3g}",
            number(chapter.after),
            number(chapter.multiplier),
            "" if chapter.accuracy is None else f"{100 * chapter.accuracy:.1f}%",
            style=" ".join(["red"] * chapter.short + ["bold"] * chapter.active),
        )
    return Group(Text(title, style="bold"), table, Text(LEGEND))


def _role(chapter: Chapter) -> str:
    if chapter.role == "cached":
        return f"cached, {chapter.age} ago"
    if chapter.role == "excluded":
        return f"left out: {chapter.reason}"
    return "sampled" if chapter.role == "sampled" else "–"
