"""Plug-in of the rules that FedPCD is compared with."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_baselines.afl import AFL
from fedpcd_baselines.craft import CRAFT
from fedpcd_baselines.ditto import Ditto
from fedpcd_baselines.fedavg import FedAvg
from fedpcd_baselines.fedfv import FedFV
from fedpcd_baselines.fedheal import FedHEAL
from fedpcd_baselines.fedlf import FedLF
from fedpcd_baselines.fedmgda_plus import FedMGDAPlus
from fedpcd_baselines.fedpw import FedPW
from fedpcd_baselines.qffl import QFFL
from fedpcd_cli.api import Aggregator, hookimpl


@hookimpl
def fedpcd_register_aggregators(register: Callable[[type[Aggregator]], None]) -> None:
    """Register the rules, in the order of their papers."""
    for rule in (
        FedAvg,
        AFL,
        QFFL,
        Ditto,
        FedFV,
        FedMGDAPlus,
        FedLF,
        FedHEAL,
        FedPW,
        CRAFT,
    ):
        register(rule)
