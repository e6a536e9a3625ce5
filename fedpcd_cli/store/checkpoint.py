"""Checkpoints: the state between two rounds, in safetensors files that are checked before they are believed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fedpcd_cli.errors import StoreError
from fedpcd_cli.store.atomic import file_digest, write_atomically, write_text
from fedpcd_cli.store.layout import FORMAT_VERSION
from fedpcd_cli.store.tree import flatten_tree, unflatten_tree

KEPT = 2


def _file(folder: Path, round_index: int) -> Path:
    return folder / f"round-{round_index:06d}.safetensors"


def save_checkpoint(folder: Path, round_index: int, state: dict[str, Any]) -> None:
    """Write the state of a round beside its checksum, then drop all but the last two.

    Raises:
        StoreError: The files can't be written; older checkpoints are intact.
    """
    structure, tensors = flatten_tree(state)
    metadata = {"format_version": str(FORMAT_VERSION), "structure": json.dumps(structure)}
    path = _file(folder, round_index)
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata=metadata))
    # The checksum comes last: a checkpoint without one was never finished.
    write_text(path.with_suffix(".sha256"), file_digest(path) + "\n")
    for old in checkpoint_rounds(folder)[:-KEPT]:
        for leftover in (_file(folder, old).with_suffix(".sha256"), _file(folder, old)):
            with contextlib.suppress(OSError):
                leftover.unlink()


def checkpoint_rounds(folder: Path) -> list[int]:
    """Return the rounds of all finished checkpoints, ascending; their content is not checked."""
    names = [p.stem for p in folder.glob("round-*.sha256") if p.with_suffix(".safetensors").exists()]
    return sorted(int(name.removeprefix("round-")) for name in names if name.removeprefix("round-").isdigit())


def load_checkpoint(folder: Path, device: torch.device) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the newest checkpoint that is whole, and a sentence for each newer one that isn't.

    Raises:
        StoreError: The checkpoint was written by a newer version of fedpcd.
    """
    complaints: list[str] = []
    for round_index in reversed(checkpoint_rounds(folder)):
        path = _file(folder, round_index)
        try:
            if file_digest(path) != path.with_suffix(".sha256").read_text(encoding="ascii").strip():
                complaints.append(f"{path} is damaged (checksum differs)")
                continue
            return _read(path, device), complaints
        except (OSError, SafetensorError, UnicodeDecodeError, KeyError, ValueError) as error:
            complaints.append(f"{path} is damaged ({error})")
    return None, complaints


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    with safe_open(path, framework="pt", device="cpu") as file:
        metadata = file.metadata()
        version = int(metadata["format_version"])
        if version > FORMAT_VERSION:
            raise StoreError(
                f"{path}: format {version} is newer than this fedpcd reads ({FORMAT_VERSION}).",
                hint="Use the fedpcd that wrote it, or a newer one.",
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    state: dict[str, Any] = unflatten_tree(json.loads(metadata["structure"]), tensors, device)
    return state
