"""From raw batches to model inputs. Imports torch: only runs import it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch.nn import functional

from fedpcd_cli.data.dataset import Dataset
from fedpcd_cli.errors import DataError


class NormalizeSection(Protocol):
    """`data.normalize` of a recipe."""

    @property
    def mean(self) -> Sequence[float]: ...
    @property
    def std(self) -> Sequence[float]: ...


class AugmentSection(Protocol):
    """`data.augment` of a recipe."""

    @property
    def crop_padding(self) -> int: ...
    @property
    def flip(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Transform:
    """Turns raw samples into model inputs on their device.

    Attributes:
        dtype: Floating type of the result.
        is_image: uint8 images (255 becomes 1.0) rather than float features.
        mean: Subtracted per channel or feature, shaped to broadcast over a batch; None leaves values as they are.
        std: Divides after the subtraction; None with `mean`.
        crop_padding: Pixels of black border for random crops in training; 0 means no crop.
        flip: Whether training images are mirrored left to right with probability 1/2.
    """

    dtype: torch.dtype
    is_image: bool
    mean: torch.Tensor | None = None
    std: torch.Tensor | None = None
    crop_padding: int = 0
    flip: bool = False

    @classmethod
    def build(
        cls,
        dataset: Dataset,
        normalize: NormalizeSection | None,
        augment: AugmentSection | None,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Check the recipe's sections against the dataset and return the transform.

        Raises:
            DataError: Statistics of the wrong length or a standard deviation that is not positive; augmentation
                of features.
        """
        crop_padding, flip = (augment.crop_padding, augment.flip) if augment is not None else (0, False)
        if (crop_padding or flip) and not dataset.is_image:
            raise DataError(
                f"data.augment must be null for feature data; dataset '{dataset.name}' holds no images.",
                hint="Remove data.augment from the recipe.",
            )
        mean = std = None
        if normalize is not None:
            n = dataset.sample_shape[0]
            shape = (1, n, 1, 1) if dataset.is_image else (1, n)
            what = "channels" if dataset.is_image else "features"
            for key, values in (("mean", normalize.mean), ("std", normalize.std)):
                if len(values) != n:
                    raise DataError(
                        f"data.normalize.{key} must have {n} values, one for each of the {what} of dataset "
                        f"'{dataset.name}'; found {len(values)}."
                    )
            if not all(value > 0 for value in normalize.std):
                raise DataError(f"data.normalize.std must be greater than 0; found {min(normalize.std)}.")
            mean = torch.tensor(list(normalize.mean), dtype=dtype, device=device).reshape(shape)
            std = torch.tensor(list(normalize.std), dtype=dtype, device=device).reshape(shape)
        return cls(dtype, dataset.is_image, mean, std, crop_padding, flip)

    def __call__(
        self, raw: torch.Tensor, *, generator: torch.Generator | None = None, training: bool = False
    ) -> torch.Tensor:
        """Return model inputs of the raw batch's shape.

        Args:
            raw: uint8 `[B, C, H, W]` or float `[B, F]`; left unchanged.
            generator: Source of crops and flips; needed if `training` and the recipe augments.
            training: Whether to augment.

        Raises:
            ValueError: Augmentation without a generator.
        """
        if training and (self.crop_padding or self.flip):
            if generator is None:
                raise ValueError("augmentation needs a generator")
            raw = self._augment(raw, generator)
        if not self.is_image and self.mean is None:
            return raw.to(self.dtype)
        inputs = raw.to(self.dtype, copy=True, memory_format=torch.contiguous_format)
        if self.is_image:
            inputs.div_(255)
        if self.mean is not None and self.std is not None:
            inputs.sub_(self.mean).div_(self.std)
        return inputs

    def _augment(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Crop and flip each image by one gather; black borders, as padding before normalization gives."""
        n, _, height, width = images.shape
        device = images.device
        rows = torch.arange(height, device=device).expand(n, height)
        columns = torch.arange(width, device=device).expand(n, width)
        if self.flip:
            mirrored = torch.rand(n, generator=generator, device=generator.device).to(device) < 0.5
            columns = torch.where(mirrored[:, None], columns.flip(1), columns)
        if self.crop_padding:
            images = functional.pad(images, [self.crop_padding] * 4)
            limits = 2 * self.crop_padding + 1
            shifts = torch.randint(limits, (2, n), generator=generator, device=generator.device).to(device)
            rows = rows + shifts[0, :, None]
            columns = columns + shifts[1, :, None]
        batch = torch.arange(n, device=device)[:, None, None]
        gathered = images[batch, :, rows[:, :, None], columns[:, None, :]]  # [B, H, W, C]
        return gathered.permute(0, 3, 1, 2)
