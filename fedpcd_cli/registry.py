"""Discovery of components through pluggy entry points."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pluggy

from fedpcd_cli import hookspecs
from fedpcd_cli.aggregators.base import Aggregator
from fedpcd_cli.components import Component
from fedpcd_cli.data.dataset import DatasetSource
from fedpcd_cli.data.partition import PartitionScheme
from fedpcd_cli.errors import PluginError, UsageError, did_you_mean
from fedpcd_cli.models.base import ModelSpec

ENTRY_POINT_GROUP = "fedpcd"
_HOOKS: dict[str, tuple[str, type[Component]]] = {
    "aggregator": ("fedpcd_register_aggregators", Aggregator),
    "dataset": ("fedpcd_register_datasets", DatasetSource),
    "partition": ("fedpcd_register_partitions", PartitionScheme),
    "model": ("fedpcd_register_models", ModelSpec),
}
KINDS = tuple(_HOOKS)


@dataclass
class Plugin:
    """One entry point: what it registered, or why it could not."""

    name: str
    distribution: str
    version: str
    seconds: float = 0.0
    error: str | None = None
    registered: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Registration:
    """A component class and where it came from."""

    component: type[Component]
    plugin: Plugin


@dataclass
class Registry:
    """All components that the installed plug-ins offer. A broken plug-in never stops the others."""

    plugins: list[Plugin] = field(default_factory=list)
    components: dict[str, dict[str, Registration]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    clashes: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of all components of a kind."""
        return sorted(self.components[kind])

    def get(self, kind: str, name: str) -> type[Any]:
        """Return the component class of that name.

        Raises:
            PluginError: Two distributions registered this name.
            UsageError: No plug-in registered it; the message has the nearest name and any load failure.
        """
        if (kind, name) in self.clashes:
            owners = " and ".join(self.clashes[(kind, name)])
            raise PluginError(f"{kind} '{name}' is registered twice, by {owners}.", hint="Uninstall one of them.")
        try:
            return self.components[kind][name].component
        except KeyError:
            failed = [plugin for plugin in self.plugins if plugin.error]
            message = f"Unknown {kind} '{name}'.{did_you_mean(name, self.components[kind])}"
            hint = "Run 'fedpcd plugins' to list all."
            if failed:
                hint += " Failed to load: " + "; ".join(f"{p.name} ({p.distribution}): {p.error}" for p in failed)
                raise PluginError(message, hint=hint) from None
            raise UsageError(message, hint=hint) from None

    def add(self, kind: str, component: Any, plugin: Plugin) -> None:
        """Add one class under its name, remembering clashes."""
        base = _HOOKS[kind][1]
        if not (isinstance(component, type) and issubclass(component, base)):
            raise PluginError(f"{kind} {component!r} must be a subclass of {base.__name__}")
        name = component.name
        if not name:
            raise PluginError(f"{kind} {component.__name__} has no name; set the class attribute 'name'")
        existing = self.components[kind].get(name)
        if existing is not None:
            owners = self.clashes.setdefault((kind, name), [existing.plugin.distribution])
            owners.append(plugin.distribution)
            return
        self.components[kind][name] = Registration(component, plugin)
        plugin.registered.setdefault(kind, []).append(name)


def load_module(registry: Registry, plugin: Plugin, load: Callable[[], Any]) -> None:
    """Load one plug-in into the registry; a failure is kept on the plug-in and goes no further."""
    started = time.perf_counter()
    registry.plugins.append(plugin)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(load(), name=plugin.name)
        manager.check_pending()
        for kind, (hook, _) in _HOOKS.items():
            getattr(manager.hook, hook)(register=lambda cls, kind=kind: registry.add(kind, cls, plugin))
    except Exception as error:  # anything a third party's module may raise
        plugin.error = f"{type(error).__name__}: {error}"
    plugin.seconds = time.perf_counter() - started


@lru_cache(maxsize=1)
def get_registry() -> Registry:
    """Load every entry point of group `fedpcd`, one by one, and return what they registered."""
    registry = Registry()
    entry_points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    own = "fedpcd-cli"
    for entry in sorted(entry_points, key=lambda e: (e.dist.name != own if e.dist else True, e.name)):
        plugin = Plugin(
            name=entry.name,
            distribution=entry.dist.name if entry.dist else "unknown",
            version=entry.dist.version if entry.dist else "unknown",
        )
        load_module(registry, plugin, entry.load)
    return registry
