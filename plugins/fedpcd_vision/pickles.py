"""Reads pickled arrays without running anything that a file asks for."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import IO, Any

import numpy as np


class ForbiddenPickleError(pickle.UnpicklingError):
    """A pickle that wants more than arrays and plain values."""


def _allowed() -> dict[tuple[str, str], Any]:
    from _codecs import encode  # how protocol 2 of Python 3 writes bytes

    # The reconstructor is private to NumPy and has moved; an array's own recipe names it.
    reconstruct: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
    return {
        ("numpy.core.multiarray", "_reconstruct"): reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): encode,
    }


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _allowed()[module, name]
        except KeyError:
            raise ForbiddenPickleError(f"it asks for {module}.{name}") from None


def load_plain(file: IO[bytes]) -> Any:
    """Return what a pickle holds: arrays, texts, numbers, lists, dictionaries; bytes are read as Latin-1.

    Raises:
        ForbiddenPickleError: It names any other class or function.
        pickle.UnpicklingError: It is damaged; EOFError, ValueError, KeyError and IndexError mean the same.
    """
    return _Unpickler(file, encoding="latin1").load()
