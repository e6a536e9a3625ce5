"""What a client does in a round: a few epochs of SGD from the received model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from fedpcd_cli.aggregators.base import Needs
from fedpcd_cli.engine.device_data import DeviceData
from fedpcd_cli.engine.flat_model import FlatModel
from fedpcd_cli.models.dropout import set_dropout_generator
from fedpcd_cli.seeds import torch_generator

if TYPE_CHECKING:
    from fedpcd_cli.recipe.schema import LocalSection

_LOSS_BATCH = 1000


@dataclass(frozen=True)
class ClientReport:
    """What a client sends beside its update; losses are computed only where the rule asks for them."""

    running_loss: float
    received_loss: float | None = None
    final_loss: float | None = None


class LocalTrainer:
    """Trains clients one after the other in one network.

    A client's result is a function of the received model, its own samples and the streams named by
    (seed, purpose, round, client): not of other clients, nor of their order.
    """

    def __init__(self, model: FlatModel, data: DeviceData, local: LocalSection, needs: Needs, seed: int) -> None:
        self._model = model
        self._data = data
        self._local = local
        self._needs = needs
        self._seed = seed
        self._device = model.initial.device

    def train(
        self,
        params: torch.Tensor,
        buffers: torch.Tensor,
        client_id: int,
        round_index: int,
        lr: float,
        update: torch.Tensor,
        personal: torch.Tensor | None = None,
    ) -> ClientReport:
        """Train one client and write its pseudo-gradient.

        Args:
            params: w_t, `[P]`; not changed.
            buffers: The server's flat buffers, `[B]`; loaded into the network first.
            client_id: The client.
            round_index: t.
            lr: Local learning rate of the round.
            update: Receives g_i = (w_t - w_i) / lr, `[P]`; the client trains in this memory.
            personal: The client's personal model, `[P]`, updated in place, if the rule keeps one.
        """
        model = self._model
        model.load_buffers(buffers)
        received_loss = self._mean_loss(params, client_id) if self._needs.received_loss else None
        if self._needs.full_batch_gradient:
            return ClientReport(self._full_gradient(params, client_id, update), received_loss)
        update.copy_(params)
        running = self._sgd(update, client_id, round_index, lr, params, personal)
        final_loss = self._mean_loss(update, client_id) if self._needs.final_loss else None
        torch.sub(params, update, out=update).div_(lr)
        return ClientReport(running, received_loss, final_loss)

    def _sgd(
        self,
        flat: torch.Tensor,
        client_id: int,
        round_index: int,
        lr: float,
        params: torch.Tensor,
        personal: torch.Tensor | None,
    ) -> float:
        """Run the local steps in place in `flat`, as `torch.optim.SGD` would; return the mean batch loss."""
        stream = (round_index, client_id)
        set_dropout_generator(
            self._model.module, torch_generator(self._seed, "dropout", *stream, device=self._device)
        )
        augmentation = torch_generator(self._seed, "augment", *stream, device=self._device)
        self._model.module.train()
        momentum: list[torch.Tensor] | None = None
        personal_momentum: list[torch.Tensor] | None = None
        loss_sum = torch.zeros((), device=self._device, dtype=flat.dtype)
        n_steps = 0
        self._model.bind(flat)
        for batch in self._batches(client_id, torch_generator(self._seed, "shuffle", *stream)):
            inputs = self._inputs(batch, augmentation)
            targets = self._data.targets[batch]
            if personal is not None:
                personal_momentum = self._personal_step(inputs, targets, personal, params, lr, personal_momentum)
                self._model.bind(flat)
            loss, gradients = self._gradients(inputs, targets)
            momentum = self._step(gradients, lr, momentum)
            if self._needs.repeated_step_proximal is not None:
                self._step(self._pulled(gradients, flat, params, self._needs.repeated_step_proximal), lr, None)
            loss_sum += loss
            n_steps += 1
        return float(loss_sum) / n_steps

    def _personal_step(
        self,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        personal: torch.Tensor,
        params: torch.Tensor,
        lr: float,
        momentum: list[torch.Tensor] | None,
    ) -> list[torch.Tensor] | None:
        """One step of v <- v - lr (grad F_i(v) + lambda (v - w_t)) (Ditto, Algorithm 1)."""
        self._model.bind(personal)
        _, gradients = self._gradients(inputs, targets)
        pulled = self._pulled(gradients, personal, params, self._needs.personal_proximal or 0.0)
        return self._step(pulled, lr, momentum)

    def _pulled(
        self, gradients: tuple[torch.Tensor, ...], flat: torch.Tensor, params: torch.Tensor, weight: float
    ) -> tuple[torch.Tensor, ...]:
        """Add weight * (flat - params) to the gradients, in place."""
        pull = (flat - params).mul_(weight)
        for gradient, slot in zip(gradients, self._model.layout.slots, strict=True):
            gradient.add_(pull[slot.span].view(slot.shape))
        return gradients

    def _gradients(
        self, inputs: torch.Tensor, targets: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        loss = functional.cross_entropy(self._model.module(inputs), targets)
        return loss.detach(), torch.autograd.grad(loss, self._model.parameters)

    def _step(
        self, gradients: tuple[torch.Tensor, ...], lr: float, momentum: list[torch.Tensor] | None
    ) -> list[torch.Tensor] | None:
        """Change the bound parameters by one SGD step; returns the momentum buffers."""
        weights = [parameter.data for parameter in self._model.parameters]
        direction = list(gradients)
        if self._local.weight_decay > 0:
            torch._foreach_add_(direction, weights, alpha=self._local.weight_decay)
        if self._local.momentum > 0:
            if momentum is None:
                momentum = [g.clone() for g in direction]
            else:
                torch._foreach_mul_(momentum, self._local.momentum)
                torch._foreach_add_(momentum, direction)
            direction = momentum
        torch._foreach_add_(weights, direction, alpha=-lr)
        return momentum

    def _batches(self, client_id: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
        """Yield sample indices batch by batch, reshuffled every epoch, the last short batch kept.

        The order is drawn on the host so that it is the same on every device.
        """
        indices = self._data.train_indices[client_id]
        size = self._local.batch_size
        per_epoch = -(-indices.numel() // size)
        n_steps = self._local.steps if self._local.steps is not None else (self._local.epochs or 1) * per_epoch
        for step in range(n_steps):
            position = step % per_epoch
            if position == 0:
                shuffle = torch.randperm(indices.numel(), generator=generator)
                order = indices[shuffle.to(self._device, non_blocking=True)]
            yield order[position * size : (position + 1) * size]

    def _inputs(self, batch: torch.Tensor, augmentation: torch.Generator | None = None) -> torch.Tensor:
        return self._data.batch(batch, images_last=self._model.uses_images_last, augmentation=augmentation)

    def _mean_loss(self, flat: torch.Tensor, client_id: int) -> float:
        """Return the mean loss over the client's training set at `flat`, dropout off."""
        self._model.bind(flat)
        self._model.module.eval()
        total = torch.zeros((), device=self._device, dtype=flat.dtype)
        indices = self._data.train_indices[client_id]
        with torch.no_grad():
            for batch in torch.split(indices, _LOSS_BATCH):
                logits = self._model.module(self._inputs(batch))
                total += functional.cross_entropy(logits, self._data.targets[batch], reduction="sum")
        return float(total) / indices.numel()

    def _full_gradient(self, params: torch.Tensor, client_id: int, update: torch.Tensor) -> float:
        """Write the full-batch gradient at `params` into `update`; return the mean loss. Dropout is off."""
        self._model.bind(params)
        self._model.module.eval()
        update.zero_()
        indices = self._data.train_indices[client_id]
        total = torch.zeros((), device=self._device, dtype=params.dtype)
        for batch in torch.split(indices, _LOSS_BATCH):
            loss, gradients = self._gradients(self._inputs(batch), self._data.targets[batch])
            share = batch.numel() / indices.numel()
            total += loss * share
            for gradient, slot in zip(gradients, self._model.layout.slots, strict=True):
                update[slot.span].view(slot.shape).add_(gradient, alpha=share)
        return float(total)
