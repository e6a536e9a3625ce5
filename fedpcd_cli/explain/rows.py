"""A round's constraints as rows: what each client asked for, got, and contributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.sort_key import SortKey
from fedpcd_cli.qp.solve import falls_short
from fedpcd_cli.rounds.certificate import Certificate

ROOMY_ROWS = 12
"""Clients with room to spare that are shown beside those in need."""


@dataclass(frozen=True, kw_only=True)
class ConstraintRow:
    """One constraint g~_j · d~ >= tau ||g~_j||².

    Attributes:
        client_id: Whose it is.
        source_round: Round in which its update was computed.
        age: Rounds ago; 0 for the cohort.
        weight: Its weight in the average; 0 for cached clients.
        norm: ||g_j||, raw.
        before: g~_j · g~_0, progress along FedAvg.
        required: tau ||g~_j||².
        after: g~_j · d~*, progress along the update.
        slack: after - required; negative means violated.
        multiplier: μ_j, exactly 0 where not active.
        share: μ_j ||g~_j|| over the sum of all, its part of the correction's length; 0 if nothing bends.
        short: Falls short of its required progress along FedAvg.
        active: Bends the direction.
    """

    client_id: int
    source_round: int
    age: int
    weight: float
    norm: float
    before: float
    required: float
    after: float
    slack: float
    multiplier: float
    share: float
    short: bool
    active: bool


def constraint_rows(certificate: Certificate, places: Iterable[int] | None = None) -> list[ConstraintRow]:
    """Return one row per constraint, in the order of the certificate; every number follows from the Gram matrix.

    Args:
        certificate: The round's program.
        places: Only the constraints at these places; all by default.

    The required progress is that of the program that was solved: with the recipe's tau, or 0 where it was cut.
    """
    diagonal = np.diag(certificate.gram)
    required = certificate.tau_used * diagonal
    after = update_products(certificate)
    asked = replace(certificate.program(), thresholds=required, primary=True)
    short = falls_short(asked)
    lengths = certificate.multipliers * np.sqrt(diagonal)
    shares = lengths / (float(lengths.sum()) or 1.0)
    return [
        ConstraintRow(
            client_id=int(certificate.client_ids[j]),
            source_round=int(certificate.source_rounds[j]),
            age=int(certificate.ages[j]),
            weight=float(certificate.weights[j]),
            norm=float(certificate.norms[j]),
            before=float(certificate.reference_products[j]),
            required=float(required[j]),
            after=float(after[j]),
            slack=float(after[j] - required[j]),
            multiplier=float(certificate.multipliers[j]),
            share=float(shares[j]),
            short=bool(short[j]),
            active=bool(certificate.active[j]),
        )
        for j in (range(certificate.size) if places is None else places)
    ]


def update_products(certificate: Certificate) -> np.ndarray:
    """Return g~_j · d~*, `[c]`: of the average where the round followed it, 0 where it made no step."""
    if certificate.direction_norm == 0:
        return np.zeros(certificate.size)
    if not certificate.active.any():
        return certificate.reference_products
    program = certificate.program()
    return np.asarray(program.linear + program.gram @ certificate.multipliers)


def sort_rows(rows: Sequence[ConstraintRow], key: SortKey) -> list[ConstraintRow]:
    """Return rows in order: need and slack from the least, ages from the newest, the others from the largest."""
    orders: dict[SortKey, Callable[[ConstraintRow], float]] = {
        SortKey.NEED: lambda row: row.before - row.required,
        SortKey.CLIENT: lambda row: row.client_id,
        SortKey.AGE: lambda row: row.age,
        SortKey.WEIGHT: lambda row: -row.weight,
        SortKey.NORM: lambda row: -row.norm,
        SortKey.PROGRESS: lambda row: row.after,
        SortKey.SLACK: lambda row: row.slack,
        SortKey.MULTIPLIER: lambda row: -row.multiplier,
    }
    order = orders[key]
    return sorted(rows, key=lambda row: (order(row), row.client_id))


def select_rows(
    rows: Sequence[ConstraintRow], *, everything: bool, active_only: bool, client_id: int | None, round_index: int
) -> list[ConstraintRow]:
    """Return the rows to show: by default all that are short or active, and a few others.

    Raises:
        UsageError: The client has no constraint in this round.
    """
    if client_id is not None:
        chosen = [row for row in rows if row.client_id == client_id]
        if not chosen:
            known = ", ".join(str(row.client_id) for row in sort_rows(rows, SortKey.CLIENT)) or "none"
            raise UsageError(
                f"--client {client_id} has no constraint in round {round_index}; clients that have one: {known}.",
                hint=f"--client {client_id} --over-time shows its rounds.",
            )
        return chosen
    if active_only:
        return [row for row in rows if row.active]
    if everything:
        return list(rows)
    room = ROOMY_ROWS
    shown = []
    for row in rows:
        in_need = row.short or row.active
        if in_need or room > 0:
            shown.append(row)
            room -= not in_need
    return shown
