"""Plug-in of the rules that FedPCD is compared with."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_baselines.fedavg import FedAvg
from fedpcd_cli.api import Aggregator, hookimpl


@hookimpl
def fedpcd_register_aggregators(register: Callable[[type[Aggregator]], None]) -> None:
    """Register the rules, in the order of their papers."""
    for rule in (FedAvg,):
        register(rule)
