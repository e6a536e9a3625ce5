"""Append-only files of one JSON object per line, whose torn last line is noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from fedpcd_cli.errors import StoreError
from fedpcd_cli.store.atomic import storage_errors


class JsonlWriter:
    """Appends records; each reaches the operating system at once, the disk at :meth:`sync`.

    Raises:
        StoreError: The file can't be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with storage_errors(path):
            self._file: TextIO = path.open("a", encoding="utf-8", newline="\n")

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record.

        Raises:
            ValueError: A number is not finite; records hold none.
        """
        line = json.dumps(record, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        with storage_errors(self._path):
            self._file.write(line + "\n")
            self._file.flush()

    def sync(self) -> None:
        with storage_errors(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with storage_errors(self._path):
            self._file.close()


def read_jsonl(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Return all whole records, and a sentence if the last line was torn.

    Raises:
        StoreError: The file can't be read, or a line before the last is damaged.
    """
    if not path.exists():
        return [], None
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror or error}.") from error
    tail = lines.pop()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise StoreError(
                f"{path}:{number}: damaged record ({error}).", hint="Run the recipe again with --force."
            ) from None
        records.append(record)
    return records, f"{path}: its last line was never finished and is left out" if tail else None


def truncate_after(path: Path, key: str, last: int) -> list[int]:
    """Drop a torn last line and all records whose `key` is above `last`; return that key of those kept."""
    if not path.exists():
        return []
    records, _ = read_jsonl(path)
    values = [record.get(key) for record in records]
    kept = [value for value in values if isinstance(value, int) and value <= last]
    raw = path.read_bytes().split(b"\n")[: len(kept)]
    with storage_errors(path), path.open("rb+") as file:
        file.truncate(sum(len(line) + 1 for line in raw))
    return kept
