"""Built-in plug-in: FedPCD itself."""

from __future__ import annotations

from collections.abc import Callable

from fedpcd_cli.api import Aggregator, hookimpl
from fedpcd_cli.pcd.aggregator import FedPCD


@hookimpl
def fedpcd_register_aggregators(register: Callable[[type[Aggregator]], None]) -> None:
    """Register FedPCD."""
    register(FedPCD)
