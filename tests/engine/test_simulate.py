"""Whole rounds on real digits: broken and empty clients, buffers, checkpoints, every rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from fedpcd_cli.data.cache import cache_dir
from fedpcd_cli.data.federation import build_federation
from fedpcd_cli.data.records import make_partition
from fedpcd_cli.engine.local import LocalTrainer
from fedpcd_cli.engine.simulate import Simulation
from fedpcd_cli.errors import DivergedError
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.recipe.document import recipe_from_document
from fedpcd_cli.registry import get_registry
from fedpcd_cli.store.checkpoint import load_checkpoint, save_checkpoint

CPU = torch.device("cpu")
RULES = get_registry().names("aggregator")


def recipe_for(rule="fedpcd", **changes):
    document = {
        "name": "t",
        "rounds": 6,
        "data": {
            "dataset": "digits",
            "partition": {"scheme": "dirichlet", "n_clients": 10, "dirichlet_alpha": 0.1},
        },
        "model": {"name": "mlp", "hidden": [16]},
        "local": {"lr": 0.1, "batch_size": 16},
        "server": {"participation_rate": 0.4},
        "aggregator": {"name": rule},
        "engine": {"threads": 1},
    }
    return recipe_from_document({**document, **changes})


@pytest.fixture(scope="module")
def federation():
    return build_federation(recipe_for().data, 1, cache_dir=cache_dir())


def break_clients(monkeypatch, wanted, value=float("nan")):
    """Let the updates of some clients hold one value that is not finite."""
    train = LocalTrainer.train

    def broken(self, params, buffers, client_id, round_index, lr, update, personal=None):
        report = train(self, params, buffers, client_id, round_index, lr, update, personal)
        if client_id in wanted:
            update[3] = value
        return report

    monkeypatch.setattr(LocalTrainer, "train", broken)


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "NaN"), (float("inf"), "Inf")])
@pytest.mark.parametrize("rule", RULES)
def test_a_broken_client_is_left_out_and_named(federation, monkeypatch, rule, value, word):
    simulation = Simulation(recipe_for(rule), federation)
    first = Simulation(recipe_for(rule), federation).run_round().record.client_ids
    break_clients(monkeypatch, {first[1]}, value)
    record = simulation.run_round().record
    assert record.client_ids == (first[0], *first[2:])
    (excluded,) = record.excluded
    assert excluded.client_id == first[1]
    assert excluded.reason == f"update has {word} in 1.weight"
    assert f"round 1: client {first[1]} left out: update has {word} in 1.weight" in record.warnings
    assert torch.isfinite(simulation.params).all()
    assert all(torch.isfinite(simulation.evaluate().scores.metrics.loss * torch.ones(1)))


def test_the_others_are_weighted_as_if_it_had_not_been_sampled(federation, monkeypatch):
    first = Simulation(recipe_for("fedavg"), federation).run_round().record.client_ids
    break_clients(monkeypatch, {first[0]})
    simulation = Simulation(recipe_for("fedavg"), federation)
    record = simulation.run_round().record
    weights = np.array(record.n_examples) / sum(record.n_examples)
    assert len(weights) == len(first) - 1
    updates = simulation._updates[: len(weights)].numpy().astype(np.float64)
    expected = simulation.model.initial.numpy() - 0.1 * (weights @ updates)
    np.testing.assert_allclose(simulation.params.numpy(), expected, atol=1e-6)


def test_a_broken_personal_model_is_named_and_not_kept(federation, monkeypatch):
    train = LocalTrainer.train

    def broken(self, params, buffers, client_id, round_index, lr, update, personal=None):
        report = train(self, params, buffers, client_id, round_index, lr, update, personal)
        if client_id == first[0]:
            personal[-1] = float("inf")
        return report

    first = Simulation(recipe_for("ditto"), federation).run_round().record.client_ids
    monkeypatch.setattr(LocalTrainer, "train", broken)
    simulation = Simulation(recipe_for("ditto"), federation)
    record = simulation.run_round().record
    assert record.excluded[0].reason == "personal model has Inf in 3.bias"
    assert not simulation.personal.has_trained(first[0])
    assert simulation.personal.has_trained(first[1])


def test_a_cohort_of_broken_clients_stops_the_run(federation, monkeypatch):
    simulation = Simulation(recipe_for(), federation)
    simulation.run_round()
    before = simulation.params.clone()
    break_clients(monkeypatch, set(range(10)))
    with pytest.raises(DivergedError, match=r"round 2: no client of the cohort sent a usable update \(client \d"):
        simulation.run_round()
    assert simulation.is_consistent
    assert simulation.round_index == 1
    assert torch.equal(simulation.params, before)


def test_a_client_without_examples_is_left_out_and_named(federation):
    partition = federation.partition
    sampled = Simulation(recipe_for(), federation).run_round().record.client_ids
    train = list(partition.train_indices)
    train[sampled[0]] = train[sampled[0]][:0]
    emptied = replace(
        federation, partition=make_partition("dirichlet", "matched", train, list(partition.test_indices), ())
    )
    record = Simulation(recipe_for(), emptied).run_round().record
    assert record.client_ids == sampled[1:]
    assert record.excluded[0].reason == "holds no training examples"
    nobody = replace(
        federation,
        partition=make_partition("dirichlet", "matched", [t[:0] for t in train], list(partition.test_indices), ()),
    )
    simulation = Simulation(recipe_for(), nobody)
    record = simulation.run_round().record
    assert record.warnings == ("round 1: no client of the cohort holds training examples; no step",)
    assert torch.equal(simulation.params, simulation.model.initial)


@dataclass(frozen=True, kw_only=True)
class WithBatchNorm(ModelSpec):
    name = "with-batch-norm"

    def build(self, sample_shape, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_classes))


def test_buffers_are_averaged_by_examples(federation):
    recipe = recipe_for("fedavg").model_copy(update={"model": WithBatchNorm()})
    simulation = Simulation(recipe, federation)
    assert simulation.model.n_buffers == 16
    rows = []
    read = simulation.model.read_buffers

    def spy(out):
        read(out)
        rows.append(out.clone())

    simulation.model.read_buffers = spy
    record = simulation.run_round().record
    weights = torch.tensor(record.n_examples, dtype=torch.float32)
    expected = (weights / weights.sum()) @ torch.stack(rows)
    torch.testing.assert_close(simulation.buffers, expected)
    assert not torch.equal(rows[0], rows[1])
    assert 0 <= simulation.evaluate().scores.metrics.mean_accuracy <= 1


@pytest.mark.parametrize("rule", RULES)
def test_resumed_from_a_checkpoint_equals_uninterrupted(federation, tmp_path, rule):
    straight = Simulation(recipe_for(rule), federation)
    records = [straight.run_round().record.as_dict() for _ in range(6)]
    stopped = Simulation(recipe_for(rule), federation)
    for _ in range(3):
        stopped.run_round()
    save_checkpoint(tmp_path, 3, stopped.state())
    state, complaints = load_checkpoint(tmp_path, CPU)
    assert complaints == []
    resumed = Simulation(recipe_for(rule), federation)
    resumed.restore(state)
    assert [resumed.run_round().record.as_dict() for _ in range(3)] == records[3:]
    assert torch.equal(resumed.params, straight.params)
    a, b = resumed.evaluate(), straight.evaluate()
    assert a.scores.metrics == b.scores.metrics
    assert (a.personal is None) == (b.personal is None)
    if a.personal is not None:
        assert a.personal.metrics == b.personal.metrics


@pytest.mark.parametrize("rule", RULES)
def test_training_lowers_the_loss(federation, rule):
    changes = {"server": {"participation_rate": 0.5}}
    if rule in ("fedmgda-plus", "craft"):
        # Their step length does not follow the clients': one of their own suits this small model.
        rate = {"fedmgda-plus": "eta_g", "craft": "server_lr"}[rule]
        changes["aggregator"] = {"name": rule, rate: 0.3}
    simulation = Simulation(recipe_for(rule, **changes), federation)
    before = simulation.evaluate().scores.metrics.loss
    for _ in range(25):
        simulation.run_round()
    assert simulation.evaluate().scores.metrics.loss < 0.9 * before


def test_the_cohort_matrix_is_one_and_is_reused(federation):
    simulation = Simulation(recipe_for("fedavg"), federation)
    simulation.run_round()
    pointer = simulation._updates.data_ptr()
    simulation.run_round()
    assert simulation._updates.data_ptr() == pointer
    assert simulation._updates.shape == (4, simulation.params.numel())


def test_float64_runs_end_to_end(federation):
    simulation = Simulation(recipe_for(engine={"threads": 1, "precision": "float64"}), federation)
    simulation.run_round()
    assert simulation.params.dtype == torch.float64
    assert simulation.run_round().record.diagnostics["kkt_residual"] <= 1e-9


def test_the_record_tells_how_the_step_lies_to_each_update(federation):
    simulation = Simulation(recipe_for("fedavg"), federation)
    record = simulation.run_round().record
    updates = simulation._updates[: len(record.client_ids)].double().numpy()
    mean = np.array(record.n_examples) / sum(record.n_examples) @ updates
    expected = updates @ mean / np.linalg.norm(updates, axis=1) / np.linalg.norm(mean)
    np.testing.assert_allclose(record.update_cosines, expected, atol=1e-5)
    assert record.direction_norm == pytest.approx(np.linalg.norm(mean), rel=1e-5)
