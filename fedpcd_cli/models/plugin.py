"""Registers the built-in models."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_cli.api import ModelSpec, hookimpl
from fedpcd_cli.models.cnn import CNN
from fedpcd_cli.models.lenet5 import LeNet5
from fedpcd_cli.models.linear import Linear
from fedpcd_cli.models.mlp import MLP
from fedpcd_cli.models.resnet import ResNet18, ResNet20


@hookimpl
def fedpcd_register_models(register: Callable[[type[ModelSpec]], None]) -> None:
    for model in (Linear, MLP, CNN, LeNet5, ResNet20, ResNet18):
        register(model)
