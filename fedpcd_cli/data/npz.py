"""A user's own arrays, from one `.npz` file."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedpcd_cli.data.assemble import assemble_dataset, join_splits
from fedpcd_cli.data.cache import require_file
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext
from fedpcd_cli.errors import DataError, did_you_mean

REQUIRED = ("train_inputs", "train_targets", "test_inputs", "test_targets")
OPTIONAL = ("train_clients", "test_clients", "class_names")

# Every class is an output of the model, and every owner a client: larger ids are hashes or marks, not counts.
MAX_CLASSES = 100_000
MAX_OWNERS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Npz(DatasetSource):
    """Arrays `train_inputs`, `train_targets`, `test_inputs`, `test_targets` of one file.

    Inputs are uint8 `[n, C, H, W]` or `[n, H, W]` (images) or floats `[n, F]` (features); targets are integers
    from 0. `train_clients` and `test_clients` (integers from 0) name each sample's natural owner;
    `class_names` (texts) names the classes.
    """

    name: ClassVar[str] = "npz"
    summary: ClassVar[str] = "your own arrays from one .npz file, with optional natural owners"
    needs_root: ClassVar[bool] = True

    def load(self, context: LoadContext) -> Dataset:
        """Return the file's arrays as a dataset.

        Raises:
            DataError: The file, a name, a type, a shape or a value in it is wrong.
        """
        path = require_file(context.root, self.name, "a .npz file")
        context.progress(f"loading {path.name}")
        arrays = _read(path)
        inputs = join_splits(str(path), _inputs(path, arrays, "train"), _inputs(path, arrays, "test"))
        targets = {split: _targets(path, arrays, split) for split in ("train", "test")}
        n_classes = 1 + max(int(values.max(initial=-1)) for values in targets.values())
        names = _class_names(path, arrays, n_classes)
        notes = []
        absent = [
            names[k] for k in range(len(names)) if not any((values == k).any() for values in targets.values())
        ]
        if absent:
            notes.append(f"no sample of class {', '.join(absent[:5])}{' and others' if len(absent) > 5 else ''}")
        return assemble_dataset(
            name=self.name,
            inputs=inputs,
            targets=np.concatenate([targets["train"], targets["test"]]),
            n_train=len(targets["train"]),
            class_names=names,
            owners=_owners(path, arrays),
            notes=notes,
        )


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise DataError(f"{path}: must be a .npz file; found a single array.", hint=_HOW)
            _check_names(path, stored.files)
            return {name: stored[name] for name in stored.files}
    except ValueError as error:
        what = "Python objects (pickle)" if "pickle" in str(error).lower() else str(error)
        raise DataError(f"{path}: must hold plain numeric arrays; found {what}.", hint=_HOW) from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: can't be read as .npz: {error}.") from error


def _check_names(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in REQUIRED + OPTIONAL:
            known = did_you_mean(name, REQUIRED + OPTIONAL)
            raise DataError(f"{path}: '{name}' is no known array.{known}", hint=_HOW)
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise DataError(f"{path}: must hold {', '.join(missing)}; found {', '.join(names)}.", hint=_HOW)


_HOW = f"Write it with numpy.savez(file, {', '.join(f'{name}=...' for name in REQUIRED)})."


def _inputs(path: Path, arrays: dict[str, np.ndarray], split: str) -> np.ndarray:
    inputs = arrays[f"{split}_inputs"]
    where = f"{path}: {split}_inputs"
    if inputs.dtype == np.uint8 and inputs.ndim == 3:
        return inputs[:, None]
    if inputs.dtype == np.uint8 and inputs.ndim == 4:
        if inputs.shape[3] in (1, 3) and inputs.shape[1] not in (1, 3):
            raise DataError(
                f"{where} must be [n, C, H, W]; found {list(inputs.shape)}, which looks like channels last.",
                hint="Store it with .transpose(0, 3, 1, 2).",
            )
        return inputs
    if inputs.dtype.kind == "f" and inputs.ndim == 2:
        with np.errstate(over="ignore"):  # beyond float32 becomes infinity, which is refused by name later
            return inputs.astype(np.float32)
    raise DataError(
        f"{where} must be uint8 [n, C, H, W] or [n, H, W] (images, 0 to 255), or floats [n, F] (features); "
        f"found {inputs.dtype} {list(inputs.shape)}."
    )


def _targets(path: Path, arrays: dict[str, np.ndarray], split: str) -> np.ndarray:
    return _integers(path, arrays, f"{split}_targets", _length(arrays, split), MAX_CLASSES)


def _length(arrays: dict[str, np.ndarray], split: str) -> int:
    inputs = arrays[f"{split}_inputs"]
    return len(inputs) if inputs.ndim else 0  # a single number is refused with the other shapes


def _integers(path: Path, arrays: dict[str, np.ndarray], name: str, length: int, limit: int) -> np.ndarray:
    values = arrays[name]
    if values.dtype.kind not in "iu" or values.shape != (length,):
        raise DataError(
            f"{path}: {name} must be integers [{length}], one per sample; "
            f"found {values.dtype} {list(values.shape)}."
        )
    if len(values) and (values.min() < 0 or values.max() >= limit):
        raise DataError(
            f"{path}: {name} must count from 0, below {limit}; found {values.min()} to {values.max()}."
        )
    return values.astype(np.int64)


def _owners(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    if "train_clients" not in arrays:
        if "test_clients" in arrays:
            raise DataError(f"{path}: test_clients needs train_clients too; found only test_clients.")
        return None
    train = _integers(path, arrays, "train_clients", _length(arrays, "train"), MAX_OWNERS)
    n_test = _length(arrays, "test")
    if "test_clients" not in arrays:
        return np.concatenate([train, np.full(n_test, -1, dtype=np.int64)])
    return np.concatenate([train, _integers(path, arrays, "test_clients", n_test, MAX_OWNERS)])


def _class_names(path: Path, arrays: dict[str, np.ndarray], n_classes: int) -> list[str]:
    if "class_names" not in arrays:
        return [str(k) for k in range(n_classes)]
    names = arrays["class_names"]
    if names.dtype.kind != "U" or names.ndim != 1 or len(names) < n_classes:
        raise DataError(
            f"{path}: class_names must be {n_classes} texts or more; found {names.dtype} {list(names.shape)}."
        )
    return [str(name) for name in names]
