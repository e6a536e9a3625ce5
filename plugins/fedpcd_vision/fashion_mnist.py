"""Fashion-MNIST from its official idx files."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedpcd_cli.api import DataError, Dataset, DatasetSource, LoadContext, assemble_dataset, join_splits
from fedpcd_vision.download import download

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
FILES = {
    ("train", "images"): "train-images-idx3-ubyte",
    ("train", "labels"): "train-labels-idx1-ubyte",
    ("test", "images"): "t10k-images-idx3-ubyte",
    ("test", "labels"): "t10k-labels-idx1-ubyte",
}
CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
OFFICIAL_FINGERPRINT = "91b0153b11019b769bd68e06e959c4fe7b487e2fb9910f783f3004fbdad01e8c"


@dataclass(frozen=True, kw_only=True)
class FashionMnist(DatasetSource):
    """70,000 gray images of clothes, 28x28, 10 classes (Xiao, Rasul, Vollgraf, 2017)."""

    name: ClassVar[str] = "fashion-mnist"
    summary: ClassVar[str] = "70,000 gray 28x28 images of clothes; Debian's dataset-fashion-mnist is found"

    def load(self, context: LoadContext) -> Dataset:
        """Return uint8 `[70000, 1, 28, 28]`.

        The four idx files, plain or `.gz`, are looked for in `data.root`, in torchvision's layout below it, and,
        if no root is set, in the folder of Debian's package.

        Raises:
            DataError: The files are missing, damaged, or no idx files.
        """
        folder = self._folder(context)
        context.progress(f"loading Fashion-MNIST from {folder}")
        arrays = {key: read_idx(_existing(folder, stem)) for key, stem in FILES.items()}  # type: ignore[arg-type]
        for split in ("train", "test"):
            images, labels = arrays[split, "images"], arrays[split, "labels"]
            if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
                raise DataError(
                    f"{folder}: {split} files must hold images [n, H, W] and labels [n]; "
                    f"found {list(images.shape)} and {list(labels.shape)}."
                )
        train, test = arrays["train", "images"], arrays["test", "images"]
        dataset = assemble_dataset(
            name=self.name,
            inputs=join_splits(str(folder), train, test)[:, None],
            targets=np.concatenate([arrays["train", "labels"], arrays["test", "labels"]]),
            n_train=len(train),
            class_names=CLASSES,
        )
        if dataset.fingerprint != OFFICIAL_FINGERPRINT:
            return replace(dataset, notes=("these are not the official Fashion-MNIST files",))
        return dataset

    def _folder(self, context: LoadContext) -> Path:
        if context.root is not None:
            candidates = [context.root, context.root / "FashionMNIST" / "raw", context.root / "raw"]
        else:
            candidates = [DEBIAN, context.cache_dir / "datasets" / "FashionMNIST" / "raw"]
        for folder in candidates:
            if all(_existing(folder, stem) for stem in FILES.values()):
                return folder
        if context.download:
            root = context.root or context.cache_dir / "datasets"
            context.progress(f"downloading Fashion-MNIST to {root}")
            download("FashionMNIST", root)
            return root / "FashionMNIST" / "raw"
        raise DataError(
            f"dataset 'fashion-mnist' needs {', '.join(FILES.values())} (or .gz); "
            f"not all found in {' or '.join(str(folder) for folder in candidates)}.",
            hint="Set data.root to their folder, or run 'apt install dataset-fashion-mnist' (Debian, Ubuntu), "
            "or allow the download with --set data.download=true.",
        )


def _existing(folder: Path, stem: str) -> Path | None:
    for path in (folder / stem, folder / f"{stem}.gz"):
        if path.is_file():
            return path
    return None


def read_idx(path: Path) -> np.ndarray:
    """Return the uint8 array of one idx file (big-endian: 0, 0, type 8, dimensions, sizes, bytes).

    Raises:
        DataError: The file is damaged or of another kind.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: can't be read: {error}.") from error
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or len(raw) < 4 + 4 * raw[3]:
        raise DataError(f"{path}: must be an idx file of unsigned bytes; found first bytes {raw[:4].hex(' ')}.")
    n_dims = raw[3]
    shape = tuple(int(size) for size in np.frombuffer(raw, dtype=">u4", count=n_dims, offset=4))
    values = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * n_dims)
    if len(values) != math.prod(shape):
        raise DataError(f"{path}: must hold {math.prod(shape)} values for {list(shape)}; found {len(values)}.")
    return values.reshape(shape)
