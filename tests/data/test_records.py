"""A partition's way to a file and back."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as np_arrays

from fedpcd_cli.data.records import make_partition, partition_from_arrays, partition_to_arrays
from fedpcd_cli.errors import DataError

parts_lists = st.lists(
    np_arrays(np.int64, st.integers(0, 6), elements=st.integers(0, 10**9)), min_size=1, max_size=5
)


def same(a, b):
    return (
        (a.scheme, a.protocol, a.notes, a.digest) == (b.scheme, b.protocol, b.notes, b.digest)
        and all(np.array_equal(x, y) for x, y in zip(a.train_indices, b.train_indices, strict=True))
        and all(np.array_equal(x, y) for x, y in zip(a.test_indices, b.test_indices, strict=True))
    )


@settings(max_examples=40, deadline=None)
@given(train=parts_lists, test=parts_lists, notes=st.lists(st.text("abc Σα,12", max_size=20), max_size=3))
def test_round_trip_is_exact(train, test, notes):
    test = (test * len(train))[: len(train)]
    partition = make_partition("dirichlet", "matched", train, test, [n.rstrip() for n in notes])
    assert same(partition, partition_from_arrays(partition_to_arrays(partition)))


def test_round_trip_through_a_file(tmp_path):
    partition = make_partition(
        "iid", "official", [np.array([3, 1]), np.array([], int)], [np.array([7])] * 2, ["a"]
    )
    np.savez(tmp_path / "p.npz", **partition_to_arrays(partition))
    with np.load(tmp_path / "p.npz", allow_pickle=False) as stored:
        assert same(partition, partition_from_arrays(stored))


def test_digest_by_hand():
    partition = make_partition(
        "iid", "matched", [np.array([5]), np.array([2, 3])], [np.array([4]), np.array([])], []
    )
    words = [1, 2, 5, 2, 3, 1, 0, 4]
    content = b"fedpcd partition 1;matched;2;" + b"".join(n.to_bytes(8, "little") for n in words)
    assert partition.digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        ("official", [[1, 2]], [[3]]),
        ("matched", [[1, 3]], [[2]]),
        ("matched", [[1], [2]], [[3], []]),
        ("matched", [[1, 2, 3]], [[]]),
    ],
)
def test_digest_tells_partitions_apart(other):
    def digest(protocol, train, test):
        as_arrays = [[np.array(part, dtype=np.int64) for part in parts] for parts in (train, test)]
        return make_partition("x", protocol, *as_arrays, []).digest

    assert digest("matched", [[1, 2]], [[3]]) != digest(*other)


def test_damage_is_found():
    arrays = partition_to_arrays(make_partition("iid", "matched", [np.array([5, 6])], [np.array([4])], []))
    with pytest.raises(
        DataError, match=r"partition: digest must be \w+; found \w+\. The file was changed or damaged"
    ):
        partition_from_arrays(arrays | {"train_indices": np.array([5, 7])})
    with pytest.raises(DataError, match=r"partition: train_sizes must add up to 2; found 3"):
        partition_from_arrays(arrays | {"train_sizes": np.array([3])})
    with pytest.raises(DataError, match=r"partition: must hold .* missing digest"):
        partition_from_arrays({key: value for key, value in arrays.items() if key != "digest"})
