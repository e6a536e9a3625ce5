"""What a FedPCD round says about itself: facts for the record, sentences for the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.outcome import SolveStatus

_NAMED = 8
_SOLVED = (SolveStatus.UNCHANGED, SolveStatus.BENT, SolveStatus.RELAXED, SolveStatus.INACCURATE)


def diagnostics(certificate: Certificate) -> dict[str, Any]:
    """Return small JSON-ready facts, without anything that differs between two equal runs."""
    active = certificate.active
    facts: dict[str, Any] = {
        "n_constraints": certificate.size,
        "n_cached": int(certificate.cached.sum()),
        "n_active": int(active.sum()),
        "feasible": certificate.feasible,
        "status": certificate.status.word,
        "tau_used": certificate.tau_used,
        "angle_degrees": certificate.angle_degrees,
        "least_progress": float(certificate.progress.min()) if certificate.size else None,
        "kkt_residual": certificate.residuals.worst if certificate.status in _SOLVED else None,
        "zero_clients": list(certificate.dropped_zero_ids),
        "multipliers": {
            str(client): float(multiplier)
            for client, multiplier in zip(
                certificate.client_ids[active], certificate.multipliers[active], strict=True
            )
        },
    }
    if not certificate.feasible:
        facts["conflicting_clients"] = list(certificate.conflicting_ids)
    if certificate.gram_correction > 0:
        facts["gram_correction"] = certificate.gram_correction
    return facts


def warnings(certificate: Certificate, *, followed_average: bool) -> tuple[str, ...]:
    """Return the sentences that the user should see."""
    start = f"round {certificate.round_index}: "
    if not certificate.feasible:
        did = "followed the average" if certificate.tau_used > 0 else f"cut tau from {certificate.tau:g} to 0"
        names = name_clients(certificate.conflicting_ids)
        return (f"{start}{names} contradict each other, no direction gives all of them their share; {did}",)
    if certificate.status is SolveStatus.INACCURATE:
        did = "followed the average instead" if followed_average else "used its direction"
        residual = f"{certificate.residuals.worst:.1e}"
        return (f"{start}solver '{certificate.solver}' stopped with a residual of {residual}; {did}",)
    return ()


def name_clients(client_ids: Sequence[int]) -> str:
    """Return `client 3` or `clients 3, 17 and 5 more`."""
    shown = ", ".join(str(client) for client in client_ids[:_NAMED])
    rest = len(client_ids) - _NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"client{'s' if len(client_ids) != 1 else ''} {shown}{more}"
