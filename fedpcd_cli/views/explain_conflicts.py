"""The cosines among a round's constraints as one character each."""

from __future__ import annotations

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from fedpcd_cli.explain.conflicts import Conflicts
from fedpcd_cli.views.explain_numbers import counted

_LIMITS = (-0.5, -0.1, 0.1, 0.5)
_MARKS = "=-·▒█"
_ASCII_MARKS = "=-.+#"
_STYLES = ("bold red", "red", "dim", "blue", "bold blue")


class ConflictsView:
    """The matrix in the order of its camps, a block per pair, as wide as the console allows.

    Above what fits, a block is the mean over several neighbors. Without Unicode the marks are ASCII characters;
    without color they differ still.
    """

    def __init__(self, found: Conflicts) -> None:
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found = self._found
        names = _ASCII_MARKS if options.ascii_only else _MARKS
        yield Text("Conflicts: cosines among the constraints, clients ordered so that camps show", style="bold")
        yield from matrix_lines(found, options.max_width, names)
        yield Text()
        yield Text(
            f"{names[0]} below −0.5   {names[1]} below −0.1   {names[2]} about 0   {names[3]} above 0.1   "
            f"{names[4]} above 0.5".replace("−", "-" if options.ascii_only else "−")
        )
        yield Text(summary(found))


def summary(found: Conflicts) -> str:
    """Return how many pairs conflict and which one most."""
    if found.most_opposed is None:
        return "Fewer than two constraints: nobody to conflict with."
    first, second, cosine = found.most_opposed
    share = f"{found.conflicting_pairs} of {counted(found.pairs, 'pair')} conflict (negative cosine)"
    return f"{share}; most opposed: clients {first} and {second}, {cosine:.2f}."


def matrix_lines(found: Conflicts, width: int, names: str = _MARKS) -> list[Text]:
    """Return the rows of the matrix, none wider than `width` (at least 20)."""
    c = found.client_ids.size
    if c == 0:
        return [Text("The round has no constraint.")]
    labels = [str(int(client)) for client in found.client_ids]
    label_width = max(map(len, labels))
    room = max(width, 20) - label_width - 2
    per_block = -(-c // room)
    starts = np.arange(0, c, per_block)
    counts = np.diff(np.append(starts, c))
    sums = np.add.reduceat(np.add.reduceat(found.cosines, starts, axis=0), starts, axis=1)
    blocks = sums / np.outer(counts, counts)
    cell = 2 if per_block == 1 and 2 * c <= room else 1
    lines = []
    for start, row in zip(starts, blocks, strict=True):
        line = Text(f"{labels[int(start)]:>{label_width}}  ", no_wrap=True, overflow="crop")
        for value in row:
            level = int(np.searchsorted(_LIMITS, value, side="right"))
            line.append(names[level] * cell, style=_STYLES[level])
        lines.append(line)
    if per_block > 1:
        lines.append(Text(f"each block is the mean over {per_block} x {per_block} clients"))
    return lines
