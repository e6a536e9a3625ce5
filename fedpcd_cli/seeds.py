"""All randomness of a run, derived: no generator is global, none is stored, none is shared.

A stream is named by what it is for, for example `("local", round_index, client_id)`. Its seed is a hash of the
run's seed and that name, so a client's stream depends neither on the other clients nor on their order, and a
resumed run needs no saved generator state.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def derive(seed: int, *stream: str | int, bits: int = 63) -> int:
    """Return the non-negative seed of one stream, uniform over `bits` bits (at most 512)."""
    name = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in stream)])
    digest = hashlib.blake2b(name.encode()).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)


def numpy_generator(seed: int, *stream: str | int) -> np.random.Generator:
    """Return the NumPy generator (PCG64) of one stream."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(derive(seed, *stream, bits=128)))


def torch_generator(seed: int, *stream: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return the torch generator of one stream, on the device whose tensors it will fill."""
    import torch

    return torch.Generator(device=device).manual_seed(derive(seed, *stream))
