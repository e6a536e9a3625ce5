"""The list of installed components."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fedpcd_cli.registry import KINDS, Registry


def component_rows(registry: Registry) -> list[dict[str, Any]]:
    """Return one row per component: kind, name, what it is, parameters with defaults, distribution."""
    rows = []
    for kind in KINDS:
        for name in registry.names(kind):
            registration = registry.components[kind][name]
            component = registration.component
            schemas = component.param_schemas()
            rows.append(
                {
                    "kind": kind,
                    "name": name,
                    "summary": getattr(component, "idea", "") or getattr(component, "summary", ""),
                    "params": {key: schema.get("default") for key, schema in schemas.items()},
                    "distribution": registration.plugin.distribution,
                }
            )
    return rows


def plugin_rows(registry: Registry) -> list[dict[str, Any]]:
    """Return one row per entry point: distribution, version, what it registered or why it failed."""
    return [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "registered": plugin.registered,
            "error": plugin.error,
            "seconds": round(plugin.seconds, 4),
        }
        for plugin in registry.plugins
    ]


def plugins_view(components: list[dict[str, Any]], plugins: list[dict[str, Any]]) -> RenderableType:
    """Return a table of components, and a line per plug-in that failed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("Kind", "Name", "What it is", "Parameters"):
        table.add_column(title, overflow="fold", no_wrap=title in ("Kind", "Name"))
    for row in components:
        params = ", ".join(f"{key}={_short(value)}" for key, value in row["params"].items())
        table.add_row(row["kind"], row["name"], row["summary"], params)
    parts: list[RenderableType] = [table]
    for plugin in plugins:
        if plugin["error"]:
            text = f"{plugin['name']} ({plugin['distribution']} {plugin['version']}) failed: {plugin['error']}"
            parts.append(Text(text, style="red"))
    return Group(*parts)


def _short(value: Any) -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))
