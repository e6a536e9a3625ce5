"""What a table can show of one evaluation: the project's metrics and other papers' fairness figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.errors import UsageError, did_you_mean
from fedpcd_cli.metrics import DEFINITIONS

DEFAULT = ("global_accuracy", "mean_accuracy", "worst10_accuracy", "best10_accuracy", "accuracy_std", "jain_index")


@dataclass(frozen=True)
class Measure:
    """One column.

    Attributes:
        key: Name in files and on the command line.
        title: Column heading.
        definition: One line, for captions.
        higher_is_better: Which end is best; None marks nothing.
        scale: Factor from stored value to shown number (100 for percent).
        digits: Decimals shown.
        from_metrics: Computes it from the stored metrics.
        from_clients: Computes it from accuracies `[N]` and test examples `[N]` of the evaluated clients.
    """

    key: str
    title: str
    definition: str
    higher_is_better: bool | None
    scale: float = 100.0
    digits: int = 2
    from_metrics: Callable[[Mapping[str, float]], float] | None = None
    from_clients: Callable[[np.ndarray, np.ndarray], float] | None = None

    def format(self, value: float | None, *, signed: bool = False) -> str:
        """Return the shown number, `–` for none."""
        if value is None:
            return "–"
        shown = round(self.scale * value, self.digits) + 0.0  # no negative zero
        return f"{shown:{'+' if signed else ''}.{self.digits}f}"


def _plain(key: str) -> Measure:
    title, definition = DEFINITIONS[key]
    is_ratio = key in ("jain_index", "loss")
    return Measure(
        key,
        title,
        definition,
        higher_is_better=key not in ("accuracy_std", "loss"),
        scale=1.0 if is_ratio else 100.0,
        digits=3 if is_ratio else 2,
        from_metrics=lambda metrics: metrics[key],
    )


def _cosine(metrics: Mapping[str, float]) -> float:
    return math.sqrt(min(1.0, max(0.0, metrics["jain_index"])))


def _tail(share: float, *, worst: bool) -> Callable[[np.ndarray, np.ndarray], float]:
    def mean_of_tail(accuracies: np.ndarray, _counts: np.ndarray) -> float:
        ordered = np.sort(accuracies)
        # 0.05 * 20 is 1, but its product in floating point may lie above.
        size = math.ceil(round(share * ordered.size, 9))
        return float((ordered[:size] if worst else ordered[-size:]).mean())

    return mean_of_tail


def _divergence(accuracies: np.ndarray, _counts: np.ndarray) -> float:
    total = accuracies.sum()
    if total == 0:
        return 0.0
    shares = accuracies[accuracies > 0] / total
    return float(np.sum(shares * np.log(shares * accuracies.size)))


def _weighted_spread(accuracies: np.ndarray, counts: np.ndarray) -> float:
    mean = np.average(accuracies, weights=counts)
    return float(np.sqrt(np.average((accuracies - mean) ** 2, weights=counts)))


_OTHERS = (
    Measure("cosine", "Cosine", "cosine between (a_1, …, a_N) and (1, …, 1), which is √Jain (Li et al., q-FFL)",
            True, 1.0, 4, from_metrics=_cosine),
    Measure("angle", "Angle", "angle between (a_1, …, a_N) and (1, …, 1) in degrees, arccos √Jain",
            False, 1.0, 2, from_metrics=lambda m: math.degrees(math.acos(_cosine(m)))),
    Measure("variance", "Variance", "square of the spread, in squared percent (Li et al., q-FFL)",
            False, 1e4, 1, from_metrics=lambda m: m["accuracy_std"] ** 2),
    Measure("kl", "KL", "Kullback-Leibler divergence of a_i / Σ a from the uniform distribution, in nats",
            False, 1.0, 4, from_clients=_divergence),
    Measure("worst5_accuracy", "Worst 5%", "mean of the ceil(0.05 N) lowest a_i", True,
            from_clients=_tail(0.05, worst=True)),
    Measure("best5_accuracy", "Best 5%", "mean of the ceil(0.05 N) highest a_i", True,
            from_clients=_tail(0.05, worst=False)),
    Measure("median_accuracy", "Median", "median of the a_i", True,
            from_clients=lambda a, _: float(np.median(a))),
    Measure("weighted_std", "Spread (w)", "standard deviation of the a_i, weighted by test examples", False,
            from_clients=_weighted_spread),
)  # fmt: skip

MEASURES: dict[str, Measure] = {m.key: m for m in (*map(_plain, DEFINITIONS), *_OTHERS)}
ALIASES = {
    "global": "global_accuracy", "mean": "mean_accuracy", "worst10": "worst10_accuracy",
    "best10": "best10_accuracy", "min": "min_accuracy", "std": "accuracy_std", "spread": "accuracy_std",
    "jain": "jain_index", "cos": "cosine", "worst5": "worst5_accuracy", "best5": "best5_accuracy",
    "median": "median_accuracy", "weighted-spread": "weighted_std",
}  # fmt: skip

STANDARD = tuple(MEASURES[key] for key in DEFAULT)
"""Columns of a table for which none were asked."""


def find_measure(name: str, option: str = "--metrics") -> Measure:
    """Return the measure of that name.

    Raises:
        UsageError: There is none.
    """
    key = ALIASES.get(name, name)
    if key not in MEASURES:
        raise UsageError(
            f"{option} must name a metric; found '{name}'.{did_you_mean(name, [*ALIASES, *MEASURES])}"
        )
    return MEASURES[key]


def parse_measures(text: str | None, default: tuple[Measure, ...] = STANDARD) -> tuple[Measure, ...]:
    """Return the measures of a comma list; `all` is every one, a leading `+` adds to the default.

    Raises:
        UsageError: A name is unknown, or none is given.
    """
    if text is None:
        return default
    if text.strip() == "all":
        return tuple(MEASURES.values())
    names = [part.strip() for part in text.removeprefix("+").split(",") if part.strip()]
    if not names:
        raise UsageError("--metrics must name at least one metric.", hint="Such as --metrics mean,worst10,angle.")
    wanted = [find_measure(name) for name in names]
    first = default if text.startswith("+") else ()
    return tuple(dict.fromkeys([*first, *wanted]))
