"""Nested data with tensors inside, as named tensors and one JSON text: nothing in it can run code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fedpcd_cli.errors import StoreError


def flatten_tree(tree: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """Split nested dicts, lists and scalars into JSON-ready structure and named tensors.

    Raises:
        StoreError: A value that is neither plain data, a tensor nor a NumPy array.
    """
    tensors: dict[str, torch.Tensor] = {}
    return _flatten(tree, "state", tensors), tensors


def _flatten(node: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    if node is None or isinstance(node, bool | int | float | str):
        return {"value": node}
    if isinstance(node, np.generic):
        return {"value": node.item()}
    if isinstance(node, torch.Tensor | np.ndarray):
        name = str(len(tensors))
        if isinstance(node, torch.Tensor):
            tensors[name] = node.detach().contiguous()
            return {"tensor": name}
        tensors[name] = torch.from_numpy(np.ascontiguousarray(node))
        return {"array": name, "shape": list(node.shape)}
    if isinstance(node, Mapping):
        items = []
        for key, value in node.items():
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise StoreError(f"{path}: keys of a saved state must be text or int; found {key!r}.")
            items.append([key, _flatten(value, f"{path}.{key}", tensors)])
        return {"dict": items}
    if isinstance(node, list | tuple):
        kind = "list" if isinstance(node, list) else "tuple"
        return {kind: [_flatten(value, f"{path}[{i}]", tensors) for i, value in enumerate(node)]}
    raise StoreError(f"{path}: a saved state holds plain data and tensors only; found {type(node).__name__}.")


def unflatten_tree(structure: Any, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    """Rebuild what :func:`flatten_tree` split; tensors go to `device`, arrays stay NumPy's."""
    kind, content = next(iter(structure.items()))
    if kind == "value":
        return content
    if kind == "tensor":
        return tensors[content].to(device)
    if kind == "array":
        return tensors[content].cpu().numpy().reshape(structure["shape"])
    if kind == "dict":
        return {key: unflatten_tree(value, tensors, device) for key, value in content}
    values = [unflatten_tree(value, tensors, device) for value in content]
    return values if kind == "list" else tuple(values)
