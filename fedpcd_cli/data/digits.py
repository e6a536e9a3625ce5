"""The handwritten digits that scikit-learn ships: real data without a download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcd_cli.data.assemble import assemble_dataset
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext

N_TEST = 297


@dataclass(frozen=True, kw_only=True)
class Digits(DatasetSource):
    """1,797 handwritten digits of 8x8 pixels with 17 gray levels (UCI, Alpaydin and Kaynak, 1998).

    scikit-learn gives no split; here the last 297 samples are the official test set.
    """

    name: ClassVar[str] = "digits"
    summary: ClassVar[str] = "1,797 handwritten digits, 8x8 gray, shipped with scikit-learn (offline)"

    def load(self, context: LoadContext) -> Dataset:
        """Return uint8 `[1797, 1, 8, 8]`, gray level v as round(255 v / 16)."""
        context.progress("loading digits")
        from sklearn.datasets import load_digits

        bunch = load_digits()
        inputs = np.rint(bunch.images * (255.0 / 16.0)).astype(np.uint8)[:, None]
        return assemble_dataset(
            name=self.name,
            inputs=inputs,
            targets=bunch.target,
            n_train=len(inputs) - N_TEST,
            class_names=[str(digit) for digit in range(10)],
        )
