"""Aggregators: pure functions from a cohort and a state to a direction and the next state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fedpcd_cli.components import Component
from fedpcd_cli.rounds.aggregation import Aggregation
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.layout import ParameterLayout

if TYPE_CHECKING:
    import torch

State = Mapping[str, Any]
"""Nested dicts (keys: text or int) and lists of tensors, NumPy arrays, numbers, texts, booleans and None: all
that an aggregator remembers. It is checkpointed as it is. The engine never uses a state again after it was
passed to `aggregate`, so large tensors in it may be updated in place."""


@dataclass(frozen=True)
class Needs:
    """What a rule asks of the clients beside their update; the engine computes nothing else.

    Attributes:
        received_loss: F_i, mean loss over the client's training set at the received model, dropout off.
        running_loss: L_i, mean of the mini-batch losses during local training.
        final_loss: Mean loss over the client's training set after local training, dropout off.
        keeps_updates: The rule keeps a reference to `cohort.pseudo_gradients` (or a view) in its state: the
            engine hands the matrix over and allocates another for the next round.
        full_batch_gradient: The update is the full-batch gradient at the received model; no local training.
        personal_proximal: Weight of the proximal term of a personal model that each client trains beside the
            global one (Ditto's lambda); None trains no personal model.
        repeated_step_proximal: After each local step a second one with the same gradient plus this weight times
            (w - w_t), on the same model (what the FedLF platform calls Ditto); None trains as usual.
    """

    received_loss: bool = False
    running_loss: bool = False
    final_loss: bool = False
    keeps_updates: bool = False
    full_batch_gradient: bool = False
    personal_proximal: float | None = None
    repeated_step_proximal: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerContext:
    """What is known before the first round.

    Attributes:
        n_clients: N.
        cohort_size: m, the largest cohort that a round can have.
        layout: Order, shapes and layer groups of the P parameters.
        params: Initial parameters w_0, `[P]`. Read only.
    """

    n_clients: int
    cohort_size: int
    layout: ParameterLayout
    params: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Aggregator(Component):
    """Base of all rules. Subclasses are frozen dataclasses; their fields are the recipe's parameters.

    Class attributes:
        name: The word in `aggregator.name`.
        title: The rule's name as papers write it.
        paper: Authors, venue, year.
        idea: The rule in one line, for the table of rules.
        cost: Server cost per round in m, P and what else it depends on.
    """

    kind: ClassVar[str] = "aggregator"
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    idea: ClassVar[str] = ""
    cost: ClassVar[str] = ""

    @property
    def needs(self) -> Needs:
        """What the rule, with these parameters, asks of the clients."""
        return Needs()

    def init(self, context: ServerContext) -> State:
        """Return the state before round 1."""
        return {}

    @abstractmethod
    def aggregate(self, cohort: Cohort, state: State) -> tuple[Aggregation, State]:
        """Return the round's direction and the state for the next round."""

    def evaluated_params(self, params: torch.Tensor, state: State) -> torch.Tensor:
        """Return the parameters that the rule's paper evaluates, `[P]`; by default the newest ones."""
        return params
