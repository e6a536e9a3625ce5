"""Shape checks shared by the convolutional models."""

from __future__ import annotations

from fedpcd_cli.errors import UsageError


def require_image(model: str, sample_shape: tuple[int, ...], min_side: int) -> tuple[int, int, int]:
    """Return (channels, height, width).

    Raises:
        UsageError: The samples are not images, or are smaller than `min_side`.
    """
    if len(sample_shape) != 3:
        raise UsageError(
            f"model.name '{model}' needs images [C, H, W]; found samples of shape {list(sample_shape)}.",
            hint="Use 'linear' or 'mlp' for feature vectors.",
        )
    channels, height, width = sample_shape
    if min(height, width) < min_side:
        raise UsageError(
            f"model.name '{model}' needs images of at least {min_side} x {min_side} pixels; "
            f"found {height} x {width}.",
            hint="Use 'linear' or 'mlp', or resize the images.",
        )
    return channels, height, width


def conv5_pool_side(side: int, padding: int) -> int:
    """Return the side length after a 5x5 convolution and 2x2 pooling."""
    return (side + 2 * padding - 4) // 2
