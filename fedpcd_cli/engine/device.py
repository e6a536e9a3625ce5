"""Where a run computes, and with how much of the machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch

from fedpcd_cli.errors import UsageError

_MOST_THREADS = 64  # on a smaller machine: a recipe written for a larger one still runs


def resolve_device(name: str) -> torch.device:
    """Return the device of `engine.device`; `auto` takes cuda, then mps, then cpu.

    Raises:
        UsageError: The device is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= n_devices:
            raise UsageError(
                f"engine.device must be a device of this machine; found '{name}' with {n_devices} CUDA devices.",
                hint="Set engine.device to 'auto' or 'cpu'.",
            )
        # Bit-for-bit equal runs need deterministic kernels; cuBLAS reads its setting at its first use.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError(
            "engine.device must be a device of this machine; found 'mps', which is not available.",
            hint="Set engine.device to 'auto' or 'cpu'.",
        )
    return device


def available_cores() -> int:
    """Return the number of cores this process may use: CPU affinity and the cgroup's quota respected."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota(Path("/sys/fs/cgroup/cpu.max"))
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def _cgroup_quota(path: Path) -> float | None:
    try:
        limit, period = path.read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return None


def resolve_threads(threads: int | str) -> int:
    """Return the number of threads of `engine.threads`; `auto` takes every available core.

    Raises:
        UsageError: More than any machine of this size can use: OpenMP would end the process.
    """
    if isinstance(threads, str):
        return available_cores()
    limit = max(_MOST_THREADS, os.cpu_count() or 1)
    if threads > limit:
        raise UsageError(
            f"engine.threads must be at most {limit} on this machine; found {threads}.",
            hint="Set engine.threads to 'auto'.",
        )
    return threads


def set_threads(n_threads: int) -> None:
    """Let torch use that many threads in this process."""
    torch.set_num_threads(n_threads)
