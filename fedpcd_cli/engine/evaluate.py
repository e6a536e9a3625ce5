"""Evaluation of all clients in one pass over their pooled test data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from fedpcd_cli.engine.device_data import DeviceData
from fedpcd_cli.engine.flat_model import FlatModel
from fedpcd_cli.metrics import Metrics, compute_metrics

_BATCH = 500


@dataclass(frozen=True, eq=False)
class Scores:
    """Test results of all clients under one model each.

    Attributes:
        metrics: The table's row.
        n_correct: Right test examples per client, int64 `[N]`.
        loss_sums: Sum of test losses per client, float64 `[N]`.
    """

    metrics: Metrics
    n_correct: np.ndarray
    loss_sums: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of all clients.

    Attributes:
        round_index: t; 0 is the initial model.
        scores: Every client under the global model.
        personal: Every client under its own model, for rules that train personal models.
        n_unseen: Clients whose personal model was never trained.
    """

    round_index: int
    scores: Scores
    personal: Scores | None = None
    n_unseen: int = 0


def evaluate(model: FlatModel, data: DeviceData, params: torch.Tensor, buffers: torch.Tensor) -> Scores:
    """Evaluate one set of parameters, `[P]`, on every client's test samples in one pass, dropout off."""
    model.load_buffers(buffers)
    model.bind(params)
    right, losses = _score(model, data, data.test_indices)
    return _by_client(data, right, losses)


def evaluate_personal(
    model: FlatModel, data: DeviceData, params_of: Callable[[int], torch.Tensor], buffers: torch.Tensor
) -> Scores:
    """Evaluate each client's own parameters, `[P]`, on its own test samples, dropout off."""
    model.load_buffers(buffers)
    parts = []
    start = 0
    for client_id, count in enumerate(data.test_counts.tolist()):
        if count:
            model.bind(params_of(client_id))
            parts.append(_score(model, data, data.test_indices[start : start + count]))
        start += count
    right, losses = (torch.cat(column) for column in zip(*parts, strict=True))
    return _by_client(data, right, losses)


def _score(model: FlatModel, data: DeviceData, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return whether the bound parameters are right on each sample, and the losses, `[n]` both."""
    model.module.eval()
    right, losses = [], []
    with torch.inference_mode():
        for batch in torch.split(indices, _BATCH):
            targets = data.targets[batch]
            logits = model.module(data.batch(batch, images_last=model.uses_images_last))
            right.append(logits.argmax(dim=1) == targets)
            losses.append(functional.cross_entropy(logits, targets, reduction="none"))
    return torch.cat(right), torch.cat(losses)


def _by_client(data: DeviceData, right: torch.Tensor, losses: torch.Tensor) -> Scores:
    """Sum per client, on the host and in one order: scatter-adds on a GPU have none."""
    n_clients = data.test_counts.size
    owners = np.repeat(np.arange(n_clients), data.test_counts)
    n_correct = np.bincount(owners, weights=right.cpu().numpy(), minlength=n_clients)
    loss_sums = np.bincount(owners, weights=losses.cpu().double().numpy(), minlength=n_clients)
    return Scores(
        metrics=compute_metrics(n_correct, data.test_counts, loss_sums),
        n_correct=n_correct.astype(np.int64),
        loss_sums=loss_sums,
    )
