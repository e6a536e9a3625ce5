"""CIFAR-10 and CIFAR-100 from their official Python batches."""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedpcd_cli.api import DataError, Dataset, DatasetSource, LoadContext, assemble_dataset
from fedpcd_vision.download import download
from fedpcd_vision.pickles import ForbiddenPickleError, load_plain


@dataclass(frozen=True, kw_only=True)
class _Cifar(DatasetSource):
    """What both have in common: files of `{"data": [n, 3072], "labels" | "fine_labels": [n]}`.

    Class attributes:
        folder: The folder in the official archive.
        archive: The official archive.
        torchvision_class: Who downloads it.
        splits: Files of each split with the MD5 sums that the authors' archive has.
        meta: File and key of the class names.
        labels: Key of the labels.
    """

    folder: ClassVar[str]
    archive: ClassVar[str]
    torchvision_class: ClassVar[str]
    splits: ClassVar[dict[str, dict[str, str]]]
    meta: ClassVar[tuple[str, str]]
    labels: ClassVar[str]

    def load(self, context: LoadContext) -> Dataset:
        """Return uint8 `[60000, 3, 32, 32]`.

        Raises:
            DataError: The files are missing, damaged, or ask for more than arrays.
        """
        folder = self._folder(context)
        context.progress(f"loading {self.name} from {folder}")
        batches, altered, n_train = [], [], 0
        for split, files in self.splits.items():
            for name, md5 in files.items():
                content, matches = _read(folder / name, md5)
                batches.append(_batch(folder / name, content, self.labels))
                n_train += len(batches[-1][1]) if split == "train" else 0
                if not matches:
                    altered.append(name)
        file, key = self.meta
        names = _read(folder / file, "")[0].get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(
                f"{folder / file}: must hold a list of class names under '{key}'; found {names!r:.60}."
            )
        notes = (f"not the official files: the MD5 sum of {', '.join(altered)} differs",) if altered else ()
        return assemble_dataset(
            name=self.name,
            inputs=np.concatenate([images for images, _ in batches]),
            targets=np.concatenate([labels for _, labels in batches]),
            n_train=n_train,
            class_names=names,
            notes=notes,
        )

    def _files(self) -> list[str]:
        return [*(name for files in self.splits.values() for name in files), self.meta[0]]

    def _folder(self, context: LoadContext) -> Path:
        root = context.root or context.cache_dir / "datasets"
        candidates = [root / self.folder, root]
        for folder in candidates:
            if all((folder / name).is_file() for name in self._files()):
                return folder
        if context.download:
            context.progress(f"downloading {self.name} to {root}")
            download(self.torchvision_class, root)
            return root / self.folder
        raise DataError(
            f"dataset '{self.name}' needs {', '.join(self._files())}; not all found in "
            f"{' or '.join(str(folder) for folder in candidates)}.",
            hint=f"Unpack the official {self.archive} and set data.root to the folder that holds {self.folder}, "
            "or allow the download with --set data.download=true. For a copy as image files use 'image-folder'.",
        )


def _read(path: Path, md5: str) -> tuple[dict[str, Any], bool]:
    """Return a batch file's dictionary, and whether the file has that MD5 sum."""
    try:
        raw = path.read_bytes()
        content = load_plain(io.BytesIO(raw))
    except ForbiddenPickleError as error:
        raise DataError(
            f"{path}: must hold only arrays and plain values; {error}.",
            hint="Do not trust this file: get the official archive.",
        ) from error
    except (OSError, pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: can't be read as a CIFAR batch: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: must hold a dictionary; found {type(content).__name__}.")
    return content, hashlib.md5(raw, usedforsecurity=False).hexdigest() == md5


def _batch(path: Path, content: dict[str, Any], labels: str) -> tuple[np.ndarray, np.ndarray]:
    data, targets = content.get("data"), content.get(labels)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        shape = f"{data.dtype} {list(data.shape)}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DataError(f"{path}: 'data' must be uint8 [n, 3072]; found {shape}.")
    values = np.asarray(targets if targets is not None else [])
    if values.shape != (len(data),) or values.dtype.kind not in "iu":
        raise DataError(f"{path}: '{labels}' must be {len(data)} whole numbers; found {list(values.shape)}.")
    return data.reshape(-1, 3, 32, 32), values.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Cifar10(_Cifar):
    """60,000 color photographs, 32x32, 10 classes (Krizhevsky, 2009)."""

    name: ClassVar[str] = "cifar10"
    summary: ClassVar[str] = "60,000 color 32x32 photographs, 10 classes, from the official Python batches"
    folder: ClassVar[str] = "cifar-10-batches-py"
    archive: ClassVar[str] = "cifar-10-python.tar.gz"
    torchvision_class: ClassVar[str] = "CIFAR10"
    splits: ClassVar[dict[str, dict[str, str]]] = {
        "train": {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        "test": {"test_batch": "40351d587109b95175f43aff81a1287e"},
    }
    meta: ClassVar[tuple[str, str]] = ("batches.meta", "label_names")
    labels: ClassVar[str] = "labels"


@dataclass(frozen=True, kw_only=True)
class Cifar100(_Cifar):
    """60,000 color photographs, 32x32, 100 fine classes (Krizhevsky, 2009)."""

    name: ClassVar[str] = "cifar100"
    summary: ClassVar[str] = "60,000 color 32x32 photographs, 100 classes, from the official Python batches"
    folder: ClassVar[str] = "cifar-100-python"
    archive: ClassVar[str] = "cifar-100-python.tar.gz"
    torchvision_class: ClassVar[str] = "CIFAR100"
    splits: ClassVar[dict[str, dict[str, str]]] = {
        "train": {"train": "16019d7e3df5f24257cddd939b257f8d"},
        "test": {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    }
    meta: ClassVar[tuple[str, str]] = ("meta", "fine_label_names")
    labels: ClassVar[str] = "fine_labels"
