"""Image files of a folder or an archive, one after the other, never written to disk."""

from __future__ import annotations

import hashlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fedpcd_cli.api import DataError

_JUNK = {"__MACOSX", "Thumbs.db", "desktop.ini"}
_MAX_DEPTH = 4  # a folder around both, split, class, and one more that is then refused by name


def read_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield relative path (with `/`) and content of every file, in the source's own order.

    Args:
        root: A folder, or a `.tar`, `.tar.gz`, `.tar.bz2`, `.tar.xz` or `.zip` archive, which is read once.

    Raises:
        DataError: It is missing, damaged, or an archive with links, devices or paths that leave it.
    """
    if root.is_dir():
        yield from _read_folder(root)
    elif not root.is_file():
        raise DataError(f"data.root must be a folder or an archive for dataset 'image-folder'; {root} is missing.")
    elif zipfile.is_zipfile(root):
        yield from _read_zip(root)
    elif tarfile.is_tarfile(root):
        yield from _read_tar(root)
    else:
        raise DataError(f"{root}: must be a folder or a tar (.gz, .bz2, .xz) or zip archive; found another file.")


def content_digest(root: Path) -> str:
    """Return the SHA-256 (hex) of an archive's bytes, or of a folder's paths and contents.

    Raises:
        DataError: As :func:`read_files`.
    """
    digest = hashlib.sha256()
    if root.is_file():
        try:
            with root.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{root}: can't be read: {error}.") from error
    for path, content in read_files(root):
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _read_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: can't be read: {error}.") from error

    for folder, folders, files in os.walk(root, followlinks=True, onerror=refuse):
        deeper = len(Path(folder).relative_to(root).parts) < _MAX_DEPTH  # ends link cycles, too
        folders[:] = sorted(name for name in folders if not _is_junk(name)) if deeper else []
        for name in sorted(files):
            if _is_junk(name):
                continue
            path = Path(folder, name)
            try:
                yield path.relative_to(root).as_posix(), path.read_bytes()
            except OSError as error:
                raise DataError(f"{path}: can't be read: {error}.") from error


def _read_tar(root: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(root, mode="r|*") as archive:
            for member in archive:
                kind = "a link" if member.issym() or member.islnk() else "a device or other special file"
                path = _safe(root, member.name, None if member.isfile() or member.isdir() else kind)
                if path is None or not member.isfile():
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    yield path, file.read()
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{root}: the archive is damaged: {error}.") from error


def _read_zip(root: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(root) as archive:
            for member in archive.infolist():
                mode = stat.S_IFMT(member.external_attr >> 16)
                kind = "a link" if mode == stat.S_IFLNK else "a device or other special file"
                path = _safe(root, member.filename, None if mode in (0, stat.S_IFREG, stat.S_IFDIR) else kind)
                if path is None or member.is_dir():
                    continue
                yield path, archive.read(member)
    except RuntimeError as error:  # zipfile's way to say "encrypted"
        raise DataError(f"{root}: the archive can't be read: {error}.") from error
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, zlib.error) as error:
        raise DataError(f"{root}: the archive is damaged: {error}.") from error


def _safe(root: Path, name: str, forbidden: str | None) -> str | None:
    """Return a member's clean path, or None for files that operating systems leave behind."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or (path.parts and ":" in path.parts[0]):
        raise DataError(f"{root}: paths must stay inside the archive; found '{name}'.", hint=_REPACK)
    if forbidden is not None:
        raise DataError(f"{root}: must hold only files and folders; '{name}' is {forbidden}.", hint=_REPACK)
    return None if any(_is_junk(part) for part in path.parts) else path.as_posix()


_REPACK = "Pack the folder again without it, or unpack it yourself and set data.root to the folder."


def _is_junk(name: str) -> bool:
    return name in _JUNK or (name.startswith(".") and name != ".")
