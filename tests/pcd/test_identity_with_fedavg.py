"""Bit for bit FedAvg wherever no client falls short."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_baselines.fedavg import FedAvg
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, make_cohort


@pytest.mark.parametrize("weights", ["examples", "uniform"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_random_feasible_rounds(dtype, weights):
    for seed in range(40):
        rng = numpy_generator(seed, "agreeing")
        m, n = int(rng.integers(1, 15)), int(rng.integers(1, 400))
        rows = (rng.random((m, n)) + 0.05) * 10.0 ** rng.uniform(-9, 9)
        cohort = make_cohort(rows, n_examples=rng.integers(1, 99, size=m).tolist(), dtype=dtype)
        ours = aggregate_once(FedPCD(tau=0.1, weights=weights), cohort)
        assert ours.diagnostics["status"] == "unchanged", seed
        assert torch.equal(ours.direction, aggregate_once(FedAvg(weights=weights), cohort).direction)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whole_run_of_agreeing_clients_at_tau_zero(sample_rounds, dtype):
    def draw(client: int, rng: np.random.Generator) -> np.ndarray:
        return (1 + client % 3) * rng.random(60)

    cohorts = list(sample_rounds(draw, n_clients=20, cohort_size=5, n_rounds=15, dtype=dtype))
    ours = aggregate_all(FedPCD(tau=0.0), cohorts, n_clients=20, cohort_size=5)
    theirs = aggregate_all(FedAvg(), cohorts, n_clients=20, cohort_size=5)
    for (mine, _), (average, _) in zip(ours, theirs, strict=True):
        assert torch.equal(mine.direction, average.direction)
        np.testing.assert_array_equal(mine.client_coefficients, average.client_coefficients)


def test_contradicting_clients_follow_fedavg_by_default():
    cohort = make_cohort([[1.0, 0.0], [-1.0, 0.0], [0.3, 1.0]], n_examples=[1, 2, 3], dtype=torch.float32)
    ours = aggregate_once(FedPCD(tau=0.02), cohort)
    assert ours.diagnostics["status"] == "infeasible"
    assert torch.equal(ours.direction, aggregate_once(FedAvg(), cohort).direction)


def test_one_client_is_followed_for_every_tau():
    for tau in (0.0, 0.02, 1.0):
        for scale in (1e-12, 1.0, 1e12):
            cohort = make_cohort([[3.0 * scale, -4.0 * scale]], dtype=torch.float32)
            result = aggregate_once(FedPCD(tau=tau), cohort)
            assert result.diagnostics["status"] == "unchanged"
            assert torch.equal(result.direction, cohort.pseudo_gradients[0])
