"""Local training against PyTorch's own optimizer, and its independence of other clients."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedpcd_cli.aggregators.base import Needs
from fedpcd_cli.engine.device_data import DeviceData
from fedpcd_cli.engine.evaluate import evaluate
from fedpcd_cli.engine.flat_model import FlatModel
from fedpcd_cli.engine.local import LocalTrainer
from fedpcd_cli.models.dropout import Dropout
from fedpcd_cli.seeds import torch_generator

CPU = torch.device("cpu")
N_EXAMPLES = (7, 1, 12)


def section(**changes):
    values = {"epochs": 2, "steps": None, "batch_size": 3, "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0}
    return SimpleNamespace(**{**values, **changes})


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(0)
    bounds = np.cumsum((0, *N_EXAMPLES))
    return DeviceData(
        inputs=torch.randn(40, 5, generator=rng, dtype=torch.float64),
        targets=torch.randint(3, (40,), generator=rng),
        train_indices=tuple(torch.arange(a, b) for a, b in pairwise(bounds)),
        test_indices=torch.arange(20, 40),
        test_counts=np.array([4, 0, 16]),
        transform=lambda batch, *, generator, training: batch,
    )


def make_model(dropout=0.0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), Dropout(dropout), nn.Linear(4, 3))
    return FlatModel(module, CPU, torch.float64)


def train(model, data, client_id, local, needs=None, lr=0.1, personal=None):
    update = torch.empty_like(model.initial)
    trainer = LocalTrainer(model, data, local, needs or Needs(), seed=9)
    report = trainer.train(model.initial, model.initial_buffers, client_id, 4, lr, update, personal=personal)
    return update, report


def reference_batches(data, client_id, epochs, size):
    generator = torch_generator(9, "shuffle", 4, client_id)
    indices = data.train_indices[client_id]
    for _ in range(epochs):
        order = indices[torch.randperm(len(indices), generator=generator)]
        yield from order.split(size)


@pytest.mark.parametrize(
    "changes", [{}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"momentum": 0.5, "weight_decay": 0.01}]
)
@pytest.mark.parametrize("client_id", [0, 1, 2])
def test_equals_torch_sgd(data, changes, client_id):
    local = section(**changes)
    model = make_model()
    update, report = train(model, data, client_id, local)
    module = make_model().module
    optimizer = torch.optim.SGD(
        module.parameters(), lr=0.1, momentum=local.momentum, weight_decay=local.weight_decay
    )
    losses = []
    for batch in reference_batches(data, client_id, 2, 3):
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(data.inputs[batch]), data.targets[batch])
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    after = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    torch.testing.assert_close(update, (model.initial - after) / 0.1, rtol=1e-12, atol=1e-12)
    assert report.running_loss == pytest.approx(np.mean(losses))
    assert report.received_loss is None


def test_a_client_depends_on_its_own_stream_alone(data):
    model = make_model(dropout=0.5)
    alone, _ = train(model, data, 2, section())
    for other in (0, 1):
        train(model, data, other, section())
    torch.rand(5)
    again, _ = train(model, data, 2, section())
    assert torch.equal(alone, again)
    fresh, _ = train(make_model(dropout=0.5), data, 2, section())
    assert torch.equal(alone, fresh)


def test_steps_go_on_into_the_next_epoch(data):
    by_steps, _ = train(make_model(), data, 0, section(epochs=None, steps=6))
    by_epochs, _ = train(make_model(), data, 0, section(epochs=2))  # 7 examples, batch 3: 3 steps an epoch
    assert torch.equal(by_steps, by_epochs)


def test_losses_are_computed_where_asked(data):
    model = make_model(dropout=0.5)
    needs = Needs(received_loss=True, final_loss=True)
    _, report = train(model, data, 2, section(), needs)
    module = make_model().module.eval()
    own = data.train_indices[2]
    expected = functional.cross_entropy(module(data.inputs[own]), data.targets[own]).item()
    assert report.received_loss == pytest.approx(expected, rel=1e-12)
    assert report.final_loss is not None
    assert report.final_loss < report.received_loss


def test_full_batch_gradient_trains_nothing(data):
    model = make_model()
    update, report = train(model, data, 2, section(), Needs(full_batch_gradient=True))
    module = make_model().module
    own = data.train_indices[2]
    loss = functional.cross_entropy(module(data.inputs[own]), data.targets[own])
    loss.backward()
    expected = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    torch.testing.assert_close(update, expected, rtol=1e-12, atol=1e-14)
    assert report.running_loss == pytest.approx(loss.item())


def test_personal_model_follows_dittos_two_steps(data):
    """One batch of everything: v <- v - lr (grad F(v) + lambda (v - w)), w <- w - lr grad F(w)."""
    model = make_model()
    own = data.train_indices[0]
    start = model.initial + 0.3
    personal = start.clone()
    local = section(epochs=1, batch_size=100)
    update, _ = train(model, data, 0, local, Needs(personal_proximal=2.0), personal=personal)

    def gradient(flat):
        other = make_model()
        other.bind(flat.clone())
        loss = functional.cross_entropy(other.module(data.inputs[own]), data.targets[own])
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, other.parameters)])

    expected = start - 0.1 * (gradient(start) + 2.0 * (start - model.initial))
    torch.testing.assert_close(personal, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(update, gradient(model.initial), rtol=1e-9, atol=1e-12)


def test_the_platforms_second_step_repeats_the_gradient_with_a_pull(data):
    """Two batches: w1 = w - lr g, then w2 = w1 - lr (g + lambda (w1 - w)), and again from there."""
    model = make_model()
    local = section(epochs=1, batch_size=4)
    update, _ = train(model, data, 0, local, Needs(repeated_step_proximal=0.5))
    other = make_model()
    flat = model.initial.clone()
    for batch in reference_batches(data, 0, 1, 4):
        other.bind(flat)
        loss = functional.cross_entropy(other.module(data.inputs[batch]), data.targets[batch])
        gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, other.parameters)])
        flat = flat - 0.1 * gradient
        flat = flat - 0.1 * (gradient + 0.5 * (flat - model.initial))
    torch.testing.assert_close(update, (model.initial - flat) / 0.1, rtol=1e-11, atol=1e-12)


def test_evaluation_pools_all_clients_in_one_pass(data):
    model = make_model(dropout=0.5)
    evaluation = evaluate(model, data, model.initial, model.initial_buffers)
    module = make_model().module.eval()
    logits = module(data.inputs[20:])
    right = (logits.argmax(1) == data.targets[20:]).numpy()
    losses = functional.cross_entropy(logits, data.targets[20:], reduction="none").detach().numpy()
    assert evaluation.n_correct.tolist() == [right[:4].sum(), 0, right[4:].sum()]
    np.testing.assert_allclose(evaluation.loss_sums, [losses[:4].sum(), 0, losses[4:].sum()])
    assert evaluation.metrics.n_evaluated == 2
    assert evaluation.metrics.global_accuracy == pytest.approx(right.mean())
