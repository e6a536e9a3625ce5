"""Synthetic federations for whole FedPCD rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import make_cohort


def sampled_rounds(
    draw: Callable[[int, np.random.Generator], np.ndarray],
    *,
    n_clients: int,
    cohort_size: int,
    n_rounds: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Iterator[Cohort]:
    """Yield cohorts of a federation whose client i sends `draw(i, generator)`."""
    for t in range(1, n_rounds + 1):
        rng = numpy_generator(seed, "round", t)
        ids = [int(client) for client in rng.permutation(n_clients)[:cohort_size]]
        rows = np.stack([draw(client, numpy_generator(seed, "client", t, client)) for client in ids])
        yield make_cohort(
            rows,
            client_ids=ids,
            n_examples=[1 + client % 5 for client in ids],
            round_index=t,
            n_rounds=n_rounds,
            n_clients=n_clients,
            dtype=dtype,
        )


@pytest.fixture(scope="session")
def sample_rounds() -> Callable[..., Iterator[Cohort]]:
    """`sample_rounds(draw, n_clients=, cohort_size=, n_rounds=, seed=0, dtype=)`: uniform cohorts, round by round."""
    return sampled_rounds
