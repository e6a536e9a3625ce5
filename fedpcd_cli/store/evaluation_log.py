"""The evaluations of one run, found at once and read one by one, so that a table of many runs stays small."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedpcd_cli.errors import StoreError
from fedpcd_cli.metrics import DEFINITIONS

_START = b'{"round":'
_METRICS = b'"metrics":'
_PERSONAL = b'"personal":'
_TAIL = 2**20  # more than any line
_HINT = "Restore the file from a copy, or run the recipe again with --force."


@dataclass(frozen=True)
class EvaluationLog:
    """Rounds of all whole evaluations and where each lies in the file.

    Attributes:
        path: `evaluations.jsonl`.
        rounds: Evaluated rounds, increasing.
        spans: First byte and end of each record.
        is_torn: Whether the file ends within a record, as it does while a run writes or after it was killed.
        has_personal: Whether personal models were evaluated too.
    """

    path: Path
    rounds: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    is_torn: bool
    has_personal: bool

    @classmethod
    def scan(cls, path: Path) -> EvaluationLog:
        """Find all records without parsing them; a missing file holds none.

        Raises:
            StoreError: The file can't be read, a line is no record, or rounds don't increase.
        """
        content = _read(path)
        rounds: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        while (end := content.find(b"\n", start)) >= 0:
            number = len(rounds) + 1
            current = _round_of(path, number, content[start:end])
            if rounds and current <= rounds[-1]:
                raise StoreError(
                    f"{path}:{number}: damaged record (rounds must increase; found {current} after {rounds[-1]}).",
                    hint=_HINT,
                )
            rounds.append(current)
            spans.append((start, end))
            start = end + 1
        has_personal = bool(spans) and _PERSONAL in content[slice(*spans[-1])]
        return cls(path, tuple(rounds), tuple(spans), start < len(content), has_personal)

    def record(self, index: int) -> dict[str, Any]:
        """Return one evaluation with every client's values.

        Raises:
            StoreError: It is damaged, or the file can't be read any more.
        """
        return _parse(self.path, index + 1, self._lines([index])[0])

    def scores(self, index: int, model: str) -> dict[str, Any]:
        """Return `metrics`, `n_correct`, `loss_sums` and `n_test` of one evaluation under one kind of model.

        Raises:
            StoreError: It is damaged.
        """
        record = self.record(index)
        try:
            scores = record["personal"] if model == "personal" else record
            sizes = {len(record["n_test"]), len(scores["n_correct"]), len(scores["loss_sums"])}
            if len(sizes) != 1:
                raise StoreError(f"{self.path}:{index + 1}: damaged record (clients are missing).", hint=_HINT)
            counts = np.asarray(record["n_test"], dtype=np.float64)
            right = np.asarray(scores["n_correct"], dtype=np.float64)
            losses = np.asarray(scores["loss_sums"], dtype=np.float64)
            if ((right < 0) | (right > counts)).any() or not np.isfinite(losses).all() or not (counts > 0).any():
                raise StoreError(f"{self.path}:{index + 1}: damaged record (impossible counts).", hint=_HINT)
            return {
                "metrics": self._checked(index, scores["metrics"]),
                "n_test": counts,
                "n_correct": right,
                "loss_sums": losses,
                "n_unseen": int(scores.get("n_unseen", 0)),
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"{self.path}:{index + 1}: damaged record ({error}).", hint=_HINT) from None

    def metrics(self, model: str, first: int = 0) -> list[dict[str, float]]:
        """Return the metrics of all evaluations from index `first` on; clients' values are not parsed.

        Raises:
            StoreError: A record is damaged.
        """
        indices = range(first, len(self.rounds))
        found = []
        for index, line in zip(indices, self._lines(list(indices)), strict=True):
            start = line.find(_PERSONAL) if model == "personal" else 0
            start = line.find(_METRICS, start) if start >= 0 else -1
            end = line.find(b"}", start)
            try:
                if start < 0 or end < 0:
                    record = _parse(self.path, index + 1, line)
                    values = (record["personal"] if model == "personal" else record)["metrics"]
                else:
                    values = json.loads(line[start + len(_METRICS) : end + 1])
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(f"{self.path}:{index + 1}: damaged record ({error}).", hint=_HINT) from None
            found.append(self._checked(index, values))
        return found

    def _lines(self, indices: list[int]) -> list[bytes]:
        try:
            with self.path.open("rb") as file:
                lines = []
                for index in indices:
                    start, end = self.spans[index]
                    file.seek(start)
                    lines.append(file.read(end - start))
                return lines
        except OSError as error:
            raise StoreError(f"{self.path}: can't be read: {error.strerror or error}.") from None

    def _checked(self, index: int, values: Any) -> dict[str, float]:
        wanted = (*DEFINITIONS, "n_evaluated")
        if not isinstance(values, dict):
            raise StoreError(f"{self.path}:{index + 1}: damaged record (metrics are no mapping).", hint=_HINT)
        for key in wanted:
            value = values.get(key)
            if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
                raise StoreError(
                    f"{self.path}:{index + 1}: damaged record (metric '{key}' must be a number; found {value!r}).",
                    hint=_HINT,
                )
        return {key: values[key] for key in wanted}


def last_recorded_round(path: Path) -> int:
    """Return the round of the last whole line of `rounds.jsonl`, 0 if there is none.

    A run writes its status rarely and a line for every round; only the end of the file is read.
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            lines = file.read().split(b"\n")[:-1]
        record = json.loads(lines[-1]) if lines else {}
        return int(record.get("round", 0))
    except (OSError, ValueError, AttributeError, TypeError):
        return 0  # whoever needs these records will say what is wrong with them


def count_infeasible(path: Path) -> int:
    """Return how many rounds of `rounds.jsonl` say that their program had no solution, without parsing any."""
    try:
        return path.read_bytes().count(b'"feasible":false')
    except OSError:
        return 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror or error}.") from None


def _round_of(path: Path, number: int, line: bytes) -> int:
    """Return a record's round from its first bytes; a line of another shape is parsed whole."""
    if line.startswith(_START) and line.endswith(b"}"):
        text = line[len(_START) : line.find(b",", len(_START))]
        if text.isdigit():
            return int(text)
    value = _parse(path, number, line).get("round")
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StoreError(f"{path}:{number}: damaged record (round must be a number; found {value!r}).", hint=_HINT)
    return value


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise StoreError(f"{path}:{number}: damaged record ({error}).", hint=_HINT) from None
    return record
