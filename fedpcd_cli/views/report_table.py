"""A report's tables in the terminal: one line per row if the width allows, else stacked cells and cut columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fedpcd_cli.report.marks import BEST, SECOND
from fedpcd_cli.report.table import Cell, Column, Table, named_marks

# Letters, so that they survive without color and in a file.
SIGNS = {BEST: "*", SECOND: "°"}
_STYLES = {BEST: "bold", SECOND: "underline"}


def print_table(console: Console, table: Table) -> None:
    """Print a table at the console's width, its caption below."""
    for part in _fitting(console, table):
        console.print(part)
        console.print()
    for line in table.caption:
        console.print(named_marks(line, SIGNS[BEST], SIGNS[SECOND]), markup=False)


def _fitting(console: Console, table: Table) -> Iterator[RichTable]:
    for stacked in (False, True):
        for columns in dict.fromkeys([tuple(range(len(table.columns))), _telling(table)]):
            for label_width in (None, 32, 20, _least_label(table)):
                whole = _rich(table, columns, stacked=stacked, label_width=label_width)
                if _width(console, whole) <= console.width:
                    yield whole
                    return
    for columns in _cuts(console, table):
        yield _rich(table, columns, stacked=True, label_width=_least_label(table))


def _telling(table: Table) -> tuple[int, ...]:
    """Return the columns without those that say the same in every row, and that the caption says as well."""
    return tuple(
        i
        for i, column in enumerate(table.columns)
        if not column.is_in_caption or len({row[i].parts for row in table.rows}) > 1
    )


def _cuts(console: Console, table: Table) -> Iterator[tuple[int, ...]]:
    """Yield as many columns at a time as fit beside the fixed ones."""
    telling = _telling(table)
    fixed = tuple(i for i in telling if i < table.n_fixed)
    chosen: tuple[int, ...] = ()
    for i in telling[len(fixed) :]:
        trial = _rich(table, (*fixed, *chosen, i), stacked=True, label_width=_least_label(table))
        if chosen and _width(console, trial) > console.width:
            yield (*fixed, *chosen)
            chosen = ()
        chosen = (*chosen, i)
    yield (*fixed, *chosen)


def _least_label(table: Table) -> int:
    """Return a width at which most words of the labels stay whole."""
    words = [word for row in table.rows for word in row[0].parts[0].split()]
    return min(20, max([12, *map(len, words)]))


def _width(console: Console, table: RichTable) -> int:
    return console.measure(table, options=console.options.update(width=10_000)).maximum


def _rich(table: Table, columns: Sequence[int], *, stacked: bool, label_width: int | None) -> RichTable:
    rich = RichTable(
        title=Text(table.title) if table.title else None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for i in columns:
        column = table.columns[i]
        above = column.above.replace(", ", "\n") if stacked else column.above
        title = f"{above}\n{column.title}" if above else column.title
        if i == 0:
            rich.add_column(Text(title), overflow="fold", min_width=10, max_width=label_width)
        else:
            rich.add_column(Text(title), justify="right" if column.is_number else "left", min_width=5)
    for row in table.rows:
        rich.add_row(*(_cell(row[i], table.columns[i], stacked=stacked) for i in columns))
    return rich


def _cell(cell: Cell, column: Column, *, stacked: bool) -> Text:
    sign = SIGNS.get(cell.mark, " " if column.is_number and len(cell.parts) > 1 else "")
    text = Text(cell.parts[0], style=_STYLES.get(cell.mark, ""))
    rest = Text(("\n" if stacked else " ").join(("", *cell.parts[1:])))
    if stacked:
        # Signs stand in a column of their own, so that digits stay aligned.
        return Text.assemble(text, sign, rest, *([" "] if sign and len(cell.parts) > 1 else []))
    return Text.assemble(text, rest, sign)
