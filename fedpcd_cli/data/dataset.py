"""The contract of datasets: where samples come from and what a loaded dataset is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedpcd_cli.components import Component


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """All samples of a dataset, in memory once.

    Train samples come first, test samples after them; sample indices everywhere in fedpcd point into this
    concatenation.

    Attributes:
        name: The dataset's name, as in the recipe.
        inputs: uint8 `[n, C, H, W]` for images (value 255 means 1.0), float32 `[n, F]` for features.
        targets: Class of each sample, int64 `[n]`.
        n_train: How many of the samples are the official training set.
        class_names: Name of each class, `[n_classes]`.
        client_ids: The natural owner of each sample, int64 `[n]`, where the data has one.
        fingerprint: SHA-256 (hex) of inputs, targets and owners.
        notes: What a reader of a table must know ("JPEG copies: slightly lossy").
    """

    name: str
    inputs: np.ndarray
    targets: np.ndarray
    n_train: int
    class_names: tuple[str, ...]
    fingerprint: str
    client_ids: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return tuple(self.inputs.shape[1:])

    @property
    def is_image(self) -> bool:
        return self.inputs.dtype == np.uint8


@dataclass(frozen=True, kw_only=True)
class LoadContext:
    """What a dataset source may use while loading.

    Attributes:
        root: Folder or archive named by `data.root`, already made absolute; None if the recipe names none.
        download: Whether the recipe allows fetching files from the network.
        cache_dir: Where decoded data may be cached (files are written atomically).
        data_seed: Seed of generated datasets.
        progress: Called with a sentence whenever a step starts that may take seconds.
    """

    root: Path | None
    download: bool
    cache_dir: Path
    data_seed: int
    progress: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True, kw_only=True)
class DatasetSource(Component):
    """Base of everything that can be named in `data.dataset`. Fields are the recipe's parameters.

    Class attributes:
        summary: One line for listings.
        needs_root: Whether `data.root` must be given.
    """

    kind: ClassVar[str] = "dataset"
    summary: ClassVar[str] = ""
    needs_root: ClassVar[bool] = False

    @abstractmethod
    def load(self, context: LoadContext) -> Dataset:
        """Return the dataset.

        Raises:
            DataError: Files are missing or not what they should be; the message says how to get them.
        """
