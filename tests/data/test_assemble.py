"""What a dataset must be before anything else sees it."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.data.assemble import array_digest, assemble_dataset, join_splits
from fedpcd_cli.errors import DataError

IMAGES = np.arange(4 * 12, dtype=np.uint8).reshape(4, 3, 2, 2)
TARGETS = np.array([0, 1, 1, 0])


def assemble(**changes):
    settings = {"name": "x", "inputs": IMAGES, "targets": TARGETS, "n_train": 3, "class_names": ["a", "b"]}
    return assemble_dataset(**(settings | changes))


def test_inputs_are_not_copied():
    assert assemble().inputs is IMAGES


def test_fingerprint_depends_on_every_part():
    changed = IMAGES.copy()
    changed[0, 0, 0, 0] += 1
    variants = [
        assemble(),
        assemble(inputs=changed),
        assemble(targets=TARGETS[::-1]),
        assemble(owners=np.zeros(4, dtype=int)),
        assemble(owners=np.array([0, 0, 1, 1])),
    ]
    assert len({v.fingerprint for v in variants}) == 4  # reversed targets are the same targets
    assert assemble().fingerprint == assemble(inputs=IMAGES.copy()).fingerprint


def test_digest_is_sha256_of_type_shape_and_little_endian_bytes():
    import hashlib

    expected = hashlib.sha256(b"<i8(2,);" + b"\x01" + bytes(7) + b"\x02" + bytes(7)).hexdigest()
    assert array_digest([np.array([1, 2], dtype=">i8")]) == expected
    assert array_digest([np.array([1, 2], dtype="<i8")]) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": IMAGES.astype(np.int32)}, "x: inputs must be uint8 [n, C, H, W] (images) or float32"),
        ({"inputs": IMAGES[0]}, "found uint8 [3, 2, 2]"),
        ({"targets": TARGETS[:3]}, "x: targets must be integers [4], one per sample; found int64 [3]"),
        ({"targets": TARGETS.astype(float)}, "found float64 [4]"),
        ({"targets": np.array([0, 1, 2, 0])}, "x: targets must be between 0 and 1; found 0 to 2"),
        ({"targets": np.array([0, 1, -1, 0])}, "found -1 to 1"),
        ({"n_train": 0}, "x: must have at least one training sample; found 0 of 4"),
        ({"owners": np.array([1, 2])}, "x: each sample must have one owner; found 4 samples and 2 owners"),
        (
            {"inputs": np.array([[1.0], [np.nan], [np.inf], [0.0]], dtype=np.float32)},
            "x: inputs must be finite; found NaN or infinity in 2 samples, first in sample 1",
        ),
    ],
)
def test_wrong_arrays_are_refused(changes, message):
    with pytest.raises(DataError) as caught:
        assemble(**changes)
    assert message in str(caught.value)


def test_splits_must_agree():
    assert join_splits("x", IMAGES[:1], IMAGES[1:]).tolist() == IMAGES.tolist()
    with pytest.raises(
        DataError, match=r"x: train and test samples must have one shape; found \[3, 2, 2\] and \[1"
    ):
        join_splits("x", IMAGES, IMAGES[:, :1])
    with pytest.raises(DataError, match="x: train and test inputs must be of one type; found uint8 and float32"):
        join_splits("x", IMAGES, IMAGES.astype(np.float32))
