"""Small cohorts for tests of aggregators, of this package and of plug-ins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from fedpcd_cli.aggregators.base import Aggregator, ServerContext, State
from fedpcd_cli.rounds.aggregation import Aggregation
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.layout import ParameterLayout, ParameterSlot


def make_cohort(
    rows: torch.Tensor | np.ndarray | Sequence[Sequence[float]],
    *,
    client_ids: Sequence[int] | None = None,
    n_examples: Sequence[int] | None = None,
    round_index: int = 1,
    n_rounds: int = 100,
    n_clients: int | None = None,
    local_lr: float = 0.1,
    server_lr: float = 1.0,
    layout: ParameterLayout | None = None,
    params: torch.Tensor | None = None,
    received_losses: Sequence[float] | None = None,
    running_losses: Sequence[float] | None = None,
    final_losses: Sequence[float] | None = None,
    dtype: torch.dtype = torch.float64,
) -> Cohort:
    """Return a cohort with these pseudo-gradients, `[m, P]`; everything else has a plain default.

    Clients are 0, 1, 2, ... with one example each, the model is at zero, the layout is one tensor, and N is one
    more than the largest id.
    """
    matrix = torch.as_tensor(rows).to(dtype)
    m, n_params = matrix.shape
    ids = tuple(range(m)) if client_ids is None else tuple(client_ids)
    return Cohort(
        round_index=round_index,
        n_rounds=n_rounds,
        n_clients=max(ids) + 1 if n_clients is None else n_clients,
        client_ids=ids,
        n_examples=np.asarray([1] * m if n_examples is None else n_examples, dtype=np.int64),
        pseudo_gradients=matrix,
        params=torch.zeros(n_params, dtype=dtype) if params is None else params,
        local_lr=local_lr,
        server_lr=server_lr,
        layout=ParameterLayout.single(n_params) if layout is None else layout,
        received_losses=_vector(received_losses),
        running_losses=_vector(running_losses),
        final_losses=_vector(final_losses),
    )


def unit_rows(*degrees: float) -> torch.Tensor:
    """Return unit vectors in the plane at these angles, float64 `[m, 2]`."""
    angles = np.deg2rad(np.asarray(degrees, dtype=np.float64))
    return torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def context_of(cohort: Cohort, *, n_clients: int | None = None, cohort_size: int | None = None) -> ServerContext:
    """Return the context of a run whose rounds look like this cohort."""
    return ServerContext(
        n_clients=cohort.n_clients if n_clients is None else n_clients,
        cohort_size=cohort.size if cohort_size is None else cohort_size,
        layout=cohort.layout,
        params=cohort.params,
    )


def aggregate_once(aggregator: Aggregator, cohort: Cohort) -> Aggregation:
    """Return what a rule does with this cohort in its first round."""
    return aggregator.aggregate(cohort, aggregator.init(context_of(cohort)))[0]


def aggregate_all(
    aggregator: Aggregator, cohorts: Iterable[Cohort], *, n_clients: int, cohort_size: int
) -> Iterator[tuple[Aggregation, State]]:
    """Yield the aggregation and the state after each of several rounds."""
    state: State | None = None
    for cohort in cohorts:
        if state is None:
            state = aggregator.init(context_of(cohort, n_clients=n_clients, cohort_size=cohort_size))
        aggregation, state = aggregator.aggregate(cohort, state)
        yield aggregation, state


def example_rounds() -> tuple[Cohort, Cohort]:
    """Return two rounds of two clients with four parameters in two layer groups, worked by hand elsewhere.

    Displacements are (.3, -.1 | .2, .1) and (-.1, .2 | .1, -.2), then (.2, .1 | -.1, .3) and (.1, -.3 | .2, .1);
    clients hold 1 and 3 examples, the local rate is 0.1, losses are (2, 1) and (1.5, 1.2).
    """
    layout = ParameterLayout((ParameterSlot("first", (2,), 0, 0), ParameterSlot("second", (2,), 2, 1)))
    displacements = (
        [[0.3, -0.1, 0.2, 0.1], [-0.1, 0.2, 0.1, -0.2]],
        [[0.2, 0.1, -0.1, 0.3], [0.1, -0.3, 0.2, 0.1]],
    )
    losses = ([2.0, 1.0], [1.5, 1.2])
    first, second = (
        make_cohort(
            torch.tensor(moved, dtype=torch.float64) / 0.1,
            n_examples=[1, 3],
            round_index=t,
            local_lr=0.1,
            layout=layout,
            received_losses=loss,
            running_losses=loss,
            final_losses=loss,
        )
        for t, (moved, loss) in enumerate(zip(displacements, losses, strict=True), start=1)
    )
    return first, second


def _vector(values: Sequence[float] | None) -> Any:
    return None if values is None else np.asarray(values, dtype=np.float64)
