"""Evaluation of all clients in one pass over their pooled test data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from fedpcd_cli.engine.device_data import DeviceData
from fedpcd_cli.engine.flat_model import FlatModel
from fedpcd_cli.metrics import Metrics, compute_metrics

_BATCH = 500


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of all clients.

    Attributes:
        round_index: t; 0 is the initial model.
        metrics: The table's row.
        n_correct: Right test examples per client, int64 `[N]`.
        loss_sums: Sum of test losses per client, float64 `[N]`.
    """

    round_index: int
    metrics: Metrics
    n_correct: np.ndarray
    loss_sums: np.ndarray


def evaluate(
    model: FlatModel, data: DeviceData, params: torch.Tensor, buffers: torch.Tensor, round_index: int
) -> Evaluation:
    """Evaluate one set of parameters, `[P]`, on every client's test samples, dropout off."""
    model.load_buffers(buffers)
    model.bind(params)
    model.module.eval()
    n_test = data.test_indices.numel()
    right = torch.empty(n_test, dtype=torch.bool, device=params.device)
    losses = torch.empty(n_test, dtype=params.dtype, device=params.device)
    with torch.inference_mode():
        for start in range(0, n_test, _BATCH):
            batch = data.test_indices[start : start + _BATCH]
            inputs = data.batch(batch, images_last=model.uses_images_last)
            targets = data.targets[batch]
            logits = model.module(inputs)
            right[start : start + _BATCH] = logits.argmax(dim=1) == targets
            losses[start : start + _BATCH] = functional.cross_entropy(logits, targets, reduction="none")
    owners = np.repeat(np.arange(data.test_counts.size), data.test_counts)
    # Summed on the host, in one order: scatter-adds on a GPU have none.
    n_correct = np.bincount(owners, weights=right.cpu().numpy(), minlength=data.test_counts.size)
    loss_sums = np.bincount(owners, weights=losses.double().cpu().numpy(), minlength=data.test_counts.size)
    return Evaluation(
        round_index=round_index,
        metrics=compute_metrics(n_correct, data.test_counts, loss_sums),
        n_correct=n_correct.astype(np.int64),
        loss_sums=loss_sums,
    )
