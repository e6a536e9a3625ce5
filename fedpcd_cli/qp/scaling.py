"""One scale for all programs: unit rows, largest deficit one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcd_cli.rounds.program import HalfspaceProgram


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitProgram:
    """min ½||y||² subject to u_j · y >= deficits_j with unit rows u_j, where y = (d - g_0) / size.

    Attributes:
        gram: Inner products of the unit rows, `[k, k]`.
        deficits: `[k]`, the largest is 1.
        rows: Positions of these rows in the original program, `[k]`; zero rows are left out.
        row_norms: Norms that were divided out, `[k]`.
        size: Scale of y.
    """

    gram: np.ndarray
    deficits: np.ndarray
    rows: np.ndarray
    row_norms: np.ndarray
    size: float

    @classmethod
    def of(cls, program: HalfspaceProgram) -> UnitProgram:
        """Scale a program that its reference does not satisfy."""
        rows = np.flatnonzero(program.row_norms > 0)
        norms = program.row_norms[rows]
        gram = program.gram[np.ix_(rows, rows)] / norms[:, None] / norms[None, :]
        np.fill_diagonal(gram, 1.0)
        deficits = program.deficits[rows] / norms
        size = float(deficits.max(initial=0.0)) or 1.0
        return cls(gram=gram, deficits=deficits / size, rows=rows, row_norms=norms, size=size)

    def original(self, multipliers: np.ndarray, c: int) -> np.ndarray:
        """Return multipliers `[k]` of the unit program as multipliers `[c]` of the original one."""
        full = np.zeros(c)
        full[self.rows] = np.maximum(multipliers, 0.0) * self.size / self.row_norms
        return full

    def factor(self) -> np.ndarray:
        """Return R `[k, rank]` with gram = R Rᵀ; eigenvalues at rounding level count as zero."""
        try:
            lower = np.linalg.cholesky(self.gram)
            if np.diag(lower).min(initial=1.0) > 1e-5:
                return lower
        except np.linalg.LinAlgError:
            pass
        values, vectors = np.linalg.eigh(self.gram)
        keep = values > 1e-14 * self.rows.size * values[-1]
        return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
