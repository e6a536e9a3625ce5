"""Puts the arrays of a source together into a checked, fingerprinted dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from fedpcd_cli.data.dataset import Dataset
from fedpcd_cli.errors import DataError


def array_digest(arrays: Iterable[np.ndarray]) -> str:
    """Return the SHA-256 (hex) of arrays: element type, shape and little-endian bytes of each, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{little.dtype.str}{little.shape};".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def assemble_dataset(
    *,
    name: str,
    inputs: np.ndarray,
    targets: np.ndarray,
    n_train: int,
    class_names: Sequence[str],
    owners: np.ndarray | None = None,
    notes: Iterable[str] = (),
) -> Dataset:
    """Check the arrays of a dataset and give them their fingerprint, without copying the inputs.

    Args:
        name: The dataset's name, as in the recipe.
        inputs: uint8 `[n, C, H, W]` for images, float32 `[n, F]` for features; train samples first.
        targets: Integers `[n]`.
        n_train: How many of the samples are the official training set.
        class_names: Name of each class, `[K]`.
        owners: Natural owner of each sample, `[n]`; -1 marks a sample without one.
        notes: What a reader of a table must know.

    Raises:
        DataError: Lengths or shapes disagree, a target is no class, an input is not finite.
    """
    _check(name, inputs, targets, len(class_names))
    if not 1 <= n_train <= len(targets):
        raise DataError(f"{name}: must have at least one training sample; found {n_train} of {len(targets)}.")
    targets = targets.astype(np.int64)
    if owners is not None:
        owners = owners.astype(np.int64)
        if owners.shape != targets.shape:
            raise DataError(
                f"{name}: each sample must have one owner; found {len(targets)} samples and {owners.size} owners."
            )
    return Dataset(
        name=name,
        inputs=inputs,
        targets=targets,
        n_train=n_train,
        class_names=tuple(class_names),
        client_ids=owners,
        fingerprint=array_digest([inputs, targets] if owners is None else [inputs, targets, owners]),
        notes=tuple(notes),
    )


def join_splits(name: str, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return train and test inputs as one array, train first.

    Raises:
        DataError: Their types or sample shapes differ.
    """
    if train.dtype != test.dtype:
        raise DataError(
            f"{name}: train and test inputs must be of one type; found {train.dtype} and {test.dtype}."
        )
    if train.shape[1:] != test.shape[1:]:
        raise DataError(
            f"{name}: train and test samples must have one shape; found {list(train.shape[1:])} and "
            f"{list(test.shape[1:])}."
        )
    return np.concatenate([train, test])


def _check(name: str, inputs: np.ndarray, targets: np.ndarray, n_classes: int) -> None:
    image = inputs.dtype == np.uint8 and inputs.ndim == 4
    features = inputs.dtype == np.float32 and inputs.ndim == 2
    if not (image or features):
        raise DataError(
            f"{name}: inputs must be uint8 [n, C, H, W] (images) or float32 [n, F] (features); "
            f"found {inputs.dtype} {list(inputs.shape)}."
        )
    if targets.ndim != 1 or targets.dtype.kind not in "iu" or len(targets) != len(inputs):
        raise DataError(
            f"{name}: targets must be integers [{len(inputs)}], one per sample; "
            f"found {targets.dtype} {list(targets.shape)}."
        )
    if len(targets) and (targets.min() < 0 or targets.max() >= n_classes):
        raise DataError(
            f"{name}: targets must be between 0 and {n_classes - 1}; found {targets.min()} to {targets.max()}."
        )
    if features:
        finite = np.isfinite(inputs).all(axis=1)
        if not finite.all():
            raise DataError(
                f"{name}: inputs must be finite; found NaN or infinity in {np.sum(~finite)} samples, "
                f"first in sample {int(np.argmin(finite))}."
            )
