"""Registers the vision datasets."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_cli.api import DatasetSource, hookimpl
from fedpcd_vision.cifar import Cifar10, Cifar100
from fedpcd_vision.fashion_mnist import FashionMnist
from fedpcd_vision.image_folder import ImageFolder


@hookimpl
def fedpcd_register_datasets(register: Callable[[type[DatasetSource]], None]) -> None:
    for dataset in (FashionMnist, Cifar10, Cifar100, ImageFolder):
        register(dataset)
