"""What an aggregator returns for one round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    from fedpcd_cli.rounds.certificate import Certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregation:
    """The update of one round.

    Attributes:
        direction: d in w_{t+1} = w_t - server_lr * local_lr * d, `[P]`, finite, on the cohort's device.
        client_coefficients: Weight of each client's pseudo-gradient in `direction` where the rule is a
            combination of rows, float64 `[m]`; for the record.
        certificate: The program behind the direction, for rules that solve one.
        diagnostics: Small JSON-ready facts for the round's record.
        warnings: Sentences for the user, each shown once per round.
    """

    direction: torch.Tensor
    client_coefficients: np.ndarray | None = None
    certificate: Certificate | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
