"""What a run ran on."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import TYPE_CHECKING, Any

from fedpcd_cli import __version__
from fedpcd_cli.engine.device import available_cores
from fedpcd_cli.registry import get_registry

if TYPE_CHECKING:
    from fedpcd_cli.data.federation import Federation
    from fedpcd_cli.engine.simulate import Simulation

_PACKAGES = ("torch", "torchvision", "numpy", "daqp", "cvxpy", "clarabel", "scikit-learn", "pydantic", "pluggy")


def describe_environment(simulation: Simulation, federation: Federation) -> dict[str, Any]:
    """Return versions, hardware, plug-ins and data facts, JSON-ready."""
    import torch

    device = simulation.device
    dataset, partition = federation.dataset, federation.partition
    return {
        "fedpcd": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": {name: _version(name) for name in _PACKAGES},
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": simulation.n_threads,
        "cores": available_cores(),
        "precision": simulation.recipe.engine.precision,
        "plugins": [
            {"name": plugin.name, "distribution": plugin.distribution, "version": plugin.version}
            for plugin in get_registry().plugins
            if plugin.error is None
        ],
        "data": {
            "dataset": dataset.name,
            "fingerprint": dataset.fingerprint,
            "notes": list(dataset.notes),
            "n_samples": len(dataset.targets),
            "n_classes": dataset.n_classes,
        },
        "partition": {
            "scheme": partition.scheme,
            "protocol": partition.protocol,
            "n_clients": partition.n_clients,
            "notes": list(partition.notes),
            "digest": partition.digest,
        },
        "model": {
            "name": simulation.recipe.model.name,
            "n_params": simulation.model.layout.n_params,
            "n_buffers": simulation.model.n_buffers,
            "buffer_policy": "averaged by examples" if simulation.model.n_buffers else "none",
        },
        "cohort_size": simulation.cohort_size,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory_mib() -> float:
    """Return the peak resident memory of this process in MiB; 0 where the platform can't tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1024 * 1024 if sys.platform == "darwin" else 1024)
