"""The head of a round: rule, clients, what came out, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.table import Table
from rich.text import Text

from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.explain.select import RoundEntry
from fedpcd_cli.pcd.report import name_clients
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.views.explain_numbers import counted, degrees, milliseconds, number, residual
from fedpcd_cli.views.explain_table import per_client


def head(facts: RunFacts, entry: RoundEntry) -> Table:
    """Return the facts of a round, one per line."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in _facts(facts, entry):
        table.add_row(key, Text(value))
    return table


def _facts(facts: RunFacts, entry: RoundEntry) -> Iterator[tuple[str, str]]:
    record, certificate = entry.record, entry.certificate
    progress = "" if facts.state == "finished" else f", run {facts.state}"
    yield "round", f"{entry.round_index} of {facts.n_rounds}{progress}: {facts.recipe}, seed {facts.seed}"
    params = ", ".join(f"{key} {_plain(value)}" for key, value in facts.params.items())
    yield "rule", f"{facts.rule}: {params}" if params else facts.rule
    cohort = record["client_ids"]
    yield "cohort", f"{counted(len(cohort), 'client')}: {_ids(cohort)}" if cohort else "nobody"
    for excluded in record["excluded"]:
        yield "left out", f"client {excluded['client_id']}: {excluded['reason']}"
    if certificate is None:
        yield from _without_program(facts, entry)
    else:
        yield from _with_program(certificate)
    if entry.others:
        yield "also", f"infeasible: {counted(len(entry.others), 'earlier round')}: {_ids(entry.others)}"


def _without_program(facts: RunFacts, entry: RoundEntry) -> Iterator[tuple[str, str]]:
    record = entry.record
    yield "step", f"‖d‖ = {number(record['direction_norm'])}"
    if record["training_loss"] is not None:
        yield "loss", f"{number(record['training_loss'])}, mean over the cohort's local steps"
    shown_per_client = per_client(record)
    for key, value in record["diagnostics"].items():
        if key not in shown_per_client:
            yield key.replace("_", " "), _plain(value)
    for warning in record["warnings"]:
        yield "warning", warning
    if not record["client_ids"]:
        yield "program", "none: nobody trained in this round"
    else:
        yield (
            "program",
            f"none: '{facts.rule}' records no program, so there are no constraints and multipliers",
        )


def _with_program(certificate: Certificate) -> Iterator[tuple[str, str]]:
    yield "cached", _cached(certificate)
    if certificate.dropped_zero_ids:
        yield "zero", f"{name_clients(certificate.dropped_zero_ids)} sent a zero update: no constraint"
    yield "status", status_sentence(certificate)
    yield "angle", f"{degrees(certificate.angle_degrees)} between FedAvg and the update"
    yield (
        "correction",
        f"{number(certificate.correction_length)} long; "
        f"the normalized FedAvg direction is {number(certificate.reference_norm)} long, "
        f"the admissible one {number(certificate.direction_norm)}",
    )
    step = "no step" if certificate.direction_norm == 0 else f"‖d‖ = ‖ḡ‖ = {number(certificate.mean_norm)}"
    yield "step", step
    solved = (
        f"{certificate.solver}, {milliseconds(certificate.seconds)}, {counted(certificate.size, 'constraint')}"
    )
    if certificate.gram_correction > 0:
        solved += f"; eigenvalues up to {residual(certificate.gram_correction)} removed as rounding"
    yield "solver", solved


def status_sentence(certificate: Certificate) -> str:
    """Return what became of the average, in one sentence."""
    n_active, size = int(certificate.active.sum()), certificate.size
    bent = f"bent by {n_active} of {counted(size, 'constraint')}"
    objective = "" if certificate.primary else ", towards the shortest admissible direction"
    names = name_clients(certificate.conflicting_ids)
    match certificate.status:
        case SolveStatus.UNCHANGED:
            return "unchanged FedAvg: no client falls short"
        case SolveStatus.BENT:
            return bent + objective
        case SolveStatus.RELAXED:
            done = bent if n_active else "FedAvg unchanged"
            return f"infeasible: {names} contradict each other; tau was cut from {certificate.tau:g} to 0, {done}"
        case SolveStatus.INFEASIBLE:
            return f"infeasible: {names} contradict each other; the round followed FedAvg"
        case SolveStatus.INACCURATE:
            did = f"its direction was used, {bent}" if n_active else "the round followed FedAvg"
            return (
                f"inaccurate: the solver stopped with a residual of {residual(certificate.residuals.worst)}; {did}"
            )
        case SolveStatus.NO_STEP:
            why = "the average is zero" if certificate.mean_norm == 0 else "the admissible direction is zero"
            cut = f"infeasible: {names} contradict each other; " if not certificate.feasible else ""
            return f"{cut}no step: {why}"


def _cached(certificate: Certificate) -> str:
    """Return the cached clients by age."""
    ages = certificate.ages
    cached = certificate.cached
    if not cached.any():
        return "nobody"
    groups: list[str] = []
    for age in np.unique(ages[cached]):
        ids = sorted(int(client) for client in certificate.client_ids[ages == age])
        unit = (" round ago" if age == 1 else " rounds ago") if not groups else ""
        groups.append(f"{age}{unit}: {_ids(ids)}")
    return f"{counted(int(cached.sum()), 'client')}, seen " + "; ".join(groups)


def _ids(ids: object) -> str:
    return ", ".join(str(client) for client in ids)  # type: ignore[attr-defined]


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)
