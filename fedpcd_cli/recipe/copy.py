"""Copies of recipes that still find what they extend."""

from __future__ import annotations

import os
from pathlib import Path

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.recipe.layers import read_layers
from fedpcd_cli.recipe.library import SUFFIXES
from fedpcd_cli.recipe.nodes import Problems


def copy_recipe(source: Path, destination: Path, *, force: bool = False) -> list[Path]:
    """Copy a recipe and the files it extends by path; return the copies, the recipe first.

    A file that is there already with the same content is left alone; nothing is written if any other is in the
    way.

    Args:
        source: The recipe.
        destination: A folder (made if missing), or a file name ending in `.yaml` or `.yml`.
        force: Overwrite.

    Raises:
        RecipeError: The recipe or one that it extends can't be read.
        UsageError: A file is in the way, or an extended file lies where no copy of it would be found.
        StoreError: A file can't be written.
    """
    problems = Problems()
    layers, _ = read_layers(source, problems)
    problems.raise_if_any()
    is_file = destination.suffix in SUFFIXES and not destination.is_dir()
    target = destination if is_file else destination / source.name
    copies = {target: source.read_bytes()}
    place = target
    for upper, lower in zip(layers[::-1], layers[-2::-1], strict=False):
        extends = upper.extends or ""
        if os.path.realpath(upper.path.parent / extends) != os.path.realpath(lower.path):
            break  # named as a shipped recipe: found from anywhere, and so are those below it
        if os.path.isabs(os.path.expanduser(extends)):
            break
        place = place.parent / extends
        if copies.setdefault(place, lower.path.read_bytes()) != lower.path.read_bytes():
            raise UsageError(
                f"{place}: can't be both the copy of {source.name} and of '{extends}', which it extends.",
                hint="Give the copy another name.",
            )
    in_the_way = [path for path, content in copies.items() if os.path.lexists(path) and not _holds(path, content)]
    if in_the_way and not force:
        names = ", ".join(str(path) for path in in_the_way)
        raise UsageError(f"{names}: already there, with other content.", hint="Overwrite with --force.")
    for path, content in copies.items():
        if not _holds(path, content):
            _write(path, content)
    return list(copies)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: can't be written ({error.strerror}).") from None
