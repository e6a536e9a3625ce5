"""Which round is meant, and what the run recorded of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcd_cli.errors import StoreError, UsageError, did_you_mean
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.store.reader import RunReader, find_runs

CHOICES = ("last", "most-bent", "most-active", "infeasible")
_SOLVED = "n_constraints"  # a diagnostic of every round that posed a program
_ENTRIES = (
    "round",
    "client_ids",
    "n_examples",
    "excluded",
    "update_norms",
    "update_cosines",
    "training_loss",
    "direction_norm",
    "diagnostics",
    "warnings",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundEntry:
    """One recorded round.

    Attributes:
        record: Its line of `rounds.jsonl`.
        certificate: Its program; None for rules that solve none, and for a round in which nobody trained.
        others: Further rounds to which the word that chose this one applies.
    """

    record: dict[str, Any]
    certificate: Certificate | None
    others: tuple[int, ...] = ()

    @property
    def round_index(self) -> int:
        """t."""
        return int(self.record["round"])


def find_run(path: Path) -> RunReader:
    """Return the run at a path, or the only one below it.

    Raises:
        StoreError: The path is no folder, or holds no run.
        UsageError: It holds several.
    """
    found = find_runs([path])
    if len(found) > 1:
        shown = ", ".join(str(root) for root in found[:5]) + (", ..." if len(found) > 5 else "")
        raise UsageError(f"{path} holds {len(found)} runs: {shown}.", hint="Name one of them.")
    return RunReader(found[0])


def find_round(run: RunReader, wanted: str) -> RoundEntry:
    """Return a round by number or word.

    `last` is the last one recorded, `most-bent` the one with the largest angle between FedAvg and the update,
    `most-active` the one with the most active constraints (the first of equals), `infeasible` the last one whose
    constraints contradict each other.

    Raises:
        UsageError: `wanted` is no number and no such word.
        StoreError: There is no such round, or its certificate is missing or damaged.
    """
    name = str(run.root)
    _check_word(wanted)
    n_rounds = run.status.n_rounds
    records = read_records(run)
    if not records:
        raise StoreError(f"{name} has no finished round yet.", hint="Wait for the first one, or look at its log.")
    if wanted.lstrip("-").isdigit():
        index = int(wanted)
        found = next((record for record in records if record["round"] == index), None)
        if found is None:
            last = records[-1]["round"]
            planned = "" if last == n_rounds else f" of {n_rounds} planned"
            raise UsageError(f"{name} has no round {index}; it has rounds 1 to {last}{planned}.")
        return RoundEntry(record=found, certificate=read_certificate(run, found))
    if wanted == "last":
        return RoundEntry(record=records[-1], certificate=read_certificate(run, records[-1]))
    solved = [record for record in records if _SOLVED in record["diagnostics"]]
    if not solved:
        raise StoreError(
            f"{name}: '{wanted}' needs rounds that solved a program; this run's rule records none.",
            hint="Name a round by its number, or 'last'.",
        )
    if wanted == "infeasible":
        contradicting = [record for record in solved if not record["diagnostics"]["feasible"]]
        if not contradicting:
            raise StoreError(f"{name}: no round was infeasible; all {len(solved)} programs had a solution.")
        chosen = contradicting[-1]
        others = tuple(int(record["round"]) for record in contradicting[:-1])
        return RoundEntry(record=chosen, certificate=read_certificate(run, chosen), others=others)
    key = "angle_degrees" if wanted == "most-bent" else "n_active"
    chosen = max(solved, key=lambda record: record["diagnostics"][key] or 0)
    return RoundEntry(record=chosen, certificate=read_certificate(run, chosen))


def read_records(run: RunReader) -> list[dict[str, Any]]:
    """Return all whole round records.

    Raises:
        StoreError: One of them lacks an entry.
    """
    for number, record in enumerate(run.rounds, start=1):
        missing = [key for key in _ENTRIES if key not in record]
        if missing or not isinstance(record["diagnostics"], dict):
            what = f"missing '{missing[0]}'" if missing else "its diagnostics are no object"
            raise StoreError(
                f"{run.paths.rounds}:{number}: damaged record ({what}).", hint="Run the recipe again with --force."
            )
    return run.rounds


def read_certificate(run: RunReader, record: dict[str, Any]) -> Certificate | None:
    """Return the certificate that belongs to a record, None if that round solved no program.

    Raises:
        StoreError: It is missing or damaged.
    """
    if _SOLVED not in record["diagnostics"]:
        return None
    index = int(record["round"])
    path = run.paths.certificate(index)
    try:
        certificate = run.certificate(index)
    except StoreError as error:
        raise StoreError(
            error.message if str(path) in error.message else f"{path}: {error.message}",
            hint=error.hint or "Restore the file from a copy, or train the run again; other rounds still open.",
        ) from None
    if certificate.round_index != index:
        raise StoreError(
            f"{path}: damaged (it holds round {certificate.round_index}, not {index}).",
            hint="Restore the file from a copy, or train the run again; other rounds still open.",
        )
    return certificate


def _check_word(wanted: str) -> None:
    if wanted in CHOICES or wanted.lstrip("-").isdigit():
        return
    raise UsageError(
        f"ROUND must be a number or one of {', '.join(CHOICES)}; found '{wanted}'."
        + (did_you_mean(wanted, CHOICES) if "Did" in did_you_mean(wanted, CHOICES) else "")
    )
