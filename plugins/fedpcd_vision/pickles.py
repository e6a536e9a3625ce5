"""Reads pickled arrays without running anything that a file asks for."""

from __future__ import annotations

import pickle
from typing import IO, Any

import numpy as np


class ForbiddenPickleError(pickle.UnpicklingError):
    """A pickle that wants more than arrays and plain values."""


def _allowed() -> dict[tuple[str, str], Any]:
    from _codecs import encode  # how protocol 2 of Python 3 writes bytes

    # NumPy's own two ways to rebuild an array are private and have moved; an array names them itself.
    reconstruct, from_buffer = (np.empty(0).__reduce_ex__(protocol)[0] for protocol in (2, 5))
    return {
        ("numpy.core.multiarray", "_reconstruct"): reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): reconstruct,
        ("numpy.core.numeric", "_frombuffer"): from_buffer,
        ("numpy._core.numeric", "_frombuffer"): from_buffer,
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
