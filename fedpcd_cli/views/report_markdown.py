"""A table as GitHub's Markdown."""

from __future__ import annotations

from fedpcd_cli.report.marks import BEST, SECOND
from fedpcd_cli.report.table import Cell, Column, Table, named_marks

_AROUND = {BEST: ("**", "**"), SECOND: ("<u>", "</u>")}


def markdown_table(table: Table) -> str:
    """Return heading, table and caption; best in bold, second best underlined."""
    lines = [f"### {escape(table.title)}", ""] if table.title else []
    lines.append(_line([_head(column) for column in table.columns]))
    lines.append(_line(["---:" if column.is_number else "---" for column in table.columns]))
    lines += [_line([_cell(cell) for cell in row]) for row in table.rows]
    caption = [named_marks(line, "Bold", "underlined") for line in table.caption]
    return "\n".join([*lines, *(["", *(f"{escape(line)}  " for line in caption)] if caption else [])]).rstrip()


def escape(text: str) -> str:
    """Return text in which nothing is Markdown."""
    for char in "\\|*_<>[]`":
        text = text.replace(char, f"\\{char}")
    return text


def _head(column: Column) -> str:
    return escape(f"{column.above}: {column.title}" if column.above else column.title)


def _cell(cell: Cell) -> str:
    before, after = _AROUND.get(cell.mark, ("", ""))
    return " ".join([f"{before}{escape(cell.parts[0])}{after}", *map(escape, cell.parts[1:])])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
