"""Small image sources."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from fedpcd_cli.data.dataset import LoadContext


@pytest.fixture
def context(tmp_path):
    """Return a load context with a private cache; keyword arguments change it."""

    def build(**changes):
        settings = {"root": None, "download": False, "cache_dir": tmp_path / "cache", "data_seed": 0}
        return LoadContext(**(settings | changes))

    return build


@pytest.fixture
def encode():
    """Return an encoder of uint8 arrays `[H, W]` or `[H, W, 3]` as image files."""

    def encode_pixels(pixels, image_format="PNG", mode=None):
        buffer = io.BytesIO()
        image = Image.fromarray(np.asarray(pixels, dtype=np.uint8))
        (image if mode is None else image.convert(mode)).save(buffer, image_format)
        return buffer.getvalue()

    return encode_pixels


@pytest.fixture
def files(encode):
    """Return a complete source of 2 classes x (3 + 1) images, 4x6 RGB, as path -> content; and its pixels."""
    rng = np.random.default_rng(0)
    contents, pixels = {}, {}
    for split, count in (("train", 3), ("test", 1)):
        for label in ("cat", "dog"):
            for i in range(count):
                path = f"{split}/{label}/{i}.png"
                pixels[path] = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8)
                contents[path] = encode(pixels[path])
    return contents, pixels
