"""A user's own arrays: what is taken, and what each mistake says."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.data.npz import Npz
from fedpcd_cli.errors import DataError

IMAGES = np.arange(6 * 12, dtype=np.uint8).reshape(6, 3, 2, 2)
GOOD = {
    "train_inputs": IMAGES[:4],
    "train_targets": np.array([0, 1, 2, 0], dtype=np.uint8),
    "test_inputs": IMAGES[4:],
    "test_targets": np.array([1, 0]),
}
FEATURES = {"train_inputs": np.ones((4, 5)), "test_inputs": np.zeros((2, 5))}


@pytest.fixture
def load(tmp_path, context):
    """Save arrays (None leaves one out) and load them as a dataset."""

    def save_and_load(**changes):
        path = tmp_path / "mine.npz"
        np.savez(path, **{key: value for key, value in (GOOD | changes).items() if value is not None})
        return Npz().load(context(root=path))

    return save_and_load


def test_images(load):
    dataset = load()
    assert dataset.inputs.tolist() == IMAGES.tolist()
    assert dataset.targets.tolist() == [0, 1, 2, 0, 1, 0]
    assert (dataset.n_train, dataset.class_names, dataset.client_ids) == (4, ("0", "1", "2"), None)
    assert dataset.inputs.flags.writeable


def test_gray_images_get_a_channel(load):
    dataset = load(train_inputs=IMAGES[:4, 0], test_inputs=IMAGES[4:, 0])
    assert dataset.inputs.shape == (6, 1, 2, 2)


def test_features_become_float32(load):
    dataset = load(**FEATURES)
    assert dataset.inputs.dtype == np.float32
    assert not dataset.is_image


def test_owners_and_names(load):
    dataset = load(
        train_clients=np.array([5, 5, 7, 9]), test_clients=np.array([7, 9]), class_names=np.array(["a", "b", "c"])
    )
    assert dataset.client_ids.tolist() == [5, 5, 7, 9, 7, 9]
    assert dataset.class_names == ("a", "b", "c")


def test_train_owners_alone_leave_test_samples_without(load):
    assert load(train_clients=np.array([5, 5, 7, 9])).client_ids.tolist() == [5, 5, 7, 9, -1, -1]


def test_absent_classes_are_noted(load):
    assert load(test_targets=np.array([5, 0])).notes == ("no sample of class 3, 4",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_inputs": None}, "must hold test_inputs; found train_inputs, train_targets, test_targets."),
        ({"train_input": IMAGES}, "'train_input' is no known array. Did you mean 'train_inputs'?"),
        ({"train_inputs": IMAGES[:4].astype(np.int64)}, "train_inputs must be uint8 [n, C, H, W] or [n, H, W]"),
        ({"train_inputs": np.ones((4, 2, 2))}, "found float64 [4, 2, 2]"),
        (
            {"train_inputs": np.zeros((4, 32, 32, 3), np.uint8)},
            "must be [n, C, H, W]; found [4, 32, 32, 3], which looks like channels last.\n"
            "  Store it with .transpose(0, 3, 1, 2).",
        ),
        ({"test_inputs": IMAGES[4:, :, :1]}, "train and test samples must have one shape; found [3, 2, 2]"),
        (
            {"train_targets": np.array([0, 1])},
            "train_targets must be integers [4], one per sample; found int64 [2]",
        ),
        ({"train_targets": np.array([0.0, 1, 2, 0])}, "found float64 [4]"),
        (
            {"train_targets": np.array([0, 1, -2, 0])},
            "train_targets must count from 0, below 100000; found -2 to 1",
        ),
        ({"train_clients": np.array([-1, 1, 2, 0])}, "train_clients must count from 0, below 10000000; found -1"),
        ({"train_targets": np.array([0, 1, 2**31 - 1, 0])}, "below 100000; found 0 to 2147483647"),
        ({"train_inputs": np.float32(3)}, "train_inputs must be uint8 [n, C, H, W] or [n, H, W]"),
        ({"test_inputs": np.uint8(3)}, "found uint8 []"),
        ({"test_clients": np.array([1, 2])}, "test_clients needs train_clients too"),
        ({"class_names": np.array(["a"])}, "class_names must be 3 texts or more; found <U1 [1]"),
        (
            {"train_targets": np.array([0, None, 1, 0])},
            "must hold plain numeric arrays; found Python objects (pickle)",
        ),
        (
            FEATURES | {"train_inputs": np.full((4, 5), np.nan)},
            "inputs must be finite; found NaN or infinity in 4",
        ),
        (
            FEATURES | {"test_inputs": np.full((2, 5), 1e300)},
            "found NaN or infinity in 2 samples, first in sample 4",
        ),
    ],
)
def test_mistakes_are_named(load, changes, message):
    with pytest.raises(DataError) as caught:
        load(**changes)
    assert message in str(caught.value)


def test_a_missing_file_is_named(context, tmp_path):
    with pytest.raises(DataError, match=r"data.root must be a .npz file for dataset 'npz'; found .*none.npz"):
        Npz().load(context(root=tmp_path / "none.npz"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 cut", "can't be read as .npz"),
        (b"text", "must hold plain numeric arrays"),
        (b"", "can't be read"),
    ],
)
def test_a_damaged_file_is_named(context, tmp_path, content, message):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        Npz().load(context(root=path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_single_array_is_no_npz(context, tmp_path):
    np.save(tmp_path / "one.npy", IMAGES)
    with pytest.raises(DataError, match=r"must be a \.npz file; found a single array"):
        Npz().load(context(root=tmp_path / "one.npy"))
