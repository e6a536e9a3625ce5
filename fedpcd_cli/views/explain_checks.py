"""The checks of a round, each with its number."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedpcd_cli.explain.checks import TARGET, Checks, FarkasProof, Verification
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.views.explain_numbers import milliseconds, number, residual, rounds_ago

_MEANING = {
    "stationarity": "recorded slacks against Gμ + a − τ diag G",
    "primal": "largest violated constraint",
    "dual": "largest negative multiplier",
    "complementarity": "largest multiplier times slack",
    "gap": "primal minus dual value",
}
_TITLE = {
    "stationarity": "stationarity",
    "primal": "primal feasibility",
    "dual": "dual feasibility",
    "complementarity": "complementarity",
    "gap": "duality gap",
}


def checks_view(checks: Checks, verification: Verification | None, round_index: int) -> RenderableType:
    """Return the checks, and below them the proof of infeasibility and the second solution if there are any."""
    parts: list[RenderableType] = []
    if checks.residuals is not None:
        title = f"Checks, recomputed from the Gram matrix (relative; up to {TARGET:.0e} is solved)"
        table = _lines()
        for key, name in _TITLE.items():
            value = float(getattr(checks.residuals, key))
            table.add_row(_verdict(value <= TARGET), name, residual(value), _MEANING[key])
        parts.append(Group(Text(title, style="bold"), table))
    elif checks.proof is None:
        parts.append(Text("The average is zero: no program was solved, there is nothing to check."))
    if checks.proof is not None:
        parts.append(proof_view(checks.proof, round_index))
    if verification is not None:
        parts.append(verification_view(verification))
    return Group(*_spaced(parts))


def proof_view(proof: FarkasProof, round_index: int) -> RenderableType:
    """Return which clients pull exactly apart, and with which weights."""
    table = Table(box=None, show_header=True, pad_edge=False, padding=(0, 2, 0, 0))
    title = Text("Farkas certificate: these clients pull exactly apart", style="bold")
    table.add_column("Client", justify="right", no_wrap=True)
    table.add_column("Source", no_wrap=True)
    table.add_column("λ", justify="right", no_wrap=True)
    for client, source, weight in zip(proof.client_ids, proof.source_rounds, proof.weights, strict=True):
        table.add_row(str(client), rounds_ago(round_index - source), number(weight))
    numbers = _lines()
    numbers.add_row(
        _verdict(proof.holds),
        "‖Σ λ g̃‖",
        residual(proof.length),
        "their weighted sum, relative; 0 is apart",
    )
    numbers.add_row(_verdict(proof.required > 0), "τ Σ λ ‖g̃‖²", number(proof.required), "what they ask together")
    why = Text("Any direction d would need 0 = (Σ λ g̃) · d ≥ τ Σ λ ‖g̃‖² > 0: there is none.")
    return Group(title, table, numbers, why)


def verification_view(found: Verification) -> RenderableType:
    """Return the second solution by CVXPY beside the recorded one."""
    if found.status is SolveStatus.UNCHANGED and found.agrees:
        return Text("Nothing to solve again: the average itself meets every constraint, μ = 0.", style="bold")
    title = Text(f"Solved again with CVXPY, Clarabel ({milliseconds(found.seconds)})", style="bold")
    table = _lines()
    if not found.same_outcome:
        table.add_row(_verdict(False), "outcome", found.status.word, found.status.value)
    elif found.direction_difference is None or found.multiplier_difference is None:
        table.add_row(_verdict(True), "outcome", "infeasible", "no solution either")
    else:
        unique = "" if found.unique else "; the active constraints are dependent, μ need not be unique"
        table.add_row(
            _verdict(found.agrees), "direction", residual(found.direction_difference), "‖d̃* − d̃′‖, relative"
        )
        table.add_row("", "multipliers", residual(found.multiplier_difference), f"largest |μ − μ′|{unique}")
        if found.status is SolveStatus.INACCURATE:
            table.add_row(_verdict(False), "outcome", "inaccurate", "the second solver stopped early")
    return Group(title, table)


def _lines() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _verdict(passed: bool) -> Text:
    return Text("ok", style="green") if passed else Text("FAILS", style="bold red")


def _spaced(parts: list[RenderableType]) -> list[RenderableType]:
    spaced: list[RenderableType] = []
    for part in parts:
        spaced += [part] if not spaced else [Text(), part]
    return spaced
