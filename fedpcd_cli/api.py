"""All that a plug-in imports. Importing it loads no torch.

Names here keep their meaning within a minor version of fedpcd; everything else may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedpcd_cli.aggregators.base import Aggregator, Needs, ServerContext, State
from fedpcd_cli.components import Component, Param, ParameterError, Problem
from fedpcd_cli.data.assemble import array_digest, assemble_dataset, join_splits
from fedpcd_cli.data.cache import cached_arrays
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext
from fedpcd_cli.data.partition import Dealing, PartitionScheme, Pool
from fedpcd_cli.errors import DataError, FedPCDError, PluginError, UsageError
from fedpcd_cli.hookspecs import hookimpl
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.rounds.aggregation import Aggregation
from fedpcd_cli.rounds.cohort import Cohort
from fedpcd_cli.rounds.layout import ParameterLayout, ParameterSlot

if TYPE_CHECKING:
    from fedpcd_cli.linalg.combine import combine
    from fedpcd_cli.linalg.gram import gram_matrix, inner_products
    from fedpcd_cli.linalg.simplex import project_simplex
    from fedpcd_cli.models.dropout import Dropout
    from fedpcd_cli.qp.simplex import SimplexSolution, minimum_norm

__all__ = [
    "Aggregation",
    "Aggregator",
    "Cohort",
    "Component",
    "DataError",
    "Dataset",
    "DatasetSource",
    "Dealing",
    "Dropout",
    "FedPCDError",
    "LoadContext",
    "ModelSpec",
    "Needs",
    "Param",
    "ParameterError",
    "ParameterLayout",
    "ParameterSlot",
    "PartitionScheme",
    "PluginError",
    "Pool",
    "Problem",
    "ServerContext",
    "SimplexSolution",
    "State",
    "UsageError",
    "array_digest",
    "assemble_dataset",
    "cached_arrays",
    "combine",
    "gram_matrix",
    "hookimpl",
    "inner_products",
    "join_splits",
    "minimum_norm",
    "project_simplex",
]

_LAZY = {
    "Dropout": "fedpcd_cli.models.dropout",
    "SimplexSolution": "fedpcd_cli.qp.simplex",
    "combine": "fedpcd_cli.linalg.combine",
    "gram_matrix": "fedpcd_cli.linalg.gram",
    "inner_products": "fedpcd_cli.linalg.gram",
    "minimum_norm": "fedpcd_cli.qp.simplex",
    "project_simplex": "fedpcd_cli.linalg.simplex",
}


def __getattr__(name: str) -> Any:
    """Import the names that need torch only when they are used."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
