"""Reads run directories, finished or in progress, and says what is wrong with them."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedpcd_cli.errors import NotARunError, StoreError
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.store.jsonl import read_jsonl
from fedpcd_cli.store.layout import RunPaths
from fedpcd_cli.store.status import RunStatus, read_status

_MARKS = frozenset({"status.json", "environment.json", "rounds.jsonl", "evaluations.jsonl"})
# The parser in C, where PyYAML was built with it, is several times faster.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class RunReader:
    """One run directory. Nothing is read before it is asked for.

    Args:
        root: The run directory.
    """

    root: Path

    @property
    def paths(self) -> RunPaths:
        return RunPaths(self.root)

    @cached_property
    def status(self) -> RunStatus:
        """How far the run has come.

        Raises:
            NotARunError: The folder is no run.
            StoreError: It is damaged, or of a newer format.
        """
        if not self.root.is_dir():
            raise NotARunError(f"{self.root} is not a run: {missing(self.root)}.")
        return read_status(self.paths.status)

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe, as plain data."""
        try:
            document = yaml.load(self.paths.recipe.read_text(encoding="utf-8"), _SafeLoader)
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise StoreError(f"{self.paths.recipe}: can't be read ({_one_line(error)}).") from None
        if not isinstance(document, dict):
            raise StoreError(f"{self.paths.recipe}: damaged (not a mapping).")
        return document

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Versions, device, threads, plug-ins, and what the data is."""
        try:
            content: dict[str, Any] = json.loads(self.paths.environment.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.paths.environment}: can't be read ({_one_line(error)}).") from None
        return content

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """All whole round records, in order."""
        return read_jsonl(self.paths.rounds)[0]

    @cached_property
    def timings(self) -> list[dict[str, Any]]:
        """Seconds and memory of each round."""
        return read_jsonl(self.paths.timings)[0]

    @cached_property
    def evaluations(self) -> list[dict[str, Any]]:
        """All whole evaluations, in order."""
        return read_jsonl(self.paths.evaluations)[0]

    def certificate(self, round_index: int) -> Certificate:
        """Return the certificate of one round.

        Raises:
            StoreError: There is none, or it is damaged.
        """
        return Certificate.from_arrays(read_arrays(self.paths.certificate(round_index)))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an `.npz` file; nothing in it can run code.

    Raises:
        StoreError: The file is missing or damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file.") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path}: damaged ({_one_line(error)}).") from None


def find_runs(paths: list[Path]) -> list[Path]:
    """Return every run below the given folders, sorted within each; a run itself stands for itself.

    A folder that holds a run's records but no status is returned too, so that reading it says what is missing.

    Raises:
        NotARunError: A path is no folder, or holds no run.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise NotARunError(f"{path} is not a run: {missing(path)}.")
        below = sorted(_runs_below(path))
        if not below:
            raise NotARunError(
                f"{path} is not a run: it has no status.json, and none is below it.",
                hint="Name a folder that 'fedpcd train' wrote, such as runs/quick-start/fedpcd-s1-….",
            )
        found += below
    return list(dict.fromkeys(found))


def missing(path: Path) -> str:
    """Return why a path is no folder."""
    return "it is a file" if path.is_file() else "no such folder"


def _runs_below(path: Path) -> Iterator[Path]:
    seen: set[str] = set()
    for folder, names, files in os.walk(path, followlinks=True):
        if not _MARKS.isdisjoint(files):
            names.clear()  # a run's own folders hold none, but a file for every round
            yield Path(folder)
        # Links may lead in a circle.
        real = os.path.realpath(folder)
        if real in seen:
            names.clear()
        seen.add(real)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # the path is named already
    return " ".join(str(error).split())
