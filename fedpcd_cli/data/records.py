"""Partitions as plain arrays: their digest, and their exact way to a file and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fedpcd_cli.data.partition import Partition
from fedpcd_cli.errors import DataError

_KEYS = ("scheme", "protocol", "notes", "digest", "train_indices", "train_sizes", "test_indices", "test_sizes")


def make_partition(
    scheme: str,
    protocol: str,
    train_indices: Sequence[np.ndarray],
    test_indices: Sequence[np.ndarray],
    notes: Iterable[str],
) -> Partition:
    """Return a partition with its digest."""
    train = tuple(np.asarray(part, dtype=np.int64) for part in train_indices)
    test = tuple(np.asarray(part, dtype=np.int64) for part in test_indices)
    return Partition(
        scheme=scheme,
        protocol=protocol,
        train_indices=train,
        test_indices=test,
        notes=tuple(notes),
        digest=partition_digest(protocol, train, test),
    )


def partition_digest(protocol: str, train: Sequence[np.ndarray], test: Sequence[np.ndarray]) -> str:
    """Return the SHA-256 (hex) over protocol, sizes and indices of all clients."""
    digest = hashlib.sha256(f"fedpcd partition 1;{protocol};{len(train)};".encode())
    for parts in (train, test):
        digest.update(np.array([len(part) for part in parts], dtype="<i8").tobytes())
        digest.update(_concatenate(parts).astype("<i8").tobytes())
    return digest.hexdigest()


def partition_to_arrays(partition: Partition) -> dict[str, np.ndarray]:
    """Return everything in a partition as arrays for `numpy.savez` (texts included, no pickle)."""
    return {
        "scheme": np.array(partition.scheme),
        "protocol": np.array(partition.protocol),
        "notes": np.array(partition.notes, dtype=np.str_),
        "digest": np.array(partition.digest),
        "train_indices": _concatenate(partition.train_indices),
        "train_sizes": np.array([len(part) for part in partition.train_indices], dtype=np.int64),
        "test_indices": _concatenate(partition.test_indices),
        "test_sizes": np.array([len(part) for part in partition.test_indices], dtype=np.int64),
    }


def partition_from_arrays(arrays: Mapping[str, np.ndarray]) -> Partition:
    """Return the partition that :func:`partition_to_arrays` wrote.

    Raises:
        DataError: An array is missing, or the indices do not match the digest.
    """
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise DataError(f"partition: must hold {', '.join(_KEYS)}; missing {', '.join(missing)}.")
    parts: dict[str, list[np.ndarray]] = {}
    for split in ("train", "test"):
        indices, sizes = arrays[f"{split}_indices"], arrays[f"{split}_sizes"]
        if indices.ndim != 1 or sizes.ndim != 1 or int(sizes.sum()) != len(indices):
            raise DataError(f"partition: {split}_sizes must add up to {len(indices)}; found {int(sizes.sum())}.")
        ends = np.cumsum(sizes)
        parts[split] = [indices[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    partition = make_partition(
        str(arrays["scheme"]),
        str(arrays["protocol"]),
        parts["train"],
        parts["test"],
        [str(note) for note in arrays["notes"]],
    )
    if partition.digest != str(arrays["digest"]):
        raise DataError(
            f"partition: digest must be {arrays['digest']}; found {partition.digest}. "
            "The file was changed or damaged."
        )
    return partition


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
