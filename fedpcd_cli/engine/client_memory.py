"""What lives on the clients between rounds, keyed by client id."""

from __future__ import annotations

from collections.abc import Mapping

import torch


class PersonalModels:
    """One personal model, `[P]`, per client that has taken part; the initial one for all others.

    Args:
        initial: w_0, `[P]`, where every client starts.
    """

    def __init__(self, initial: torch.Tensor) -> None:
        self._initial = initial
        self._models: dict[int, torch.Tensor] = {}

    def copy_of(self, client_id: int) -> torch.Tensor:
        """Return a copy of the client's model that may be trained in place."""
        return self._models.get(client_id, self._initial).clone()

    def of(self, client_id: int) -> torch.Tensor:
        """Return the client's model itself; read only."""
        return self._models.get(client_id, self._initial)

    def has_trained(self, client_id: int) -> bool:
        return client_id in self._models

    def store(self, models: Mapping[int, torch.Tensor]) -> None:
        """Take over the models of the clients of a finished round."""
        self._models.update(models)

    def state(self) -> dict[int, torch.Tensor]:
        return dict(self._models)

    def restore(self, models: Mapping[int, torch.Tensor] | None) -> None:
        self._models = {int(client_id): model for client_id, model in (models or {}).items()}
