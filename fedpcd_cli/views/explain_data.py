"""A round as plain data for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedpcd_cli.explain.checks import Checks, Verification
from fedpcd_cli.explain.conflicts import conflicts
from fedpcd_cli.explain.plane import plane
from fedpcd_cli.explain.rows import constraint_rows
from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.explain.select import RoundEntry
from fedpcd_cli.explain.story import Chapter
from fedpcd_cli.explain.what_if import SweepPoint
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.views.explain_head import status_sentence


def round_data(facts: RunFacts, entry: RoundEntry) -> dict[str, Any]:
    """Return everything known of a round; `program` is None for a rule that solves none."""
    return {
        "run": asdict(facts),
        "round": entry.round_index,
        "other_infeasible_rounds": list(entry.others),
        "record": entry.record,
        "program": None if entry.certificate is None else program_data(entry.certificate),
    }


def program_data(certificate: Certificate) -> dict[str, Any]:
    """Return a program with its solution, its rows, and the matrix that it can be solved again from."""
    found = plane(certificate)
    pulls = conflicts(certificate)
    return {
        "status": certificate.status.word,
        "sentence": status_sentence(certificate),
        "feasible": certificate.feasible,
        "tau": certificate.tau,
        "tau_used": certificate.tau_used,
        "primary": certificate.primary,
        "normalization": certificate.normalization,
        "n_constraints": certificate.size,
        "n_cached": int(certificate.cached.sum()),
        "n_active": int(certificate.active.sum()),
        "angle_degrees": certificate.angle_degrees,
        "correction_length": certificate.correction_length,
        "reference_norm": certificate.reference_norm,
        "direction_norm": certificate.direction_norm,
        "mean_norm": certificate.mean_norm,
        "solver": certificate.solver,
        "seconds": certificate.seconds,
        "gram_correction": certificate.gram_correction,
        "zero_clients": list(certificate.dropped_zero_ids),
        "conflicting_clients": list(certificate.conflicting_ids),
        "constraints": [asdict(row) for row in constraint_rows(certificate)],
        "reference_products": certificate.reference_products.tolist(),
        "gram": certificate.gram.tolist(),
        "conflicts": {
            "client_ids": pulls.client_ids.tolist(),
            "cosines": pulls.cosines.tolist(),
            "conflicting_pairs": pulls.conflicting_pairs,
            "pairs": pulls.pairs,
            "most_opposed": None if pulls.most_opposed is None else list(pulls.most_opposed),
        },
        "plane": None
        if found is None
        else {
            "clients": found.clients.tolist(),
            "reference": found.reference.tolist(),
            "update": None if found.update is None else found.update.tolist(),
        },
    }


def checks_data(checks: Checks) -> dict[str, Any]:
    """Return the checks with their numbers."""
    return {
        "passed": checks.passed,
        "residuals": None if checks.residuals is None else asdict(checks.residuals),
        "farkas": None if checks.proof is None else asdict(checks.proof),
    }


def verification_data(found: Verification) -> dict[str, Any]:
    """Return the second solution."""
    return {**asdict(found), "status": found.status.word}


def sweep_data(points: Sequence[SweepPoint], contradicts: bool) -> dict[str, Any]:
    """Return the round at every tolerance."""
    return {"infeasible_for_every_positive_tau": contradicts, "points": [asdict(point) for point in points]}


def story_data(facts: RunFacts, client_id: int, chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return a client's rounds."""
    return {"run": asdict(facts), "client_id": client_id, "rounds": [asdict(chapter) for chapter in chapters]}
