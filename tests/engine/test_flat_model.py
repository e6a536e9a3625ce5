"""The flat view of a network's parameters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedpcd_cli.engine.flat_model import FlatModel, build_module
from fedpcd_cli.errors import UsageError
from fedpcd_cli.models.cnn import CNN
from fedpcd_cli.models.mlp import MLP
from fedpcd_cli.models.resnet import ResNet20

CPU = torch.device("cpu")


def flat(spec, shape=(3, 32, 32)):
    return FlatModel(build_module(spec, shape, 10, seed=0), CPU, torch.float32)


def test_binding_makes_the_network_read_and_write_the_vector():
    model = FlatModel(nn.Linear(2, 1), CPU, torch.float32)
    vector = torch.tensor([2.0, 3.0, 0.5])
    model.bind(vector)
    assert model.module(torch.tensor([[1.0, 10.0]])).item() == 32.5
    model.module.weight.data.mul_(2)
    assert vector.tolist() == [4.0, 6.0, 0.5]


def test_weight_and_bias_form_a_group():
    assert len(flat(CNN()).layout.group_spans) == 5
    assert len(flat(MLP(), (1, 28, 28)).layout.group_spans) == 3
    layout = flat(CNN()).layout
    assert [span.stop - span.start for span in layout.group_spans] == [4864, 102464, 614784, 73920, 1930]
    assert layout.group_spans[-1].stop == layout.n_params == 797_962


def test_a_norm_layer_belongs_to_the_convolution_before_it():
    layout = flat(ResNet20()).layout
    # 1 stem, 9 blocks of two convolutions, 2 shortcuts that change the shape, 1 fully connected layer.
    assert len(layout.group_spans) == 1 + 18 + 2 + 1
    stem = [slot for slot in layout.slots if slot.group == 0]
    assert [slot.shape for slot in stem] == [(16, 3, 3, 3), (16,), (16,)]
    offsets = [slot.offset for slot in layout.slots]
    assert offsets == sorted(offsets)
    assert layout.tensor_spans[0] == slice(0, 432)


def test_buffers_lie_outside_the_parameters():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model = FlatModel(module, CPU, torch.float32)
    assert model.n_buffers == 8
    assert model.initial_buffers.tolist() == [0.0] * 4 + [1.0] * 4
    model.load_buffers(torch.arange(8.0))
    out = torch.empty(8)
    model.read_buffers(out)
    assert out.tolist() == list(range(8))
    assert model.layout.n_params == 3 * 4 + 4 + 4 + 4


def test_a_network_without_parameters_is_refused():
    with pytest.raises(UsageError, match="no trainable parameters"):
        FlatModel(nn.Flatten(), CPU, torch.float32)
