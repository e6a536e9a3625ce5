"""Shared builders for data tests."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fedpcd_cli.data.assemble import assemble_dataset
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext


@pytest.fixture
def context(tmp_path):
    """Return a load context with a private cache; keyword arguments change it."""

    def build(**changes):
        settings = {"root": None, "download": False, "cache_dir": tmp_path / "cache", "data_seed": 0}
        return LoadContext(**(settings | changes))

    return build


@pytest.fixture
def make_dataset():
    """Return a feature dataset whose input is the sample's own position."""

    def build(train_targets, test_targets, n_classes, *, owners=None) -> Dataset:
        targets = np.concatenate([train_targets, test_targets]).astype(np.int64)
        return assemble_dataset(
            name="made",
            inputs=np.arange(len(targets), dtype=np.float32)[:, None],
            targets=targets,
            n_train=len(train_targets),
            class_names=[str(k) for k in range(n_classes)],
            owners=None if owners is None else np.asarray(owners),
        )

    return build


@pytest.fixture
def data_section():
    """Return a recipe's `data` section as far as this package reads it."""

    def build(dataset: DatasetSource, scheme, n_clients, *, root=None, protocol="matched", fraction=1 / 6):
        return SimpleNamespace(
            dataset=dataset,
            root=root,
            download=False,
            partition=SimpleNamespace(scheme=scheme, n_clients=n_clients),
            test=SimpleNamespace(protocol=protocol, fraction=fraction),
        )

    return build
