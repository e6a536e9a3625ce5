"""Rows of a round, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.rows import constraint_rows, select_rows, sort_rows
from fedpcd_cli.explain.sort_key import SortKey


def select(rows, **changes):
    return select_rows(
        rows, **({"everything": False, "active_only": False, "client_id": None, "round_index": 1} | changes)
    )


def test_the_worked_example(in_the_plane):
    rows = constraint_rows(in_the_plane(10, 45, 155, tau=0.25))
    np.testing.assert_allclose([row.before for row in rows], [0.66, 0.97, -0.11], atol=0.005)
    np.testing.assert_allclose([row.after for row in rows], [0.36, 0.85, 0.25], atol=0.01)
    np.testing.assert_allclose([row.multiplier for row in rows], [0, 0, 0.36], atol=0.005)
    assert [row.required for row in rows] == pytest.approx([0.25] * 3)
    assert [row.slack for row in rows] == pytest.approx([row.after - 0.25 for row in rows], abs=1e-7)
    assert [(row.short, row.active) for row in rows] == [(False, False), (False, False), (True, True)]
    assert [row.share for row in rows] == [0, 0, 1]
    assert [row.weight for row in rows] == pytest.approx([1 / 3] * 3)
    assert [row.norm for row in rows] == pytest.approx([1, 1, 1])


def test_shares_are_lengths_of_the_correction(in_the_plane):
    # Two clients mirrored about the average pull equally hard.
    rows = constraint_rows(in_the_plane(0, 80, 40, 40, 40, 40, tau=1.0))
    assert [row.share for row in rows[:2]] == pytest.approx([0.5, 0.5])
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_history(with_history):
    rows = {row.client_id: row for row in constraint_rows(with_history(tau=0.1))}
    assert {client: row.age for client, row in rows.items()} == {3: 0, 0: 2, 1: 2, 2: 1}
    assert {client: row.source_round for client, row in rows.items()} == {3: 3, 0: 1, 1: 1, 2: 2}
    assert {client: row.weight for client, row in rows.items()} == {3: 1, 0: 0, 1: 0, 2: 0}
    assert rows[2].before == pytest.approx(math.cos(math.radians(150)))
    assert rows[2].short
    assert rows[2].after == pytest.approx(0.1)


def test_order_by_need_is_the_largest_shortfall_first(in_the_plane):
    rows = constraint_rows(in_the_plane(10, 45, 155, tau=0.25))
    assert [row.client_id for row in sort_rows(rows, SortKey.NEED)] == [2, 0, 1]
    assert [row.client_id for row in sort_rows(rows, SortKey.CLIENT)] == [0, 1, 2]
    assert [row.client_id for row in sort_rows(rows, SortKey.MULTIPLIER)] == [2, 0, 1]
    assert [row.client_id for row in sort_rows(rows, SortKey.PROGRESS)] == [2, 0, 1]


def test_every_order_keeps_every_row(with_history):
    rows = constraint_rows(with_history(tau=0.1))
    for key in SortKey:
        assert sorted(row.client_id for row in sort_rows(rows, key)) == [0, 1, 2, 3]
    assert [row.age for row in sort_rows(rows, SortKey.AGE)] == [0, 1, 2, 2]


def test_selection(in_the_plane):
    rows = constraint_rows(in_the_plane(*([60] * 30), 200, tau=0.1))
    assert len(select(rows)) == 13
    assert [row.client_id for row in select(rows)][-1] == 30
    assert len(select(rows, everything=True)) == 31
    assert [row.client_id for row in select(rows, active_only=True)] == [30]
    assert [row.client_id for row in select(rows, client_id=4)] == [4]


def test_an_unknown_client_is_named(with_history):
    with pytest.raises(UsageError) as caught:
        select(constraint_rows(with_history()), client_id=9, round_index=3)
    assert str(caught.value) == (
        "--client 9 has no constraint in round 3; clients that have one: 0, 1, 2, 3.\n"
        "  --client 9 --over-time shows its rounds."
    )


def test_a_round_without_a_step_gives_nobody_progress(that_cancels):
    rows = constraint_rows(that_cancels)
    assert [row.after for row in rows] == [0, 0]
