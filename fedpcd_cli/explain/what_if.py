"""The recorded program solved anew with something changed, and over all tolerances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.rows import update_products
from fedpcd_cli.pcd.decision import decide
from fedpcd_cli.qp.infeasible import farkas_certificate
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.rounds.program import HalfspaceProgram

SWEEP = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_VANISHING = 4e-6  # length of d~* relative to the average's below which it is rounding of float32 updates


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is changed about a recorded round; None leaves it as it was.

    Attributes:
        tau: Another tolerance.
        history_rounds: A shorter window: constraints of older updates are left out.
        without: Clients whose constraints are left out. The average stays as it was.
        primary: Whether the objective measures from the average.
    """

    tau: float | None = None
    history_rounds: int | None = None
    without: tuple[int, ...] = ()
    primary: bool | None = None

    def __bool__(self) -> bool:
        return self != Change()


def what_if(certificate: Certificate, change: Change, *, window: int | None = None) -> Certificate:
    """Return the certificate that the round would have had.

    The average g~_0 is that of the round in any case: only constraints, tolerance and objective change.

    Args:
        certificate: The recorded one.
        change: What is different.
        window: H of the run, if known: a longer one can't be asked for, older updates were never recorded.

    Raises:
        UsageError: tau is outside [0, 1], the window is negative or longer than the run's, or a client to leave
            out has no constraint in the round.
    """
    _check(certificate, change, window)
    keep = ~np.isin(certificate.client_ids, change.without)
    if change.history_rounds is not None:
        keep &= certificate.ages <= change.history_rounds
    tau = certificate.tau if change.tau is None else change.tau
    gram = certificate.gram[np.ix_(keep, keep)]
    program = HalfspaceProgram(
        gram=gram,
        reference_products=certificate.reference_products[keep],
        thresholds=tau * np.diag(gram),
        primary=certificate.primary if change.primary is None else change.primary,
    )
    ids = certificate.client_ids[keep]
    decision = decide(
        program,
        mean_norm=certificate.mean_norm,
        client_ids=ids,
        solver="daqp",
        # A recorded round is looked at, not run: where the recipe would stop, the contradiction is shown.
        on_infeasible="relax" if certificate.on_infeasible == "relax" else "fedavg",
        round_index=certificate.round_index,
    )
    solution, solved = decision.solution, decision.program
    if decision.follows_average:
        length = certificate.reference_norm
    elif solution.status is SolveStatus.NO_STEP:
        length = 0.0
    else:
        length = solved.direction_norm(solution.multipliers, certificate.reference_norm)
        length = 0.0 if length <= _VANISHING * certificate.reference_norm else length
    return replace(
        certificate,
        client_ids=ids,
        source_rounds=certificate.source_rounds[keep],
        weights=certificate.weights[keep],
        norms=certificate.norms[keep],
        scales=certificate.scales[keep],
        gram=gram,
        reference_products=solved.reference_products,
        direction_norm=length,
        tau=tau,
        tau_used=tau if solved is program else 0.0,
        thresholds=solved.thresholds,
        multipliers=solution.multipliers,
        slacks=solution.slacks,
        active=solution.active,
        primary=solved.primary,
        status=SolveStatus.NO_STEP if length == 0 else solution.status,
        feasible=decision.farkas is None,
        residuals=solution.residuals,
        farkas=decision.farkas,
        solver=solution.solver,
        seconds=solution.seconds,
    )


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """The round at one tolerance.

    Attributes:
        tau: The tolerance.
        feasible: Whether its constraints can be met together.
        angle_degrees: Angle between FedAvg and the update; None where one of them is zero.
        n_active: Active constraints.
        least_progress: min over j of g~_j · d~* / ||g~_j||²; None without constraints.
        correction_length: ||Aᵀμ||.
        recorded: Whether this is the recipe's tau.
    """

    tau: float
    feasible: bool
    angle_degrees: float | None
    n_active: int
    least_progress: float | None
    correction_length: float
    recorded: bool


def tau_sweep(certificate: Certificate, taus: Sequence[float] = SWEEP) -> list[SweepPoint]:
    """Return the round at these tolerances and at its own, ascending."""
    points = []
    for tau in sorted({*taus, certificate.tau}):
        at = what_if(certificate, Change(tau=tau))
        products = update_products(at) / np.diag(at.gram)
        points.append(
            SweepPoint(
                tau=tau,
                feasible=at.feasible,
                angle_degrees=at.angle_degrees,
                n_active=int(at.active.sum()),
                least_progress=float(products.min()) if at.size else None,
                correction_length=at.correction_length,
                recorded=tau == certificate.tau,
            )
        )
    return points


def contradicts_at_every_tau(certificate: Certificate) -> bool:
    """Whether the constraints contradict each other at every tau > 0.

    d~ may have any length: if it meets the thresholds of one tau > 0, a multiple of it meets those of any other.
    So either every tau > 0 has a solution or none has, and tau = 0 always has one, d~ = 0.
    """
    diagonal = np.diag(certificate.gram)
    program = HalfspaceProgram(
        gram=certificate.gram, reference_products=certificate.reference_products, thresholds=diagonal
    )
    return farkas_certificate(program) is not None


def angle_between(first: Certificate, second: Certificate) -> float | None:
    """Return the angle between two updates of the same round, in degrees; None if one of them is zero.

    The constraints of `second` must be among those of `first`.
    """
    lengths = first.direction_norm * second.direction_norm
    if lengths == 0:
        return None
    if not first.active.any() and not second.active.any():
        return 0.0
    places = {int(client): j for j, client in enumerate(first.client_ids)}
    moved = np.zeros(first.size)
    moved[[places[int(client)] for client in second.client_ids]] = second.multipliers
    parts = [(first.multipliers, _reference_part(first)), (moved, _reference_part(second))]
    (mu, r), (nu, s) = parts
    a, gram = first.reference_products, first.gram
    product = mu @ gram @ nu + s * float(a @ mu) + r * float(a @ nu) + r * s * first.reference_norm**2
    return math.degrees(math.acos(min(1.0, max(-1.0, float(product) / lengths))))


def _reference_part(certificate: Certificate) -> float:
    """How often g~_0 itself is in d~*."""
    follows_average = not certificate.active.any()
    return 1.0 if certificate.primary or follows_average else 0.0


def _check(certificate: Certificate, change: Change, window: int | None) -> None:
    if change.tau is not None and not 0 <= change.tau <= 1:
        raise UsageError(f"--tau must be in [0, 1]; found {change.tau:g}.")
    if change.history_rounds is not None:
        if change.history_rounds < 0:
            raise UsageError(f"--history must be at least 0; found {change.history_rounds}.")
        if window is not None and change.history_rounds > window:
            raise UsageError(
                f"--history must be at most {window}, the window of the run; found {change.history_rounds}.",
                hint="Older updates were never recorded; train with a larger aggregator.history_rounds.",
            )
    known = {int(client) for client in certificate.client_ids}
    unknown = [client for client in change.without if client not in known]
    if unknown:
        raise UsageError(
            f"--without names {', '.join(map(str, unknown))}, without a constraint in round "
            f"{certificate.round_index}; clients that have one: {', '.join(map(str, sorted(known))) or 'none'}."
        )
