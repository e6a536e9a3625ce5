"""Orders of the table of constraints; a module of its own, so that `--help` loads no NumPy."""

from __future__ import annotations

from enum import StrEnum


class SortKey(StrEnum):
    """Order of the rows."""

    NEED = "need"
    CLIENT = "client"
    AGE = "age"
    WEIGHT = "weight"
    NORM = "norm"
    PROGRESS = "progress"
    SLACK = "slack"
    MULTIPLIER = "multiplier"
