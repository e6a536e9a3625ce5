"""One client over the rounds of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.explain.rows import constraint_rows
from fedpcd_cli.explain.select import read_certificate, read_records
from fedpcd_cli.store.reader import RunReader


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One round in which a client was sampled, was a constraint, or was evaluated.

    Attributes:
        round_index: t.
        role: `sampled`, `cached`, `excluded` (sampled, but its update did not count) or `absent`.
        age: Rounds since its update; 0 if sampled, None if it is no constraint.
        reason: Why it was excluded.
        norm: ||g||, where it is a constraint or was sampled.
        before: Progress along FedAvg.
        required: Progress that it is promised.
        after: Progress along the update.
        multiplier: μ, exactly 0 where not active.
        short: Falls short along FedAvg.
        active: Bends the direction.
        accuracy: Of the model after this round on its test examples, where evaluated.
    """

    round_index: int
    role: str
    age: int | None = None
    reason: str | None = None
    norm: float | None = None
    before: float | None = None
    required: float | None = None
    after: float | None = None
    multiplier: float | None = None
    short: bool = False
    active: bool = False
    accuracy: float | None = None


def client_story(run: RunReader, client_id: int) -> Iterator[Chapter]:
    """Yield what happened to a client, round by round; certificates are read one at a time.

    Raises:
        UsageError: The run has no such client.
        StoreError: A record is missing or damaged.
    """
    try:
        n_clients = int(run.environment["partition"]["n_clients"])
        window = int(run.recipe["aggregator"].get("history_rounds", 0))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{run.root}: damaged (missing {error}).") from None
    if not 0 <= client_id < n_clients:
        raise UsageError(f"--client must be in [0, {n_clients - 1}], the clients of the run; found {client_id}.")
    accuracies = _accuracies(run, client_id)
    last_seen: int | None = None
    for record in read_records(run):
        index = int(record["round"])
        sampled = client_id in record["client_ids"]
        reason = next((e["reason"] for e in record["excluded"] if e["client_id"] == client_id), None)
        last_seen = index if sampled else last_seen
        in_window = last_seen is not None and index - last_seen <= window
        role = "sampled" if sampled else "excluded" if reason is not None else "absent"
        chapter = Chapter(round_index=index, role=role, reason=reason, accuracy=accuracies.pop(index, None))
        if sampled:
            norm = record["update_norms"][record["client_ids"].index(client_id)]
            chapter = _with(chapter, norm=norm)
        if in_window:
            chapter = _with_constraint(run, record, client_id, chapter)
        if chapter.role != "absent" or chapter.accuracy is not None:
            yield chapter


def _with_constraint(run: RunReader, record: dict[str, object], client_id: int, chapter: Chapter) -> Chapter:
    certificate = read_certificate(run, record)
    if certificate is None:
        return chapter
    place = np.flatnonzero(certificate.client_ids == client_id)
    if place.size == 0:
        return chapter
    (row,) = constraint_rows(certificate, [int(place[0])])
    return _with(
        chapter,
        role=chapter.role if row.age == 0 or chapter.role == "excluded" else "cached",
        age=row.age,
        norm=row.norm,
        before=row.before,
        required=row.required,
        after=row.after,
        multiplier=row.multiplier,
        short=row.short,
        active=row.active,
    )


def _with(chapter: Chapter, **changes: object) -> Chapter:
    return replace(chapter, **changes)  # type: ignore[arg-type]


def _accuracies(run: RunReader, client_id: int) -> dict[int, float]:
    """Return the client's accuracy after each evaluated round; empty if it holds no test examples.

    Raises:
        StoreError: An evaluation lacks an entry.
    """
    found = {}
    for number, evaluation in enumerate(run.evaluations, start=1):
        try:
            n_test, n_correct = evaluation["n_test"][client_id], evaluation["n_correct"][client_id]
            if n_test:
                found[int(evaluation["round"])] = n_correct / n_test
        except (KeyError, IndexError, TypeError) as error:
            raise StoreError(
                f"{run.paths.evaluations}:{number}: damaged record ({error}).",
                hint="Run the recipe again with --force.",
            ) from None
    return found
