"""A network whose trainable parameters are views into one flat vector."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from fedpcd_cli.errors import UsageError
from fedpcd_cli.models.base import ModelSpec
from fedpcd_cli.rounds.layout import ParameterLayout, ParameterSlot
from fedpcd_cli.seeds import derive

_NORMS = (nn.GroupNorm, nn.LayerNorm, nn.modules.batchnorm._NormBase)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def build_module(spec: ModelSpec, sample_shape: tuple[int, ...], n_classes: int, seed: int) -> nn.Module:
    """Build the network with initial weights that depend on the seed alone; global random state is restored.

    Raises:
        UsageError: The network can't take these samples, or uses dropout that can't be given a generator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "model"))
        module = spec.build(sample_shape, n_classes)
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            raise UsageError(
                f"model '{spec.name}' layer '{name}' draws from PyTorch's global random state, so that no run "
                f"could be repeated; found {type(layer).__name__}.",
                hint="Use fedpcd_cli.api.Dropout in its place.",
            )
    return module


class FlatModel:
    """A network bound to a flat parameter vector of length P.

    Binding costs no copy: every parameter becomes a view into the vector, so training the network writes the
    vector, and one subtraction gives a client's whole displacement. Floating-point buffers (BatchNorm
    statistics) lie in a second flat vector of length B; they are not part of P.

    Args:
        module: The network; its current parameters are the initial ones.
        device: Where it runs.
        dtype: float32 or float64.

    Raises:
        UsageError: The network has no trainable parameters.
    """

    def __init__(self, module: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        self.module = module.to(device=device, dtype=dtype)
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise UsageError(f"model {type(module).__name__} has no trainable parameters.")
        self.layout = _layout(module)
        self.parameters = [parameter for _, parameter in named]
        self._buffers = [b for b in module.buffers() if b.is_floating_point()]
        self.n_buffers = sum(b.numel() for b in self._buffers)
        self.uses_images_last = any(isinstance(layer, nn.Conv2d) for layer in module.modules())
        self.initial = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        self.initial_buffers = (
            torch.cat([b.reshape(-1) for b in self._buffers]) if self._buffers else self.initial.new_empty(0)
        )
        self.bind(self.initial.clone())

    def bind(self, flat: torch.Tensor) -> None:
        """Make every parameter a view into `flat`, `[P]`, contiguous."""
        for parameter, slot in zip(self.parameters, self.layout.slots, strict=True):
            parameter.data = flat[slot.span].view(slot.shape)

    def load_buffers(self, flat: torch.Tensor) -> None:
        """Copy the flat buffer vector, `[B]`, into the network."""
        offset = 0
        for buffer in self._buffers:
            buffer.copy_(flat[offset : offset + buffer.numel()].view(buffer.shape))
            offset += buffer.numel()

    def read_buffers(self, out: torch.Tensor) -> None:
        """Copy the network's buffers into a flat vector, `[B]`."""
        offset = 0
        for buffer in self._buffers:
            out[offset : offset + buffer.numel()].copy_(buffer.reshape(-1))
            offset += buffer.numel()

    def state_tensors(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the named parameter tensors of a flat vector, for saving."""
        return {slot.name: flat[slot.span].view(slot.shape).clone() for slot in self.layout.slots}


def _modules_with_parameters(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_modules():
        if any(p.requires_grad for p in child.parameters(recurse=False)):
            yield name, child


def _layout(module: nn.Module) -> ParameterLayout:
    """Lay out all trainable parameters in registration order, in layer groups.

    Weight and bias of one module form a group; a normalization layer joins the convolution right before it.
    """
    slots: list[ParameterSlot] = []
    seen: set[int] = set()
    offset = 0
    group = -1
    previous: nn.Module | None = None
    for prefix, child in _modules_with_parameters(module):
        joins = isinstance(child, _NORMS) and isinstance(previous, _CONVOLUTIONS)
        if not joins:
            group += 1
        for name, parameter in child.named_parameters(recurse=False):
            if not parameter.requires_grad or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            full_name = f"{prefix}.{name}" if prefix else name
            slots.append(ParameterSlot(full_name, tuple(parameter.shape), offset, group))
            offset += parameter.numel()
        previous = child
    return ParameterLayout(tuple(slots))
