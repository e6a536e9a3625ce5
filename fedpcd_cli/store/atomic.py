"""Writing files so that a reader sees the old content or the new one, never half of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fedpcd_cli.errors import StoreError


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _umask()


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: can't be written: {error.strerror or error}.",
            hint="Free space or choose another folder with output.root; what was saved before is intact.",
        ) from error


def write_atomically(path: Path, write: Callable[[Path], object], *, durable: bool = True) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk and rename it to `path`.

    Args:
        durable: Flush to disk, so that the file also outlives a power failure, not only a killed process.

    Raises:
        StoreError: The file can't be written.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            if durable:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            temporary.chmod(0o666 & ~_UMASK)
            temporary.replace(path)
            if durable:
                sync_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, where the platform can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
