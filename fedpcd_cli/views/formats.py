"""Rows as JSON or CSV for scripts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = 1


class OutputFormat(StrEnum):
    """What a command prints on stdout."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def to_json(kind: str, content: Any) -> str:
    """Return one JSON document: `schema_version`, and the content under `kind`."""
    return json.dumps({"schema_version": SCHEMA_VERSION, kind: content}, indent=2, ensure_ascii=False)


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, the columns being all keys in order of appearance; texts within lists as JSON."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n", restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()})
    return buffer.getvalue().rstrip("\n")
