"""Fashion-MNIST's idx files: plain, compressed, in every layout, and damaged."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from fedpcd_cli.errors import DataError
from fedpcd_vision import download, fashion_mnist
from fedpcd_vision.fashion_mnist import DEBIAN, FILES, FashionMnist, read_idx

IMAGES = {"train": np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251, "test": np.full((2, 28, 28), 7)}
LABELS = {"train": np.array([9, 0, 4]), "test": np.array([1, 1])}


def idx(values):
    values = np.asarray(values, dtype=np.uint8)
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes()


def write(folder, *, compressed=False, **replaced):
    folder.mkdir(parents=True, exist_ok=True)
    for (split, kind), stem in FILES.items():
        content = replaced.get(f"{split}_{kind}", idx((IMAGES if kind == "images" else LABELS)[split]))
        name, content = (f"{stem}.gz", gzip.compress(content)) if compressed else (stem, content)
        (folder / name).write_bytes(content)


@pytest.fixture(autouse=True)
def no_debian_package(monkeypatch, tmp_path):
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("inside", ["", "FashionMNIST/raw", "raw"])
def test_files_are_found_below_root(context, tmp_path, compressed, inside):
    write(tmp_path / "data" / inside, compressed=compressed)
    dataset = FashionMnist().load(context(root=tmp_path / "data"))
    assert dataset.inputs.shape == (5, 1, 28, 28)
    assert np.array_equal(dataset.inputs[:3, 0], IMAGES["train"])
    assert dataset.targets.tolist() == [9, 0, 4, 1, 1]
    assert (dataset.n_train, dataset.n_classes) == (3, 10)
    assert dataset.class_names[9] == "Ankle boot"
    assert dataset.inputs.flags.writeable


@pytest.mark.parametrize("folder", ["debian", "cache/datasets/FashionMNIST/raw"])
def test_files_are_found_without_root(context, tmp_path, folder):
    write(tmp_path / folder)
    assert FashionMnist().load(context()).n_train == 3


def test_other_files_are_noted(context, tmp_path):
    write(tmp_path / "data")
    assert FashionMnist().load(context(root=tmp_path / "data")).notes == (
        "these are not the official Fashion-MNIST files",
    )


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_official_files(context):
    dataset = FashionMnist().load(context(root=DEBIAN))
    assert dataset.inputs.shape == (70_000, 1, 28, 28)
    assert np.bincount(dataset.targets).tolist() == [7000] * 10
    train = dataset.inputs[: dataset.n_train]
    assert (train.mean() / 255, train.std() / 255) == pytest.approx((0.2860, 0.3530), abs=5e-5)
    assert dataset.notes == ()


def test_missing_files_say_how_to_get_them(context, tmp_path):
    write(tmp_path / "data")
    (tmp_path / "data" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError) as caught:
        FashionMnist().load(context(root=tmp_path / "data"))
    text = str(caught.value)
    assert "dataset 'fashion-mnist' needs train-images-idx3-ubyte, train-labels-idx1-ubyte" in text
    assert f"not all found in {tmp_path / 'data'} or {tmp_path / 'data' / 'FashionMNIST' / 'raw'}" in text
    assert "apt install dataset-fashion-mnist" in text
    assert "--set data.download=true" in text


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (
            {"train_labels": b"\x00\x00\x09\x01"},
            "must be an idx file of unsigned bytes; found first bytes 00 00 09 01",
        ),
        ({"train_labels": b""}, "must be an idx file of unsigned bytes; found first bytes ."),
        ({"test_images": idx(IMAGES["test"])[:-5]}, "must hold 1568 values for [2, 28, 28]; found 1563."),
        (
            {"test_labels": idx([1])},
            "test files must hold images [n, H, W] and labels [n]; found [2, 28, 28] and [1].",
        ),
        ({"train_labels": idx([1, 2, 30])}, "targets must be between 0 and 9; found 1 to 30."),
        ({"test_images": idx(np.zeros((2, 5, 5)))}, "must have one shape; found [28, 28] and [5, 5]"),
    ],
)
def test_damaged_files_are_named(context, tmp_path, replaced, message):
    write(tmp_path / "data", **replaced)
    with pytest.raises(DataError) as caught:
        FashionMnist().load(context(root=tmp_path / "data"))
    assert message in str(caught.value)


def test_damaged_compression_is_named(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx([1, 2, 3]))[:-9])
    with pytest.raises(DataError, match=r"x\.gz: can't be read"):
        read_idx(path)


def test_download_happens_only_on_request(context, tmp_path, monkeypatch):
    asked = []

    def fake(name, root):
        asked.append(name)
        write(root / "FashionMNIST" / "raw")

    monkeypatch.setattr(fashion_mnist, "download", fake)
    dataset = FashionMnist().load(context(download=True, root=tmp_path / "new"))
    assert (asked, dataset.n_train) == (["FashionMNIST"], 3)
    FashionMnist().load(context(download=True, root=tmp_path / "new"))
    assert asked == ["FashionMNIST"]


def test_failed_download_is_explained(tmp_path, monkeypatch):
    from torchvision import datasets

    def fail(**_settings):
        raise OSError("no route to host")

    monkeypatch.setattr(datasets, "FashionMNIST", fail)
    with pytest.raises(DataError) as caught:
        download.download("FashionMNIST", tmp_path)
    assert str(caught.value) == (
        f"data.download: fetching FashionMNIST to {tmp_path} failed: no route to host.\n"
        "  Check the network, or copy the files from another machine and set data.root."
    )
