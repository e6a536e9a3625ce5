"""The proof that a program has no solution."""

from __future__ import annotations

import numpy as np

from fedpcd_cli.qp.simplex import minimum_norm
from fedpcd_cli.rounds.program import HalfspaceProgram

_LENGTH = 1e-6  # of Aᵀλ against unit rows: the rounding of a float64 Gram matrix is 1e-8


def farkas_certificate(program: HalfspaceProgram) -> np.ndarray | None:
    """Return λ >= 0, Σλ = 1, with Aᵀλ = 0 and thresholds · λ > 0, `[c]`; None if there is no such λ.

    Any d would satisfy 0 = (Aᵀλ) · d >= thresholds · λ > 0. The candidate is the shortest convex combination of
    the normalized rows with a positive threshold: it has length zero exactly if the program is infeasible. The
    claim is verified on the original program before it is made.
    """
    norms = program.row_norms
    if ((norms == 0) & (program.thresholds > 0)).any():
        single = np.zeros(program.size)
        single[int(((norms == 0) & (program.thresholds > 0)).argmax())] = 1.0
        return single
    rows = np.flatnonzero((norms > 0) & (program.thresholds > 0))
    if rows.size == 0:
        return None
    unit = program.gram[np.ix_(rows, rows)] / norms[rows, None] / norms[None, rows]
    weights = minimum_norm(unit).weights / norms[rows]
    certificate = np.zeros(program.size)
    certificate[rows] = weights / weights.sum()
    return certificate if proves_infeasible(program, certificate) else None


def proves_infeasible(program: HalfspaceProgram, certificate: np.ndarray) -> bool:
    """Whether λ `[c]` proves that no d satisfies the program: λ >= 0, Aᵀλ = 0, thresholds · λ > 0."""
    lengths = certificate * program.row_norms
    squared = float(certificate @ program.gram @ certificate)
    return bool(
        certificate.min() >= 0
        and squared <= (_LENGTH * float(lengths.sum())) ** 2
        and float(program.thresholds @ certificate) > 0
    )
