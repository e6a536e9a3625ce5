"""One process per run directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fedpcd_cli.errors import UsageError


class FolderLock:
    """Holds a folder against other processes until it is released or the process ends, however it ends.

    The lock lies on the folder itself, so nothing is left behind. Where the platform or the file system has no
    such locks, nothing is held.

    Args:
        folder: An existing folder.

    Raises:
        UsageError: Another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        try:
            import fcntl
        except ImportError:  # Windows
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise UsageError(
                f"{folder} is being run by another process.", hint="Wait for it, or stop it first."
            ) from None
        except OSError:  # some network file systems
            os.close(descriptor)
            return
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def empty_folder(folder: Path) -> None:
    """Remove everything in a folder, but not the folder: a lock on it stays one."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
