"""Which evaluation of a run a table shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.store.evaluation_log import EvaluationLog

Kind = Literal["last", "best", "round", "mean"]


class NotEvaluatedError(StoreError):
    """A sound run without the evaluation that was asked for."""


@dataclass(frozen=True)
class At:
    """The rule that picks evaluations.

    Attributes:
        kind: `last`, `best` (by a metric), one `round`, or the `mean` of the last evaluations.
        value: The round, or how many evaluations.
    """

    kind: Kind = "last"
    value: int = 0

    @classmethod
    def parse(cls, text: str) -> At:
        """Read `last`, `best`, a round or `mean-of-last-K`.

        Raises:
            UsageError: It is none of them.
        """
        if text in ("last", "best"):
            return cls("last" if text == "last" else "best")
        if text.isdecimal():
            return cls("round", int(text))
        count = text.removeprefix("mean-of-last-")
        if count != text and count.isdecimal() and int(count) >= 1:
            return cls("mean", int(count))
        raise UsageError(f"--at must be last, best, a round or mean-of-last-K (K at least 1); found '{text}'.")

    def sentence(self, by: Measure) -> str:
        """Return what the numbers are, for a caption."""
        if self.kind == "best":
            return (
                f"At each run's best evaluation by {by.title}, chosen on the test data: a bound, "
                "not what training would have delivered."
            )
        if self.kind == "round":
            return f"At round {self.value}."
        if self.kind == "mean":
            return f"Means of each run's last {self.value} evaluation{'s' if self.value > 1 else ''}."
        return "At the last evaluated round."


LAST = At()


@dataclass(frozen=True)
class Chosen:
    """The values of one run.

    Attributes:
        rounds: Rounds they come from.
        values: Measure's key -> value, averaged if there are several rounds.
        n_evaluated: Clients with test examples.
        n_unseen: Clients without a trained personal model.
    """

    rounds: tuple[int, ...]
    values: dict[str, float]
    n_evaluated: int
    n_unseen: int = 0


def choose(log: EvaluationLog, model: str, at: At, measures: Sequence[Measure], by: Measure) -> Chosen:
    """Return the values of the evaluations that `at` picks; only those are parsed with all clients' values.

    Raises:
        NotEvaluatedError: The run has no such evaluation.
        StoreError: It is damaged.
    """
    indices = _indices(log, model, at, by)
    tables = [measure_all(log, index, model, measures) for index in indices]
    metrics = log.scores(indices[-1], model)
    return Chosen(
        rounds=tuple(log.rounds[index] for index in indices),
        values={m.key: float(np.mean([table[m.key] for table in tables])) for m in measures},
        n_evaluated=int(metrics["metrics"]["n_evaluated"]),
        n_unseen=metrics["n_unseen"],
    )


def measure_all(log: EvaluationLog, index: int, model: str, measures: Sequence[Measure]) -> dict[str, float]:
    """Return the measures of one evaluation.

    Raises:
        StoreError: It is damaged.
    """
    scores = log.scores(index, model)
    held = scores["n_test"] > 0
    counts = scores["n_test"][held]
    accuracies = scores["n_correct"][held] / counts
    return {
        m.key: m.from_metrics(scores["metrics"]) if m.from_metrics else _of_clients(m, accuracies, counts)
        for m in measures
    }


def series(log: EvaluationLog, model: str, measure: Measure) -> np.ndarray:
    """Return one measure at every evaluation, `[len(log.rounds)]`.

    Raises:
        StoreError: A record is damaged.
    """
    if measure.from_metrics is not None:
        return np.array([measure.from_metrics(metrics) for metrics in log.metrics(model)])
    return np.array([measure_all(log, i, model, [measure])[measure.key] for i in range(len(log.rounds))])


def _of_clients(measure: Measure, accuracies: np.ndarray, counts: np.ndarray) -> float:
    if measure.from_clients is None:
        raise ValueError(f"measure '{measure.key}' is computed from nothing")
    return measure.from_clients(accuracies, counts)


def _indices(log: EvaluationLog, model: str, at: At, by: Measure) -> list[int]:
    n = len(log.rounds)
    if n == 0:
        raise NotEvaluatedError(f"{log.path.parent}: has no evaluation yet.")
    if at.kind == "last":
        return [n - 1]
    if at.kind == "round":
        if at.value not in log.rounds:
            raise NotEvaluatedError(
                f"{log.path.parent}: has no evaluation at round {at.value}; it has {rounds_text(log.rounds)}."
            )
        return [log.rounds.index(at.value)]
    if at.kind == "mean":
        trained = [i for i in range(n) if log.rounds[i] > 0]  # the untrained model is no part of a mean
        if len(trained) < at.value:
            found = f"{len(trained)} evaluation{'s' if len(trained) != 1 else ''} after round 0"
            raise NotEvaluatedError(f"{log.path.parent}: has {found}; mean-of-last-{at.value} needs {at.value}.")
        return trained[-at.value :]
    values = series(log, model, by)
    # On ties the earliest: that is when training would have been stopped.
    return [int(np.argmax(values) if by.higher_is_better else np.argmin(values))]


def rounds_text(rounds: Sequence[int]) -> str:
    """Return `rounds 0, 5, 10, …, 30`.

    >>> rounds_text([3]), rounds_text(range(0, 40, 5))
    ('round 3', 'rounds 0, 5, 10, …, 35')
    """
    if len(rounds) == 1:
        return f"round {rounds[0]}"
    if len(rounds) <= 5:
        return f"rounds {', '.join(map(str, rounds))}"
    return f"rounds {', '.join(map(str, rounds[:3]))}, …, {rounds[-1]}"
