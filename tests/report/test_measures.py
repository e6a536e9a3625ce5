"""Other papers' fairness figures against hand-worked values and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import entropy

from fedpcd_cli.errors import UsageError
from fedpcd_cli.metrics import DEFINITIONS, compute_metrics
from fedpcd_cli.report.measures import MEASURES, STANDARD, find_measure, parse_measures


def value(key, right, counts):
    right, counts = np.asarray(right, float), np.asarray(counts)
    measure = MEASURES[key]
    if measure.from_metrics:
        return measure.from_metrics(compute_metrics(right, counts, np.zeros(right.size)).as_dict())
    return measure.from_clients(right / counts, counts)


def test_angle_to_equality():
    # (0.6, 0.8) against (1, 1): cosine 1.4 / sqrt(2).
    assert value("cosine", [6, 8], [10, 10]) == pytest.approx(1.4 / math.sqrt(2))
    assert value("angle", [6, 8], [10, 10]) == pytest.approx(45 - math.degrees(math.atan(0.75)))
    assert value("angle", [7, 7], [10, 10]) == pytest.approx(0, abs=1e-6)
    assert value("angle", [5, 0], [5, 5]) == pytest.approx(45)


def test_variance_is_in_squared_percent():
    # 60% and 80%: deviation 10 points, variance 100.
    assert MEASURES["variance"].format(value("variance", [6, 8], [10, 10])) == "100.0"


def test_divergence_equals_scipy():
    accuracies = [3, 9, 0, 5]
    expected = entropy(np.array(accuracies) / 17, np.full(4, 0.25))
    assert value("kl", accuracies, [10] * 4) == pytest.approx(expected)
    assert value("kl", [5, 5], [10, 10]) == pytest.approx(0)
    assert value("kl", [0, 0], [10, 10]) == 0


def test_tails_of_twenty_clients():
    right = list(range(20))
    assert value("worst5_accuracy", right, [100] * 20) == 0.0
    assert value("best5_accuracy", right, [100] * 20) == 0.19
    assert value("worst5_accuracy", [*right, 20], [100] * 21) == pytest.approx(0.005)  # ceil(1.05) = 2 clients
    assert value("median_accuracy", [1, 9, 2], [10] * 3) == 0.2


def test_weighted_spread_counts_examples():
    # 10 examples at 0, 30 at 1: mean 0.75, variance 0.25 * 0.75^2 + 0.75 * 0.25^2.
    assert value("weighted_std", [0, 30], [10, 30]) == pytest.approx(math.sqrt(0.1875))
    assert value("accuracy_std", [0, 30], [10, 30]) == 0.5


def test_every_metric_is_a_measure_and_knows_its_better_end():
    assert set(DEFINITIONS) <= set(MEASURES)
    lower = {"accuracy_std", "loss", "angle", "variance", "kl", "weighted_std"}
    assert {m.key for m in MEASURES.values() if not m.higher_is_better} == lower


def test_shown_numbers():
    assert MEASURES["mean_accuracy"].format(0.123456) == "12.35"
    assert MEASURES["jain_index"].format(0.98765) == "0.988"
    assert MEASURES["mean_accuracy"].format(None) == "–"
    assert MEASURES["mean_accuracy"].format(-1e-9, signed=True) == "+0.00"


def test_lists_of_metrics():
    assert parse_measures(None) == STANDARD
    assert [m.key for m in parse_measures("mean, worst10")] == ["mean_accuracy", "worst10_accuracy"]
    assert [m.key for m in parse_measures("+angle,mean")] == [*(m.key for m in STANDARD), "angle"]
    assert len(parse_measures("all")) == len(MEASURES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("meen", "--metrics must name a metric; found 'meen'. Did you mean 'mean'?"),
        (" , ", "--metrics must name at least one metric."),
    ],
)
def test_unknown_metrics(text, message):
    with pytest.raises(UsageError) as caught:
        parse_measures(text)
    assert caught.value.message == message


def test_by_names_its_option():
    with pytest.raises(UsageError, match=r"--by must name a metric; found 'jane'. Did you mean 'jain'\?"):
        find_measure("jane", "--by")
