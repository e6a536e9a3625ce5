"""Cohorts."""

from __future__ import annotations

import numpy as np

from fedpcd_cli.engine.sampling import cohort_size, sample_cohort


def test_cohort_size_is_the_specs():
    assert [cohort_size(100, rate) for rate in (0.05, 0.1, 1.0, 0.001)] == [5, 10, 100, 1]
    assert cohort_size(30, 0.05) == 2  # 1.5 rounds up
    assert cohort_size(1, 0.1) == 1


def test_a_cohort_is_a_function_of_seed_and_round():
    assert sample_cohort(1, 7, 100, 10) == sample_cohort(1, 7, 100, 10)
    assert sample_cohort(1, 7, 100, 10) != sample_cohort(1, 8, 100, 10)
    assert sample_cohort(1, 7, 100, 10) != sample_cohort(2, 7, 100, 10)
    assert list(sample_cohort(3, 1, 5, 5)) == [0, 1, 2, 3, 4]


def test_sampling_is_uniform_without_replacement():
    counts = np.zeros(20)
    for t in range(1, 2001):
        cohort = sample_cohort(0, t, 20, 4)
        assert len(set(cohort)) == 4
        counts[list(cohort)] += 1
    # 2000 * 4/20 = 400 expected; five standard deviations of a binomial.
    assert np.abs(counts - 400).max() < 5 * np.sqrt(2000 * 0.2 * 0.8)
