"""Seeds' statistics against numbers worked by hand and against scipy.stats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedpcd_cli.report.statistics import Summary, paired_difference, student_quantile, summarize


def test_sample_deviation_by_hand():
    # 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, over n - 1 = 2.
    found = summarize([2.0, 4.0, 9.0])
    assert (found.n, found.mean) == (3, 5.0)
    assert found.std == pytest.approx(math.sqrt(13))


def test_interval_by_hand():
    # t(0.975, 2) = 4.302653 stands in every table; half width 4.302653 * sqrt(13) / sqrt(3).
    low, high = summarize([2.0, 4.0, 9.0]).interval
    assert high - 5 == pytest.approx(4.302653 * math.sqrt(13 / 3), rel=1e-6)
    assert low == pytest.approx(5 - (high - 5))


def test_one_seed_has_no_deviation_and_no_interval():
    assert summarize([0.5]) == Summary(1, 0.5, None)
    assert summarize([0.5]).interval is None
    with pytest.raises(ValueError, match="no numbers"):
        summarize([])


@pytest.mark.parametrize("n", [2, 3, 5, 10, 31])
def test_interval_equals_scipy(n):
    values = np.random.default_rng(n).normal(0.6, 0.02, n)
    expected = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    assert summarize(values.tolist()).interval == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.7062), (4, 2.7764), (9, 2.2622), (30, 2.0423)])
def test_quantiles_of_the_printed_table(degrees, expected):
    assert student_quantile(degrees) == pytest.approx(expected, abs=5e-5)


def test_paired_difference_uses_common_seeds_only():
    mine = {1: 0.5, 2: 0.75, 3: 0.9}
    baseline = {2: 0.5, 1: 0.375, 4: 0.1}
    found = paired_difference(mine, baseline)  # 0.125 and 0.25
    assert (found.n, found.mean) == (2, 0.1875)
    assert found.std == pytest.approx(0.125 / math.sqrt(2))
    assert paired_difference(mine, {9: 1.0}) is None


def test_paired_interval_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    base = rng.normal(0.5, 0.1, 6)
    mine = base + rng.normal(0.02, 0.01, 6)
    found = paired_difference(dict(enumerate(mine)), dict(enumerate(base)))
    expected = stats.ttest_rel(mine, base).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-9)
