"""Checkpoints hold what they were given, and a damaged one is never believed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fedpcd_cli.errors import StoreError
from fedpcd_cli.store.atomic import file_digest
from fedpcd_cli.store.checkpoint import checkpoint_rounds, load_checkpoint, save_checkpoint
from fedpcd_cli.store.tree import flatten_tree, unflatten_tree

CPU = torch.device("cpu")
TREE = {
    "round_index": 3,
    "params": torch.arange(6.0).reshape(2, 3).t(),
    "nested": {7: [1, 2.5, None, True, "x"], "empty": {}, "pair": (1, torch.zeros(0))},
    "array": np.array([[1, 2]], dtype=np.int64),
    "scalar": np.float64(0.1),
    "zero_d": np.array(2.0),
}


def assert_same(a, b):
    assert type(a) is type(b) or isinstance(a, np.generic)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
        assert a.shape == b.shape
    else:
        assert a == b


def test_tree_round_trip_through_json():
    structure, tensors = flatten_tree(TREE)
    assert_same(TREE, unflatten_tree(json.loads(json.dumps(structure)), tensors, CPU))


@pytest.mark.parametrize("bad", [{"f": print}, {("a",): 1}, {True: 1}, {"s": {1, 2}}])
def test_only_plain_data_is_saved(bad):
    with pytest.raises(StoreError, match=r"state"):
        flatten_tree(bad)


def test_newest_checkpoint_wins_and_two_are_kept(tmp_path):
    for t in (1, 5, 9):
        save_checkpoint(tmp_path, t, {**TREE, "round_index": t})
    assert checkpoint_rounds(tmp_path) == [5, 9]
    state, complaints = load_checkpoint(tmp_path, CPU)
    assert complaints == []
    assert_same({**TREE, "round_index": 9}, state)


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(tmp_path, damage):
    for t in (5, 9):
        save_checkpoint(tmp_path, t, {**TREE, "round_index": t})
    path = tmp_path / "round-000009.safetensors"
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
    path.write_bytes({"flip": bytes(content), "truncate": bytes(content[:-7]), "empty": b""}[damage])
    state, complaints = load_checkpoint(tmp_path, CPU)
    assert state is not None
    assert state["round_index"] == 5
    assert complaints == [f"{path} is damaged (checksum differs)"]


def test_a_checkpoint_without_checksum_was_never_finished(tmp_path):
    save_checkpoint(tmp_path, 5, TREE)
    (tmp_path / "round-000005.sha256").unlink()
    assert load_checkpoint(tmp_path, CPU) == (None, [])


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "round-000001.safetensors"
    save_file({}, path, metadata={"format_version": "99", "structure": "{}"})
    path.with_suffix(".sha256").write_text(file_digest(path))
    with pytest.raises(StoreError, match="format 99 is newer than this fedpcd reads"):
        load_checkpoint(tmp_path, CPU)
