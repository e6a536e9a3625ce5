"""How many clients a program represents, with and without history."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_all


@pytest.mark.parametrize(("n_clients", "rate", "window"), [(100, 0.1, 10), (40, 0.25, 3), (100, 0.1, 0)])
def test_expected_number_of_distinct_clients(sample_rounds, n_clients, rate, window):
    """N (1 - (1 - rho)^(H + 1)) once the window has filled; 68.6 for the first case."""
    cohort_size = round(rate * n_clients)

    def draw(client: int, rng: np.random.Generator) -> np.ndarray:
        return rng.random(3) + 1.0

    cohorts = sample_rounds(draw, n_clients=n_clients, cohort_size=cohort_size, n_rounds=window + 120, seed=1)
    results = aggregate_all(
        FedPCD(tau=0.0, history_rounds=window), cohorts, n_clients=n_clients, cohort_size=cohort_size
    )
    counts = [result.diagnostics["n_constraints"] for result, _ in results][window:]
    expected = n_clients * (1 - (1 - rate) ** (window + 1))
    assert np.mean(counts) == pytest.approx(expected, rel=0.03)


def test_minority_stays_represented():
    """The paper's demonstration: N = 30, rho = .1, H = 10, tau = .1, 5 minority clients against the rest."""
    from fedpcd_cli.testing.cohorts import make_cohort

    majority = numpy_generator(0, "majority").standard_normal(200)
    minority = numpy_generator(0, "minority").standard_normal(200) - 0.6 * majority

    def cohorts():
        for t in range(1, 61):
            rng = numpy_generator(0, "round", t)
            ids = [int(client) for client in rng.permutation(30)[:3]]
            rows = [(minority if i < 5 else majority) + 0.8 * rng.standard_normal(200) for i in ids]
            yield make_cohort(np.stack(rows), client_ids=ids, round_index=t, n_clients=30)

    counts, protected = {}, {}
    for window in (0, 10):
        rule = FedPCD(tau=0.1, history_rounds=window)
        results = [result for result, _ in aggregate_all(rule, cohorts(), n_clients=30, cohort_size=3)]
        counts[window] = [result.certificate.size for result in results]
        protected[window] = np.mean([float(result.direction.numpy() @ minority) > 0 for result in results])
        for result in results:
            assert result.diagnostics["feasible"]
            assert result.certificate.progress.min() >= 0.1 - 1e-9
    assert max(counts[0]) == 3
    assert np.mean(counts[10][10:]) == pytest.approx(30 * (1 - 0.9**11), rel=0.05)  # 20.6
    assert counts[10][:4] == sorted(counts[10][:4])
    assert protected[10] > protected[0] + 0.2
