"""Shapes, sizes and initialization of the built-in models."""

from __future__ import annotations

import pytest
import torch

from fedpcd_cli.components import ParameterError
from fedpcd_cli.engine.flat_model import build_module
from fedpcd_cli.errors import UsageError
from fedpcd_cli.models.cnn import CNN
from fedpcd_cli.models.dropout import Dropout, set_dropout_generator
from fedpcd_cli.models.lenet5 import LeNet5
from fedpcd_cli.models.linear import Linear
from fedpcd_cli.models.mlp import MLP
from fedpcd_cli.models.resnet import ResNet18, ResNet20

SPECS = [Linear(), MLP(), CNN(), CNN(dropout=True), LeNet5(), ResNet20(), ResNet18()]
SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32)]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: repr(s))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_maps_any_dataset_to_logits(spec, shape):
    module = build_module(spec, shape, 7, seed=1).eval()
    assert module(torch.rand(2, *shape)).shape == (2, 7)


@pytest.mark.parametrize(
    ("spec", "shape", "n_classes", "expected"),
    [
        # 3*64*25+64, 64*64*25+64, 1600*384+384, 384*192+192, 192*10+10: the papers' 797,962.
        (CNN(), (3, 32, 32), 10, 797_962),
        (CNN(), (3, 32, 32), 100, 815_332),
        # 784*200+200 + 200*200+200 + 200*10+10
        (MLP(), (1, 28, 28), 10, 199_210),
        (Linear(), (60,), 10, 610),
        # 156 + 2416 + 48120 + 10164 + 850: LeNet-5 on 32x32 gray images.
        (LeNet5(), (1, 32, 32), 10, 61_706),
        (LeNet5(), (1, 28, 28), 10, 61_706),
    ],
)
def test_parameter_counts_are_the_papers(spec, shape, n_classes, expected):
    module = build_module(spec, shape, n_classes, seed=0)
    assert sum(p.numel() for p in module.parameters()) == expected


def test_initial_weights_depend_on_the_seed_alone_and_leave_global_state_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = build_module(CNN(), (1, 28, 28), 10, seed=3)
    torch.rand(7)
    torch.random.set_rng_state(before)
    assert torch.equal(torch.random.get_rng_state(), before)
    second = build_module(CNN(), (1, 28, 28), 10, seed=3)
    other = build_module(CNN(), (1, 28, 28), 10, seed=4)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


def test_convolutions_refuse_feature_vectors_and_tiny_images():
    with pytest.raises(UsageError, match=r"model.name 'cnn' needs images .* found samples of shape \[60\]"):
        build_module(CNN(), (60,), 10, seed=0)
    with pytest.raises(UsageError, match="at least 4 x 4 pixels; found 2 x 2"):
        build_module(LeNet5(), (1, 2, 2), 10, seed=0)


def test_group_norm_groups_must_divide_the_widths():
    with pytest.raises(ParameterError, match=r"norm_groups must divide \[16, 32, 64\]; found 3"):
        ResNet20(norm_groups=3)


def test_pytorchs_own_dropout_is_refused_by_name():
    class Careless(MLP):
        name = "careless"

        def build(self, sample_shape, n_classes):
            return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 10))

    with pytest.raises(UsageError, match="model 'careless' layer '1' draws from PyTorch's global random state"):
        build_module(Careless(), (1, 8, 8), 10, seed=0)


def test_dropout_draws_from_its_generator_and_keeps_the_mean():
    layer = Dropout(0.25)
    ones = torch.ones(20_000)
    assert layer.eval()(ones) is ones
    layer.train()
    set_dropout_generator(layer, torch.Generator().manual_seed(1))
    first = layer(ones)
    set_dropout_generator(layer, torch.Generator().manual_seed(1))
    assert torch.equal(first, layer(ones))
    assert first.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert first.mean().item() == pytest.approx(1.0, abs=0.02)
    layer.generator = None
    with pytest.raises(RuntimeError, match="generator must be set"):
        layer(ones)
