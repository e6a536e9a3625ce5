"""The offline default."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from fedpcd_cli.data.digits import Digits


def test_shape_split_and_types(context):
    dataset = Digits().load(context())
    assert dataset.inputs.shape == (1797, 1, 8, 8)
    assert dataset.inputs.dtype == np.uint8
    assert dataset.n_train == 1500
    assert dataset.class_names == tuple("0123456789")
    assert dataset.inputs.flags.writeable  # torch warns about read-only memory


def test_gray_levels_are_rounded(context):
    dataset = Digits().load(context())
    raw = load_digits().images
    for level, expected in [(0, 0), (1, 16), (2, 32), (3, 48), (8, 128), (15, 239), (16, 255)]:
        assert set(dataset.inputs[:, 0][raw == level].tolist()) == {expected}


def test_loading_twice_gives_the_same(context):
    assert Digits().load(context()).fingerprint == Digits().load(context(data_seed=9)).fingerprint
