"""Residual blocks with GroupNorm, shared by the ResNets."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with GroupNorm and a shortcut, `[B, C_in, H, W]` to `[B, C_out, H/s, W/s]`.

    The shortcut is a 1x1 convolution where the shape changes (He et al., 2016, option B).
    """

    def __init__(self, n_in: int, n_out: int, stride: int, norm_groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(norm_groups, n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(norm_groups, n_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.GroupNorm(norm_groups, n_out)
            )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.norm1(self.conv1(inputs)))
        return functional.relu(self.norm2(self.conv2(hidden)) + self.shortcut(inputs))


def residual_network(
    channels: int, widths: tuple[int, ...], blocks_per_stage: int, norm_groups: int, n_classes: int
) -> nn.Module:
    """Return a 3x3 stem, one stage of blocks per width (stride 2 from the second on), mean pooling, fc."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False),
        nn.GroupNorm(norm_groups, widths[0]),
        nn.ReLU(),
    ]
    n_in = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks_per_stage):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(ResidualBlock(n_in, width, stride, norm_groups))
            n_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_classes))
