"""A folder or archive of image files, one folder per class."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from fedpcd_cli.api import (
    DataError,
    Dataset,
    DatasetSource,
    LoadContext,
    Param,
    assemble_dataset,
    cached_arrays,
)
from fedpcd_vision.decode import Image, Settings, decode_all, decoder_version
from fedpcd_vision.folder_layout import SPLITS, Layout
from fedpcd_vision.sources import content_digest, read_files

_FORMAT = 1  # of the cached arrays; part of the file's name


@dataclass(frozen=True, kw_only=True)
class ImageFolder(DatasetSource):
    """Images in `train/<class>/*` and `test/<class>/*`, a folder or an archive, that Pillow can read.

    One folder around both is skipped. Classes are numbered by name; samples are sorted by class and file name.
    Orientation tags are not applied, transparency is dropped. Decoded once and cached.
    """

    name: ClassVar[str] = "image-folder"
    summary: ClassVar[str] = "train/<class>/* and test/<class>/* images, a folder or a tar or zip archive"
    needs_root: ClassVar[bool] = True

    image_size: Annotated[
        int | None,
        Param("Resize every image to this height and width (bilinear); null keeps them.", ge=1, le=4096),
    ] = None
    grayscale: Annotated[
        bool | None, Param("true: one channel, false: three channels, null: as the files have them.")
    ] = None

    def load(self, context: LoadContext) -> Dataset:
        """Return uint8 `[n, C, H, W]`.

        Raises:
            DataError: No such source, an unsafe or damaged archive, a file that is no image, other classes in
                test than in train, or images of different shapes.
        """
        root = context.root
        if root is None:
            raise DataError("data.root must be a folder or an archive for dataset 'image-folder'; found null.")
        context.progress(f"checking {root.name}")
        settings = f"{_FORMAT};{decoder_version()};{self.image_size};{self.grayscale}"
        key = hashlib.sha256(f"{content_digest(root)};{settings}".encode()).hexdigest()[:32]
        arrays = cached_arrays(
            context.cache_dir / "image-folder" / f"{key}.npz",
            lambda: self._decode(root, context.progress),
            progress=context.progress,
        )
        return assemble_dataset(
            name=self.name,
            inputs=arrays["inputs"],
            targets=arrays["targets"],
            n_train=int(arrays["n_train"]),
            class_names=[str(name) for name in arrays["class_names"]],
            notes=[str(note) for note in arrays["notes"]],
        )

    def _decode(self, root: Path, progress: Callable[[str], None]) -> dict[str, np.ndarray]:
        progress(f"decoding the images of {root.name} (once: they are cached)")
        layout = Layout(root)
        settings = Settings(image_size=self.image_size, grayscale=self.grayscale)
        decoded = decode_all(layout.select(read_files(root)), settings, where=root, progress=progress)
        classes = layout.classes()
        images = sorted(decoded, key=lambda image: _order(layout.place(image.path)))
        _check_shapes(images, root)
        places = [layout.place(image.path) for image in images]
        return {
            "inputs": np.stack([image.pixels for image in images]),
            "targets": np.array([classes.index(place[1]) for place in places], dtype=np.int64),
            "n_train": np.array(sum(place[0] == "train" for place in places)),
            "class_names": np.array(classes, dtype=np.str_),
            "notes": np.array([*self._notes(images), *layout.notes()], dtype=np.str_),
        }

    def _notes(self, images: Sequence[Image]) -> list[str]:
        notes = []
        if any(image.format in ("JPEG", "MPO") for image in images):
            notes.append("decoded from JPEG (lossy): figures are not comparable with those on the original files")
        if self.image_size is not None and any(image.resized for image in images):
            notes.append(f"images resized to {self.image_size} x {self.image_size}")
        return notes


def _order(place: tuple[str, str, str]) -> tuple[int, str, str]:
    split, label, name = place
    return SPLITS.index(split), label, name


def _check_shapes(images: Sequence[Image], root: Path) -> None:
    usual, _ = Counter(image.pixels.shape for image in images).most_common(1)[0]
    for image in images:
        shape = image.pixels.shape
        if shape != usual:
            if shape[1:] != usual[1:]:
                remedy = "Set image_size to resize all of them to one height and width."
            else:
                remedy = "Set grayscale to true (one channel) or false (three channels)."
            raise DataError(
                f"{root / image.path}: all images must share one shape, [C, H, W] = {list(usual)} in most files; "
                f"found {list(shape)}.",
                hint=remedy,
            )
