"""CIFAR's Python batches, in the official format but small."""

from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest

from fedpcd_cli.errors import DataError
from fedpcd_vision import cifar
from fedpcd_vision.cifar import Cifar10, Cifar100

NAMES10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def batch(n, labels_key, *, n_classes=10, seed=0, protocol=2):
    rng = np.random.default_rng(seed)
    content = {
        "batch_label": "small",
        labels_key: [int(k) for k in rng.integers(0, n_classes, n)],
        "data": rng.integers(0, 256, (n, 3072), dtype=np.uint8),
        "filenames": [f"{i}.png" for i in range(n)],
    }
    return content, pickle.dumps(content, protocol=protocol)


@pytest.fixture(params=[0, 2, 5], ids=lambda p: f"protocol {p}")
def cifar10_root(request, tmp_path):
    folder = tmp_path / "data" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    contents = []
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        content, raw = batch(4, "labels", seed=seed, protocol=request.param)
        contents.append(content)
        (folder / name).write_bytes(raw)
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": NAMES10}, protocol=request.param))
    return tmp_path / "data", contents


def test_cifar10_equals_its_batches(context, cifar10_root):
    root, contents = cifar10_root
    dataset = Cifar10().load(context(root=root))
    expected = np.concatenate([c["data"] for c in contents]).reshape(-1, 3, 32, 32)
    assert np.array_equal(dataset.inputs, expected)
    assert dataset.targets.tolist() == [k for c in contents for k in c["labels"]]
    assert (dataset.n_train, dataset.class_names) == (20, tuple(NAMES10))
    assert dataset.inputs.flags.writeable
    folder_itself = Cifar10().load(context(root=root / "cifar-10-batches-py"))
    assert folder_itself.fingerprint == dataset.fingerprint


def test_cifar10_agrees_with_torchvision(context, cifar10_root, monkeypatch):
    from torchvision import datasets
    from torchvision.datasets import cifar as tv_cifar

    root, _ = cifar10_root
    monkeypatch.setattr(datasets.CIFAR10, "_check_integrity", lambda self: True)
    monkeypatch.setattr(tv_cifar, "check_integrity", lambda *_args: True)
    theirs = datasets.CIFAR10(root=root, train=True)
    ours = Cifar10().load(context(root=root))
    assert np.array_equal(ours.inputs[:20], theirs.data.transpose(0, 3, 1, 2))
    assert ours.targets[:20].tolist() == theirs.targets


def test_the_checksums_are_torchvisions():
    from torchvision import datasets

    for ours, theirs in ((Cifar10, datasets.CIFAR10), (Cifar100, datasets.CIFAR100)):
        assert list(ours.splits["train"].items()) == [tuple(entry) for entry in theirs.train_list]
        assert list(ours.splits["test"].items()) == [tuple(entry) for entry in theirs.test_list]
        assert (ours.folder, ours.archive) == (theirs.base_folder, theirs.filename)
        assert ours.meta == (theirs.meta["filename"], theirs.meta["key"])


def test_other_files_are_noted(context, cifar10_root, monkeypatch):
    root, _ = cifar10_root
    names = ", ".join([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"])
    assert Cifar10().load(context(root=root)).notes == (f"not the official files: the MD5 sum of {names} differs",)
    folder = root / "cifar-10-batches-py"
    sums = {
        split: {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in files}
        for split, files in Cifar10.splits.items()
    }
    monkeypatch.setattr(Cifar10, "splits", sums)
    assert Cifar10().load(context(root=root)).notes == ()


@pytest.fixture
def cifar100_folder(tmp_path):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "train").write_bytes(batch(6, "fine_labels", n_classes=100)[1])
    (folder / "test").write_bytes(batch(2, "fine_labels", n_classes=100, seed=1)[1])
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [f"c{k}" for k in range(100)]}))
    return folder


def test_cifar100_uses_fine_labels(context, cifar100_folder):
    dataset = Cifar100().load(context(root=cifar100_folder.parent))
    assert dataset.targets.tolist()[:6] == batch(6, "fine_labels", n_classes=100)[0]["fine_labels"]
    assert (dataset.n_train, dataset.n_classes) == (6, 100)


def test_missing_files_say_how_to_get_them(context, tmp_path):
    with pytest.raises(DataError) as caught:
        Cifar100().load(context(root=tmp_path))
    text = str(caught.value)
    assert "dataset 'cifar100' needs train, test, meta; not all found in" in text
    assert "Unpack the official cifar-100-python.tar.gz and set data.root" in text
    assert "--set data.download=true" in text
    assert "'image-folder'" in text


class Malicious:
    def __reduce__(self):
        import os

        return os.system, ("echo never",)


@pytest.mark.parametrize("payload", [Malicious(), print, np.random.default_rng(0)])
def test_a_pickle_that_wants_more_than_arrays_is_refused(context, cifar100_folder, payload):
    (cifar100_folder / "test").write_bytes(pickle.dumps({"data": payload}))
    with pytest.raises(DataError) as caught:
        Cifar100().load(context(root=cifar100_folder))
    text = str(caught.value)
    assert f"{cifar100_folder / 'test'}: must hold only arrays and plain values; it asks for " in text
    assert "Do not trust this file" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "test: can't be read as a CIFAR batch"),
        (b"text", "test: can't be read as a CIFAR batch"),
        (pickle.dumps([1, 2]), "test: must hold a dictionary; found list."),
        (pickle.dumps({"fine_labels": [1]}), "test: 'data' must be uint8 [n, 3072]; found NoneType."),
        (pickle.dumps({"data": np.zeros((2, 5))}), "test: 'data' must be uint8 [n, 3072]; found float64 [2, 5]."),
        (
            pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "fine_labels": [1]}),
            "test: 'fine_labels' must be 2 whole numbers; found [1].",
        ),
        (
            pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "fine_labels": [100]}),
            "targets must be between 0 and 99",
        ),
    ],
)
def test_damaged_batches_are_named(context, cifar100_folder, content, message):
    (cifar100_folder / "test").write_bytes(content)
    with pytest.raises(DataError) as caught:
        Cifar100().load(context(root=cifar100_folder))
    assert message in str(caught.value)


def test_missing_class_names_are_named(context, cifar100_folder):
    (cifar100_folder / "meta").write_bytes(pickle.dumps({"names": []}))
    with pytest.raises(
        DataError, match="meta: must hold a list of class names under 'fine_label_names'; found None"
    ):
        Cifar100().load(context(root=cifar100_folder))


def test_download_happens_only_on_request(context, cifar100_folder, tmp_path, monkeypatch):
    asked = []

    def fake(name, root):
        asked.append((name, root))
        cifar100_folder.rename(root / "cifar-100-python")

    monkeypatch.setattr(cifar, "download", fake)
    root = tmp_path / "new"
    root.mkdir()
    assert Cifar100().load(context(root=root, download=True)).n_train == 6
    assert asked == [("CIFAR100", root)]
