"""Rows as JSON and CSV, and the pace of the live display."""

from __future__ import annotations

import pytest

from fedpcd_cli.views.formats import to_csv, to_json
from fedpcd_cli.views.live import pace


def test_rows_as_csv_and_json():
    rows = [{"path": "a", "seed": 1}, {"path": "b", "extra": [1, "x"]}]
    lines = to_csv(rows).splitlines()
    assert lines[0] == "path,seed,extra"
    assert lines[1] == "a,1,"
    assert lines[2] == 'b,,"[1, ""x""]"'
    assert '"schema_version": 1' in to_json("runs", rows)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 10, 3.0), "first round …"),
        ((10, 90, 5.0), "2.00 rounds/s, 0:00:45 left"),
        ((2, 400, 60.0), "30 s/round, 3:20:00 left"),
    ],
)
def test_pace(arguments, expected):
    assert pace(*arguments) == expected
