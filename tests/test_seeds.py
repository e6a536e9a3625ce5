"""Derived randomness."""

from __future__ import annotations

import numpy as np
import torch

from fedpcd_cli.seeds import derive, numpy_generator, torch_generator


def test_streams_are_told_apart_by_every_part():
    seeds = {
        derive(1, "local", 2, 3),
        derive(1, "local", 3, 2),
        derive(1, "local", 23),
        derive(1, "local", "2", 3),
        derive(2, "local", 2, 3),
        derive(1, "shuffle", 2, 3),
    }
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_known_value_so_that_results_never_move_in_silence():
    # blake2b-512 of "1\x1fstr:cohort\x1fint:1", first 8 bytes, little endian, top bit cleared.
    import hashlib

    digest = hashlib.blake2b(b"1\x1fstr:cohort\x1fint:1").digest()
    assert derive(1, "cohort", 1) == int.from_bytes(digest[:8], "little") % 2**63


def test_generators_touch_no_global_state():
    before = torch.random.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002 - reads the global state to prove it is untouched
    a = torch.rand(3, generator=torch_generator(1, "x"))
    b = numpy_generator(1, "x").random(3)
    assert torch.equal(a, torch.rand(3, generator=torch_generator(1, "x")))
    assert np.array_equal(b, numpy_generator(1, "x").random(3))
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
