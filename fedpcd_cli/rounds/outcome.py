"""How a round's program ended, and how well its solution satisfies the optimality conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from fedpcd_cli.rounds.program import HalfspaceProgram


class SolveStatus(Enum):
    """What came out of a round's program, in a sentence."""

    UNCHANGED = "No client falls short: the average itself is the direction."
    BENT = "Some client would fall short: the direction is the nearest one that gives every client its share."
    RELAXED = "The constraints contradict each other: tau was cut to 0 for this program and it was solved again."
    INFEASIBLE = "The constraints contradict each other: no direction gives every client its share."
    INACCURATE = (
        "The solver stopped before the optimality conditions held: read the residuals, try the other solver."
    )
    NO_STEP = "There is nothing to follow, the admissible direction is zero: the round makes no step."

    @property
    def word(self) -> str:
        """The status in one word, as in the round record."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """Violation of each optimality condition, recomputed from the program's data.

    Every number is relative to the terms that it is the difference of, so that scaling the clients changes
    nothing; 1e-16 is rounding.

    Attributes:
        stationarity: Recorded slacks against G μ + a - thresholds; d = g_0 + Aᵀμ holds by construction.
        primal: Largest violated constraint.
        dual: Largest negative multiplier.
        complementarity: Largest product of multiplier and slack.
        gap: Primal minus dual value.
    """

    stationarity: float
    primal: float
    dual: float
    complementarity: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of the five."""
        return max(self.stationarity, self.primal, self.dual, self.complementarity, self.gap)

    @classmethod
    def of(cls, program: HalfspaceProgram, multipliers: np.ndarray, slacks: np.ndarray) -> Residuals:
        """Return the residuals of multipliers `[c]` and slacks `[c]`."""
        if program.size == 0:
            return cls(stationarity=0.0, primal=0.0, dual=0.0, complementarity=0.0, gap=0.0)
        terms = np.abs(program.gram) @ np.abs(multipliers) + np.abs(program.linear) + program.thresholds
        terms = np.where(terms > 0, terms, 1.0)
        recomputed = program.slacks(multipliers)
        weights = multipliers * program.row_norms  # the length that each constraint adds to the direction
        heaviest = float(np.abs(weights).max()) or 1.0
        value = float(multipliers @ recomputed)
        size = float(np.abs(multipliers) @ terms) or 1.0
        return cls(
            stationarity=float((np.abs(slacks - recomputed) / terms).max()),
            primal=float((np.maximum(-slacks, 0.0) / terms).max()),
            dual=float((np.maximum(-weights, 0.0) / heaviest).max()),
            complementarity=float((np.abs(weights) / heaviest * np.abs(slacks) / terms).max()),
            gap=abs(value) / size,
        )
