r"""Tables as LaTeX with booktabs, to be compiled alone or read by a paper with \input.

LaTeX redefines \documentclass once it was used: the file looks whether that has happened and brings its own
preamble only if not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby

from fedpcd_cli.report.marks import BEST, SECOND
from fedpcd_cli.report.table import Cell, Table, named_marks

_BEFORE = r"""% Compile this file alone, or read it with \input in a paper that loads booktabs and graphicx.
\expandafter\ifx\csname @twoclasseserror\endcsname\documentclass
  \gdef\fedpcdtablesend{}%
\else
  \documentclass{article}
  \usepackage[T1]{fontenc}
  \usepackage[utf8]{inputenc}
  \usepackage{booktabs,graphicx}
  \usepackage[margin=15mm]{geometry}
  \gdef\fedpcdtablesend{\end{document}}
  \begin{document}
\fi"""
# A table that is too wide shrinks to the width of the text; others keep their size.
_FIT = r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
_AFTER = r"\fedpcdtablesend"
_MARKED = {BEST: r"\textbf{%s}", SECOND: r"\underline{%s}"}
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "±": r"$\pm$", "–": "--", "—": "---", "−": r"$-$", "…": r"\dots{}", "°": r"$^\circ$", "√": r"$\surd$",
    "Σ": r"$\Sigma$", "σ": r"$\sigma$", "τ": r"$\tau$", "α": r"$\alpha$", "β": r"$\beta$", "λ": r"$\lambda$",
    "η": r"$\eta$", "ε": r"$\varepsilon$", "γ": r"$\gamma$", "ρ": r"$\rho$", "μ": r"$\mu$", "ā": r"$\bar{a}$",
    "²": r"$^2$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "·": r"$\cdot$", "“": "``", "”": "''",
    "’": "'", "∞": r"$\infty$",
    # Not hyphens of a ligature, and no optional argument after a line's end.
    "[": "{[}", "]": "{]}",
}  # fmt: skip


def latex_document(tables: Sequence[Table], sentence: str | None) -> str:
    """Return all tables, one `table` environment each."""
    remark = [f"% {sentence}"] if sentence else []
    return "\n".join([_BEFORE, *remark, *(f"\n{latex_table(table)}" for table in tables), "", _AFTER])


def latex_table(table: Table) -> str:
    """Return one table; best in bold, second best underlined."""
    caption = [named_marks(line, "Bold", "underlined") for line in table.caption]
    text = " ".join(escape(line) for line in ([f"{table.title}."] if table.title else []) + caption)
    spec = "".join("r" if column.is_number else "l" for column in table.columns)
    lines = [r"\begin{table}", r"  \centering", rf"  \caption{{{text}}}", r"  \vspace{4pt}", r"  \small"]
    lines += [r"  \setlength{\tabcolsep}{3pt}", _FIT, rf"  \begin{{tabular}}{{@{{}}{spec}@{{}}}}", r"    \toprule"]
    lines += [f"    {line}" for line in _heads(table)]
    lines.append(r"    \midrule")
    lines += [f"    {' & '.join(_cell(cell) for cell in row)} \\\\" for row in table.rows]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}}", r"\end{table}"])


def escape(text: str) -> str:
    """Return text that pdfLaTeX prints as it is; letters that it lacks are spelled or replaced."""
    return "".join(_SPECIAL.get(char, char if char.isascii() else _other(char)) for char in text)


def _other(char: str) -> str:
    if char.isalpha() and ord(char) < 0x180:  # Latin letters of the T1 encoding
        return char
    plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return escape(plain) if plain else "?"


def _heads(table: Table) -> list[str]:
    titles = " & ".join(escape(column.title) for column in table.columns) + r" \\"
    if not any(column.above for column in table.columns):
        return [titles]
    above, rules, position = [], [], 1
    for name, same in groupby(table.columns, key=lambda column: column.above):
        width = len(list(same))
        lines = escape(name).replace(", ", r" \\ ")
        stacked = rf"\shortstack{{{lines}}}"
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{stacked}}}" if name else " & ".join([""] * width))
        if name:
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    return [" & ".join(above) + r" \\", " ".join(rules), titles]


def _cell(cell: Cell) -> str:
    first = _MARKED.get(cell.mark, "%s") % _number(cell.parts[0])
    rest = " ".join(escape(part) for part in cell.parts[1:])
    return rf"{first} {{\scriptsize {rest}}}" if rest else first


def _number(text: str) -> str:
    is_negative = text[:1] == "-" and text[1:2].isdigit()
    return f"$-${escape(text[1:])}" if is_negative else escape(text)
