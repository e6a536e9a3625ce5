"""What the server holds when the cohort has reported: all that an aggregator sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedpcd_cli.rounds.layout import ParameterLayout

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False, kw_only=True)
class Cohort:
    """The healthy clients of one round and their updates.

    Clients whose update has NaN or Inf, or that hold no examples, were taken out by the engine before: every
    row here is finite. The order of rows carries no meaning.

    Attributes:
        round_index: t, counted from 1.
        n_rounds: T.
        n_clients: N, all clients of the federation.
        client_ids: Stable ids of the clients, `[m]`.
        n_examples: Training examples of each client, int64 `[m]`.
        pseudo_gradients: g_i = (w_t - w_i) / local_lr after local training, `[m, P]`, float, on the run's
            device. Read only; see :attr:`Needs.keeps_updates` before keeping a reference.
        params: w_t, the parameters that were sent to the clients, `[P]`. Read only.
        local_lr: Learning rate of the clients in this round.
        server_lr: Multiple of `local_lr` that the server will step by.
        layout: Order, shapes and layer groups of the P parameters.
        received_losses: F_i, mean training loss at the received model, float64 `[m]`, if declared as needed.
        running_losses: L_i, mean mini-batch loss during local training, float64 `[m]`, if declared as needed.
        final_losses: Mean training loss after local training, float64 `[m]`, if declared as needed.
    """

    round_index: int
    n_rounds: int
    n_clients: int
    client_ids: tuple[int, ...]
    n_examples: np.ndarray
    pseudo_gradients: torch.Tensor
    params: torch.Tensor
    local_lr: float
    server_lr: float
    layout: ParameterLayout
    received_losses: np.ndarray | None = None
    running_losses: np.ndarray | None = None
    final_losses: np.ndarray | None = None

    @property
    def size(self) -> int:
        """m, the number of clients that count in this round."""
        return len(self.client_ids)

    @property
    def client_weights(self) -> np.ndarray:
        """Share of examples within the cohort, float64 `[m]`, sums to 1."""
        return np.asarray(self.n_examples / self.n_examples.sum(), dtype=np.float64)
