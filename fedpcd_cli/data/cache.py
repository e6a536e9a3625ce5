"""Where decoded data is kept between runs, and how it is kept safe."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fedpcd_cli.data.assemble import array_digest
from fedpcd_cli.errors import DataError

CACHE_VARIABLE = "FEDPCD_CACHE_DIR"
_DIGEST = "sha256"


def cache_dir() -> Path:
    """Return the folder of cached data: `$FEDPCD_CACHE_DIR`, or the platform's cache folder of the user."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("fedpcd"))


def cached_arrays(
    path: Path,
    build: Callable[[], Mapping[str, np.ndarray]],
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, np.ndarray]:
    """Return the arrays in a cache file, building and storing them if it is missing or damaged.

    The name of the file must already say everything that the content depends on. A cache that can't be written
    (full disk, read-only home) costs time, never the result: `progress` is told and the arrays are returned.

    Args:
        path: The file, ending in `.npz`.
        build: Called without arguments when the file can't be used.
        progress: Told why a file was not used or not written.
    """
    if path.exists():
        arrays = _read(path)
        if arrays is not None:
            return arrays
        progress(f"cache file {path} is damaged; building it again")
    arrays = dict(build())
    try:
        _write(path, arrays)
    except OSError as error:
        progress(f"can't write the cache file {path} ({error}); going on without")
    return arrays


def _read(path: Path) -> dict[str, np.ndarray] | None:
    try:
        with path.open("rb") as file:  # numpy leaves a damaged file open if it opened it itself
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return None
            arrays = {key: stored[key] for key in stored.files}
        digest = str(arrays.pop(_DIGEST))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None
    return arrays if digest == _digest(arrays) else None


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **{_DIGEST: np.array(_digest(arrays))}, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    names = sorted(arrays)
    return array_digest([np.array(names), *(arrays[name] for name in names)])


def require_file(path: Path | None, dataset: str, what: str) -> Path:
    """Return the path if it is a file.

    Raises:
        DataError: It is missing or a folder.
    """
    if path is None or not path.is_file():
        raise DataError(f"data.root must be {what} for dataset '{dataset}'; found {path}.")
    return path
