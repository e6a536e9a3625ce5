"""The federation's samples on the run's device, in memory once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from fedpcd_cli.data.federation import Federation
    from fedpcd_cli.data.transform import Transform


@dataclass(frozen=True, eq=False)
class DeviceData:
    """Samples, targets and the clients' indices on one device.

    Attributes:
        inputs: Raw samples, uint8 or float, `[n, ...]`; on a CPU the dataset's own memory.
        targets: int64 `[n]`.
        train_indices: Per client, int64 `[n_i]`.
        test_indices: All clients' test samples, int64 `[n_test]`, client by client.
        test_counts: Test samples per client, int64 `[N]`, on the host.
        transform: Raw batch to model input.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    train_indices: tuple[torch.Tensor, ...]
    test_indices: torch.Tensor
    test_counts: np.ndarray
    transform: Transform

    @classmethod
    def load(cls, federation: Federation, transform: Transform, device: torch.device) -> DeviceData:
        """Put a federation on a device."""
        dataset, partition = federation.dataset, federation.partition
        test = np.concatenate([np.asarray(i, dtype=np.int64) for i in partition.test_indices])
        return cls(
            inputs=torch.from_numpy(np.ascontiguousarray(dataset.inputs)).to(device),
            targets=torch.from_numpy(np.ascontiguousarray(dataset.targets)).to(device),
            train_indices=tuple(torch.from_numpy(np.array(i)).to(device) for i in partition.train_indices),
            test_indices=torch.from_numpy(test).to(device),
            test_counts=np.array([len(i) for i in partition.test_indices], dtype=np.int64),
            transform=transform,
        )

    def batch(
        self, indices: torch.Tensor, *, images_last: bool, augmentation: torch.Generator | None = None
    ) -> torch.Tensor:
        """Return model inputs, `[B, ...]`; augmented if a generator is given.

        Args:
            images_last: Lay images out channels-last: the same numbers in an order on which pooling and
                convolution are far faster.
        """
        inputs = self.transform(self.inputs[indices], generator=augmentation, training=augmentation is not None)
        if images_last and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return inputs

    def n_train(self, client_id: int) -> int:
        return int(self.train_indices[client_id].numel())
