"""Which file of a folder is which class of which split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fedpcd_cli.api import DataError

SPLITS = ("train", "test")


class Layout:
    """Sorts the paths of one source into splits and classes, while they stream by.

    Args:
        root: The folder or archive, for messages.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._places: dict[str, tuple[str, str, str]] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._prefix: str | None = None
        self._ignored: list[str] = []

    def select(self, files: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Yield the files that lie in `train/<class>/` or `test/<class>/`, remembering where each belongs.

        Raises:
            DataError: A file lies deeper or shallower in a split, twice in the source, or under a second folder.
        """
        for path, content in files:
            parts = path.split("/")
            if parts[0] in SPLITS and len(parts) > 1:
                prefix, inside = "", parts
            elif len(parts) > 2 and parts[1] in SPLITS:
                prefix, inside = parts[0], parts[1:]
            else:
                self._ignored.append(path)
                continue
            if self._prefix is None:
                self._prefix = prefix
            if prefix != self._prefix:
                raise DataError(
                    f"{self._root}: must have one train and one test folder; "
                    f"found '{self._split_of(self._prefix)}' and '{self._split_of(prefix)}'."
                )
            if len(inside) != 3:
                raise DataError(f"{self._root / path}: images must lie in {inside[0]}/<class>/; found {path}.")
            place = (inside[0], inside[1], inside[2])
            if place in self._seen:
                raise DataError(f"{self._root / path}: each file must be there once; found it twice.")
            self._seen.add(place)
            self._places[path] = place
            yield path, content

    @staticmethod
    def _split_of(prefix: str) -> str:
        return f"{prefix}/{SPLITS[0]}" if prefix else SPLITS[0]

    def place(self, path: str) -> tuple[str, str, str]:
        """Return split, class and file name of a selected path."""
        return self._places[path]

    def classes(self) -> list[str]:
        """Return the sorted class names.

        Raises:
            DataError: A split is missing, or the two splits have different classes.
        """
        found = {split: {place[1] for place in self._seen if place[0] == split} for split in SPLITS}
        for split in SPLITS:
            if not found[split]:
                raise DataError(
                    f"{self._root}: must hold images in train/<class>/ and test/<class>/; "
                    f"found none in {split}/<class>/."
                )
        for split, other in (SPLITS, SPLITS[::-1]):
            extra = sorted(found[split] - found[other])
            if extra:
                raise DataError(
                    f"{self._root}: train and test must have the same class folders; "
                    f"found {', '.join(extra[:5])} only in {split}."
                )
        return sorted(found["train"])

    def notes(self) -> list[str]:
        """Tell what was left out."""
        if not self._ignored:
            return []
        return [f"{len(self._ignored)} files outside train/ and test/ were ignored (first: {min(self._ignored)})"]
