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
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    class_names: Sequence[str],
    owners: tuple[np.ndarray, np.ndarray] | None = None,
    notes: Iterable[str] = (),
) -> Dataset:
    """Join train and test samples into one dataset.

    Args:
        name: The dataset's name, as in the recipe.
        train: Inputs `[n, ...]` and targets `[n]`; uint8 `[n, C, H, W]` for images, float32 `[n, F]` otherwise.
        test: The same for the official test samples; may be empty.
        class_names: Name of each class, `[K]`.
        owners: Natural owner of each train and each test sample; -1 marks a sample without one.
        notes: What a reader of a table must know.

    Raises:
        DataError: Lengths or shapes disagree, a target is no class, an input is not finite.
    """
    for split, (inputs, targets) in {"train": train, "test": test}.items():
        _check(name, split, inputs, targets, len(class_names))
    (train_inputs, train_targets), (test_inputs, test_targets) = train, test
    if len(train_targets) == 0:
        raise DataError(f"{name}: must have at least one training sample; found none.")
    if train_inputs.dtype != test_inputs.dtype:
        raise DataError(
            f"{name}: train and test inputs must be of one type; "
            f"found {train_inputs.dtype} and {test_inputs.dtype}."
        )
    if train_inputs.shape[1:] != test_inputs.shape[1:]:
        raise DataError(
            f"{name}: train and test samples must have one shape; found {list(train_inputs.shape[1:])} and "
            f"{list(test_inputs.shape[1:])}."
        )
    inputs = np.concatenate([train_inputs, test_inputs])
    targets = np.concatenate([train_targets, test_targets]).astype(np.int64)
    client_ids = None
    if owners is not None:
        client_ids = np.concatenate(owners).astype(np.int64)
        if client_ids.shape != targets.shape:
            raise DataError(
                f"{name}: each sample must have one owner; "
                f"found {len(targets)} samples and {client_ids.size} owners."
            )
    return Dataset(
        name=name,
        inputs=inputs,
        targets=targets,
        n_train=len(train_targets),
        class_names=tuple(class_names),
        client_ids=client_ids,
        fingerprint=array_digest([inputs, targets] if client_ids is None else [inputs, targets, client_ids]),
        notes=tuple(notes),
    )


def _check(name: str, split: str, inputs: np.ndarray, targets: np.ndarray, n_classes: int) -> None:
    image = inputs.dtype == np.uint8 and inputs.ndim == 4
    features = inputs.dtype == np.float32 and inputs.ndim == 2
    if not (image or features):
        raise DataError(
            f"{name}: {split} inputs must be uint8 [n, C, H, W] (images) or float32 [n, F] (features); "
            f"found {inputs.dtype} {list(inputs.shape)}."
        )
    if targets.ndim != 1 or targets.dtype.kind not in "iu" or len(targets) != len(inputs):
        raise DataError(
            f"{name}: {split} targets must be integers [{len(inputs)}], one per sample; "
            f"found {targets.dtype} {list(targets.shape)}."
        )
    if len(targets) and (targets.min() < 0 or targets.max() >= n_classes):
        raise DataError(
            f"{name}: {split} targets must be between 0 and {n_classes - 1}; "
            f"found {targets.min()} to {targets.max()}."
        )
    if features:
        finite = np.isfinite(inputs).all(axis=1)
        if not finite.all():
            raise DataError(
                f"{name}: {split} inputs must be finite; found NaN or infinity in {np.sum(~finite)} samples, "
                f"first in sample {int(np.argmin(finite))}."
            )
