"""Random half-space programs with every kind of trouble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from fedpcd_cli.rounds.program import HalfspaceProgram
from fedpcd_cli.seeds import numpy_generator

KINDS = ("typical", "duplicated", "zero row", "mixed lengths", "opposite", "collinear", "rank three")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A program and the vectors behind it."""

    rows: np.ndarray  # [c, d]
    reference: np.ndarray  # [d]
    tau: float
    program: HalfspaceProgram

    def direction(self, multipliers: np.ndarray) -> np.ndarray:
        start = self.reference if self.program.primary else np.zeros_like(self.reference)
        return start + self.rows.T @ multipliers


def pose(rows: np.ndarray, reference: np.ndarray, tau: float, *, primary: bool = True) -> Drawn:
    gram = rows @ rows.T
    program = HalfspaceProgram(
        gram=gram, reference_products=rows @ reference, thresholds=tau * np.diag(gram), primary=primary
    )
    return Drawn(rows, reference, tau, program)


def draw(seed: int, *, largest: int = 120, most_params: int = 150) -> Drawn:
    rng = numpy_generator(seed, "program")
    c, d = int(rng.integers(1, largest + 1)), int(rng.integers(1, most_params + 1))
    rows = rng.standard_normal((c, d)) + rng.choice([0.0, 0.3, 1.0, 3.0]) * rng.standard_normal(d)
    kind = KINDS[seed % len(KINDS)]
    if kind == "duplicated":
        rows[rng.integers(0, c, size=c // 3)] = rows[0]
    elif kind == "zero row":
        rows[rng.integers(0, c)] = 0
    elif kind == "mixed lengths":
        rows *= 10 ** rng.uniform(-3, 3, size=(c, 1))
    elif kind == "opposite":
        rows[rng.integers(0, c)] = -2 * rows[0]
    elif kind == "collinear":
        rows[rng.integers(0, c, size=c // 3)] = rows[0] * rng.uniform(0.5, 2)
    elif kind == "rank three":
        rows = rng.standard_normal((c, 3)) @ rng.standard_normal((3, d)) + 3 * rng.standard_normal(d)
    reference = rows[: max(1, c // int(rng.integers(1, 6)))].mean(axis=0)
    reference /= np.linalg.norm(reference) or 1.0
    scale = 10.0 ** rng.uniform(-12, 12)
    if seed % 2:
        rows, reference = rows * scale, reference * scale
    else:
        rows = rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-8)
    tau = float(rng.choice([0.0, 0.02, 0.1, 0.25, 1.0]))
    return pose(rows, reference, tau, primary=seed % 5 != 4)


@pytest.fixture(scope="session")
def draw_program() -> Callable[..., Drawn]:
    """`draw_program(seed, largest=120, most_params=150)`: a program of one of seven kinds, at any scale."""
    return draw


@pytest.fixture(scope="session")
def pose_program() -> Callable[..., Drawn]:
    """`pose_program(rows, reference, tau, primary=True)`: the program of these vectors."""
    return pose
