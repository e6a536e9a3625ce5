"""Fixtures for tests of aggregation rules."""

from __future__ import annotations

import pytest
import torch

from fedpcd_cli.store.tree import flatten_tree, unflatten_tree
from fedpcd_cli.testing.cohorts import make_cohort

HARD_ROWS = {
    "one client": [[3.0, -1.0, 2.0]],
    "one client that stood still": [[0.0, 0.0, 0.0]],
    "all zero": [[0.0, 0.0, 0.0]] * 3,
    "identical": [[1.0, 2.0, -2.0]] * 3,
    "opposite": [[1.0, 2.0, -2.0], [-1.0, -2.0, 2.0]],
    "opposite, one twice as long": [[1.0, 2.0, -2.0], [-2.0, -4.0, 4.0]],
    "one zero": [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, -2.0]],
    "tiny": [[1e-10, 2e-10, 0.0], [-2e-10, 1e-10, 1e-10], [0.0, -1e-10, 2e-10]],
    "huge": [[1e10, 2e10, 0.0], [-2e10, 1e10, 1e10], [0.0, -1e10, 2e10]],
    "mixed": [[1e-10, 2e-10, 0.0], [-2e10, 1e10, 1e10], [0.0, -1.0, 2.0]],
    "cancelling": [[1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [-0.5, -1.0, 0.0]],
}


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def precision(request):
    return request.param


@pytest.fixture(params=HARD_ROWS)
def hard_cohort(request, precision):
    """A cohort that trips rules up; one client holds a single example."""
    rows = HARD_ROWS[request.param]
    m = len(rows)
    return make_cohort(
        rows,
        client_ids=[4, 0, 7][:m],
        n_clients=9,
        n_examples=[1, 5, 600][:m],
        received_losses=[0.5, 2.0, 0.0][:m],
        running_losses=[0.5, 2.0, 0.0][:m],
        final_losses=[0.25, 1.0, 0.0][:m],
        dtype=precision,
    )


@pytest.fixture
def through_checkpoint():
    """Return a state as a resumed run would find it: written to plain data and tensors, and read back."""

    def pass_through(state):
        structure, tensors = flatten_tree(state)
        return unflatten_tree(structure, {k: t.clone() for k, t in tensors.items()}, torch.device("cpu"))

    return pass_through


@pytest.fixture
def resumed_equals_straight(through_checkpoint):
    """Check that a run through a checkpoint after every round gives the bits of an uninterrupted one."""
    from fedpcd_cli.testing.cohorts import context_of

    def check(rule, cohorts, *, n_clients, cohort_size):
        cohorts = list(cohorts)
        context = context_of(cohorts[0], n_clients=n_clients, cohort_size=cohort_size)
        straight, resumed = rule.init(context), through_checkpoint(rule.init(context))
        for cohort in cohorts:
            a, straight = rule.aggregate(cohort, straight)
            b, resumed = rule.aggregate(cohort, resumed)
            assert torch.equal(a.direction, b.direction)
            assert dict(a.diagnostics) == dict(b.diagnostics)
            resumed = through_checkpoint(resumed)
        assert torch.equal(
            rule.evaluated_params(cohorts[-1].params, straight),
            rule.evaluated_params(cohorts[-1].params, resumed),
        )

    return check


@pytest.fixture
def random_rounds():
    """Return cohorts of changing clients, random updates and losses."""

    def build(n_rounds, *, n_clients=6, size=3, n_params=5, seed=0, dtype=torch.float32):
        generator = torch.Generator().manual_seed(seed)
        for t in range(1, n_rounds + 1):
            ids = sorted(torch.randperm(n_clients, generator=generator)[:size].tolist())
            yield make_cohort(
                torch.randn(size, n_params, generator=generator),
                client_ids=ids,
                n_clients=n_clients,
                n_examples=torch.randint(1, 50, (size,), generator=generator).tolist(),
                round_index=t,
                local_lr=0.1 * 0.9**t,
                params=torch.randn(n_params, generator=generator).to(dtype),
                received_losses=torch.rand(size, generator=generator).tolist(),
                running_losses=torch.rand(size, generator=generator).tolist(),
                final_losses=torch.rand(size, generator=generator).tolist(),
                dtype=dtype,
            )

    return build


@pytest.fixture
def shuffled():
    """Return the same cohort with its clients in another order."""
    from dataclasses import replace

    def shuffle(cohort, order):
        index = list(order)

        def pick(losses):
            return None if losses is None else losses[index]

        return replace(
            cohort,
            client_ids=tuple(cohort.client_ids[i] for i in index),
            n_examples=cohort.n_examples[index],
            pseudo_gradients=cohort.pseudo_gradients[index],
            received_losses=pick(cohort.received_losses),
            running_losses=pick(cohort.running_losses),
            final_losses=pick(cohort.final_losses),
        )

    return shuffle


@pytest.fixture
def record_is_json():
    """Check that what a rule says about a round can be written to the run's record."""
    import json

    def check(aggregation):
        json.dumps(dict(aggregation.diagnostics), allow_nan=False)
        assert all(isinstance(warning, str) for warning in aggregation.warnings)

    return check


@pytest.fixture
def quadratic_descent():
    """Train three clients with losses ||w - c_i||² / 2 from one local gradient step for a few rounds.

    Returns the mean loss before and after, at the model that the rule evaluates.
    """
    from fedpcd_cli.testing.cohorts import context_of

    centers = torch.tensor([[3.0, 1.0], [2.0, 2.0], [4.0, 1.5]], dtype=torch.float64)

    def losses(params):
        return ((params - centers) ** 2).sum(dim=1) / 2

    def train(rule, *, n_rounds=40, local_lr=0.3):
        params = torch.zeros(2, dtype=torch.float64)
        state = None
        before = float(losses(params).mean())
        for t in range(1, n_rounds + 1):
            cohort = make_cohort(
                params - centers,
                n_examples=[5, 10, 20],
                round_index=t,
                local_lr=local_lr,
                params=params,
                received_losses=losses(params).tolist(),
                running_losses=losses(params).tolist(),
                final_losses=losses(params).tolist(),
            )
            state = rule.init(context_of(cohort)) if state is None else state
            aggregation, state = rule.aggregate(cohort, state)
            params.add_(aggregation.direction, alpha=-cohort.server_lr * local_lr)
        return before, float(losses(rule.evaluated_params(params, state)).mean())

    return train
