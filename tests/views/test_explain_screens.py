"""Numbers as people read them, and the matrix of cosines at any width."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from fedpcd_cli.explain.conflicts import Conflicts
from fedpcd_cli.views.explain_conflicts import ConflictsView, matrix_lines, summary
from fedpcd_cli.views.explain_numbers import degrees, milliseconds, number, residual, rounds_ago


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1e-17, "0"), (-1e-17, "0"), (0.356, "0.36"), (-0.11, "-0.11"), (0.0049, "0.005"), (0.004, "0.004"),
        (4e-5, "4e-5"), (-3e-4, "-3e-4"), (0.005, "0.01"), (12.345, "12.35"), (9999.0, "9999.00"), (123456.0, "1.2e5"),
        (None, "–"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


def test_other_texts():
    assert [degrees(58.92), degrees(0.0), degrees(None)] == ["58.9°", "0.0°", "–"]
    assert [milliseconds(0.00034), milliseconds(0.0102), milliseconds(1.2)] == ["0.34 ms", "10 ms", "1200 ms"]
    assert [residual(0.0), residual(1.234e-16)] == ["0", "1.2e-16"]
    assert [rounds_ago(k) for k in (0, 1, 4)] == ["this round", "1 round ago", "4 rounds ago"]


def pulls(cosines, ids=None):
    cosines = np.asarray(cosines, dtype=float)
    c = len(cosines)
    upper = cosines[np.triu_indices(c, 1)]
    return Conflicts(
        client_ids=np.arange(c) if ids is None else np.asarray(ids), ages=np.zeros(c, int), cosines=cosines,
        conflicting_pairs=int((upper < 0).sum()), pairs=upper.size, most_opposed=(3, 12, -0.834) if c > 1 else None,
    )  # fmt: skip


def render(found, **settings):
    console = Console(file=io.StringIO(), **({"width": 80} | settings))
    console.print(ConflictsView(found))
    return console.file.getvalue()


def test_the_matrix_by_hand():
    lines = [
        line.plain for line in matrix_lines(pulls([[1, -0.8, 0.3], [-0.8, 1, 0], [0.3, -0.2, 1]], [7, 40, 3]), 80)
    ]
    assert lines == [" 7  ██==▒▒", "40  ==██··", " 3  ▒▒--██"]


@pytest.mark.parametrize("c", [0, 1, 2, 37, 70, 77, 300])
@pytest.mark.parametrize("width", [20, 80, 140])
def test_it_fits(c, width):
    lines = matrix_lines(pulls(np.eye(c)), width)
    assert max(line.cell_len for line in lines[: max(1, c)]) <= max(width, 50)
    if c and c <= width - 4:
        assert len(lines) == c


def test_blocks_are_means():
    cosines = np.kron([[1, -0.6], [-0.6, 1]], np.ones((20, 20)))
    lines = [line.plain for line in matrix_lines(pulls(cosines), 26)]
    assert lines[-1] == "each block is the mean over 2 x 2 clients"
    assert len(lines) == 21
    assert lines[0] == f" 0  {'█' * 10}{'=' * 10}"


def test_the_same_marks_without_color_and_ascii_where_nothing_else_can_be_shown():
    found = pulls([[1, -0.8], [-0.8, 1]])
    assert "0  ██==" in render(found, no_color=True)
    assert "█" in render(found, force_terminal=True)

    class Ascii(io.StringIO):
        encoding = "ascii"

    console = Console(file=Ascii(), width=80)
    console.print(ConflictsView(found))
    assert "0  ##==" in console.file.getvalue()
    console.file.getvalue().encode("ascii")


def test_summary():
    assert summary(pulls([[1, -0.8], [-0.8, 1]])) == (
        "1 of 1 pair conflict (negative cosine); most opposed: clients 3 and 12, -0.83."
    )
    assert summary(pulls([[1]])) == "Fewer than two constraints: nobody to conflict with."
