"""Which clients take part in a round."""

from __future__ import annotations

from fedpcd_cli.seeds import numpy_generator


def cohort_size(n_clients: int, participation_rate: float) -> int:
    """Return m = max(1, round(ρN)), halves rounded up, at most N."""
    return min(n_clients, max(1, int(participation_rate * n_clients + 0.5)))


def sample_cohort(seed: int, round_index: int, n_clients: int, size: int) -> tuple[int, ...]:
    """Return `size` client ids, uniform without replacement, ascending; a function of seed and round alone."""
    generator = numpy_generator(seed, "cohort", round_index)
    return tuple(sorted(int(i) for i in generator.choice(n_clients, size=size, replace=False)))
