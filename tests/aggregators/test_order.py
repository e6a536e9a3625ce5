"""Order statistics against full stable sorts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedpcd_baselines.order import leading, smallest_sizes

VECTORS = {
    "random": lambda n, g: torch.rand(n, generator=g),
    "many ties": lambda n, g: torch.randint(0, 5, (n,), generator=g).float(),
    "all equal": lambda n, g: torch.ones(n),
    "ascending": lambda n, g: torch.arange(n).float(),
    "periodic": lambda n, g: (torch.arange(n) % 4 > 0).float(),
    "mostly zero": lambda n, g: torch.rand(n, generator=g) * (torch.rand(n, generator=g) > 0.95),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 7, 50_000])
@pytest.mark.parametrize("kind", VECTORS)
def test_equal_stable_sorts(kind, n, dtype):
    values = VECTORS[kind](n, torch.Generator().manual_seed(0)).to(dtype)
    before = values.clone()
    for k in {1, max(1, n // 3), max(1, n - 1), n}:
        signed = values * torch.where(torch.arange(n) % 2 == 0, 1, -1)
        np.testing.assert_array_equal(smallest_sizes(signed, k), np.sort(values.numpy())[:k])
        expected = np.argsort(-values.numpy(), kind="stable")[:k]
        np.testing.assert_array_equal(leading(values, k), expected)
    assert torch.equal(values, before)


def test_negative_scores_come_last():
    scores = torch.tensor([-1.0, 0.5, -1.0, 0.0, 2.0])
    assert leading(scores, 3).tolist() == [4, 1, 3]
