"""Cached arrays survive damage, interruption and a disk that can't be written."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fedpcd_cli.data.cache import cache_dir, cached_arrays


@pytest.fixture
def counting():
    """Return a builder of arrays that counts its calls."""

    def build():
        build.calls += 1
        return {"a": np.arange(5), "names": np.array(["x", "yy"])}

    build.calls = 0
    return build


def test_environment_variable_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDPCD_CACHE_DIR", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("FEDPCD_CACHE_DIR")
    assert cache_dir().name == "fedpcd"


def test_second_call_reads(tmp_path, counting):
    path = tmp_path / "deep" / "a.npz"
    first, second = cached_arrays(path, counting), cached_arrays(path, counting)
    assert counting.calls == 1
    assert second["a"].tolist() == first["a"].tolist() == [0, 1, 2, 3, 4]
    assert second["names"].tolist() == ["x", "yy"]
    assert os.listdir(path.parent) == ["a.npz"]


def flip_byte(path):
    content = bytearray(path.read_bytes())
    place = content.index(np.arange(5).tobytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def exchange(path):
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["a"] = arrays["a"][::-1]
    np.savez(path, **arrays)


def save_one_array(path):
    with path.open("wb") as file:
        np.save(file, np.arange(5))


@pytest.mark.parametrize(
    "damage",
    [
        flip_byte,
        exchange,
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("not an archive"),
        save_one_array,
        lambda path: np.savez(path, a=np.arange(5)),
    ],
    ids=["flipped byte", "other array, right CRC", "cut", "empty", "text", "one array", "no checksum"],
)
def test_damage_is_found_and_repaired(tmp_path, counting, damage):
    path = tmp_path / "a.npz"
    cached_arrays(path, counting)
    damage(path)
    said = []
    arrays = cached_arrays(path, counting, progress=said.append)
    assert arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert counting.calls == 2
    assert said == [f"cache file {path} is damaged; building it again"]
    cached_arrays(path, counting)
    assert counting.calls == 2


def test_unwritable_cache_costs_only_time(tmp_path, counting):
    (tmp_path / "file").write_text("")
    said = []
    arrays = cached_arrays(tmp_path / "file" / "a.npz", counting, progress=said.append)
    assert arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert "can't write the cache file" in said[0]


def test_failed_build_leaves_nothing(tmp_path):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached_arrays(tmp_path / "a.npz", fail)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_write_leaves_nothing(tmp_path, counting, monkeypatch):
    def interrupt(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cached_arrays(tmp_path / "a.npz", counting)
    assert list(tmp_path.iterdir()) == []
