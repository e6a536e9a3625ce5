"""What the tables mean: every metric, computed and defined in one place.

a_i is the test accuracy of client i, over the clients that hold test examples; each client counts once.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

DEFINITIONS: dict[str, tuple[str, str]] = {
    "global_accuracy": ("Global", "share of all clients' test examples that are right (pooled)"),
    "mean_accuracy": ("Mean", "(1/N) Σ a_i, the papers' ā"),
    "worst10_accuracy": ("Worst 10%", "mean of the ceil(0.1 N) lowest a_i"),
    "best10_accuracy": ("Best 10%", "mean of the ceil(0.1 N) highest a_i"),
    "min_accuracy": ("Min", "lowest a_i"),
    "accuracy_std": ("Spread", "population standard deviation of the a_i, the papers' σ_c"),
    "jain_index": ("Jain", "(Σ a_i)² / (N Σ a_i²), from 1/N (one client has all) to 1 (all equal)"),
    "loss": ("Loss", "mean cross-entropy over all clients' test examples (pooled)"),
}
"""Key -> (column title, definition). Every accuracy is a share in [0, 1]; N counts evaluated clients."""


@dataclass(frozen=True)
class Metrics:
    """One evaluation of all clients; see :data:`DEFINITIONS`."""

    global_accuracy: float
    mean_accuracy: float
    worst10_accuracy: float
    best10_accuracy: float
    min_accuracy: float
    accuracy_std: float
    jain_index: float
    loss: float
    n_evaluated: int

    def as_dict(self) -> dict[str, float | int]:
        return asdict(self)


def compute_metrics(n_correct: np.ndarray, n_examples: np.ndarray, loss_sums: np.ndarray) -> Metrics:
    """Return the metrics of one evaluation.

    Args:
        n_correct: Right test examples per client, `[N]`.
        n_examples: Test examples per client, `[N]`; clients with none are not evaluated.
        loss_sums: Sum of the test losses per client, `[N]`.

    Raises:
        ValueError: No client holds test examples.
    """
    held = np.asarray(n_examples) > 0
    counts = np.asarray(n_examples, dtype=np.float64)[held]
    if counts.size == 0:
        raise ValueError("no client holds test examples")
    right = np.asarray(n_correct, dtype=np.float64)[held]
    accuracies = np.sort(right / counts)
    tail = math.ceil(0.1 * accuracies.size)
    squares = float(np.sum(accuracies**2))
    total = float(np.sum(accuracies))
    return Metrics(
        global_accuracy=float(right.sum() / counts.sum()),
        mean_accuracy=float(accuracies.mean()),
        worst10_accuracy=float(accuracies[:tail].mean()),
        best10_accuracy=float(accuracies[-tail:].mean()),
        min_accuracy=float(accuracies[0]),
        accuracy_std=float(accuracies.std()),
        # All clients at zero are all equal; the formula alone would give 0/0.
        jain_index=total**2 / (accuracies.size * squares) if squares > 0 else 1.0,
        loss=float(np.asarray(loss_sums, dtype=np.float64)[held].sum() / counts.sum()),
        n_evaluated=int(accuracies.size),
    )
