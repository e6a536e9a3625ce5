"""A report for scripts: tidy rows, and one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.report.build import BlockReport, Report
from fedpcd_cli.report.grouping import Group, Member
from fedpcd_cli.report.measures import Measure
from fedpcd_cli.report.statistics import CONFIDENCE, Summary


def tidy_rows(report: Report) -> list[dict[str, Any]]:
    """Return one row per run and metric; values are not scaled (accuracies are shares)."""
    rows = []
    for number, part in enumerate(report.blocks, start=1):
        for group in part.block.groups:
            for member in group.members:
                facts = {"block": number, "group": group.label, **run_facts(member)}
                for measure in report.options.measures:
                    value = member.chosen.values[measure.key] if member.chosen else None
                    rows.append({**facts, "metric": measure.key, "value": value})
    return rows


def run_rows(report: Report) -> list[dict[str, Any]]:
    """Return one row per run and model, a column per metric."""
    return [
        {**run_facts(member), **dict.fromkeys(DEFINITIONS), **(member.chosen.values if member.chosen else {})}
        for member in report.members
    ]


def run_facts(member: Member) -> dict[str, Any]:
    """Return everything about a run but its values, flat."""
    run, chosen = member.run, member.chosen
    rounds = chosen.rounds if chosen else ()
    return {
        "path": str(run.root),
        "recipe": run.recipe,
        "dataset": run.dataset,
        "scheme": run.scheme,
        "protocol": run.protocol,
        "n_clients": run.n_clients,
        "n_evaluated": chosen.n_evaluated if chosen else 0,
        "partition_digest": run.digest,
        "aggregator": run.aggregator,
        "model": run.model,
        **{key: value for key, value in run.settings.items() if key.startswith("aggregator.")},
        "seed": run.seed,
        "data_seed": run.data_seed,
        "state": run.state,
        "averaged": member.counts,
        "round": rounds[-1] if rounds else None,
        "first_round": rounds[0] if rounds else None,
        "rounds": run.n_rounds,
    }


def document(report: Report) -> dict[str, Any]:
    """Return everything, JSON-ready: runs, groups with their statistics, differences, targets, the left out."""
    options = report.options
    return {
        "runs": run_rows(report),
        "at": options.at.kind if options.at.kind in ("last", "best") else f"{options.at.kind} {options.at.value}",
        "chosen_on_test_data": options.at.kind == "best" or bool(options.best_over),
        "confidence": CONFIDENCE,
        "metrics": {m.key: {"title": m.title, "definition": m.definition} for m in options.wanted},
        "blocks": [_block(part, options.measures) for part in report.blocks],
        "left_out": list(report.left_out),
    }


def _block(part: BlockReport, measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        "facts": dict(part.block.facts),
        "groups": [_group(group, measures) for group in part.block.groups],
        "differences": [
            {
                "group": d.group.label,
                "baseline": d.baseline.label,
                "metrics": {key: _summary(summary) for key, summary in d.summaries.items()},
            }
            for d in part.differences
        ],
        "rounds_to_target": [
            {
                "group": r.group.label,
                "target": r.target,
                "of_mean_curve": r.of_mean,
                "per_seed": list(r.rounds),
                "n_runs": r.n_runs,
            }
            for r in part.reached
        ],
        "notes": list(part.notes),
    }


def _group(group: Group, measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        "label": group.label,
        "aggregator": group.aggregator,
        "model": group.model,
        "seeds": [member.run.seed for member in group.averaged],
        "not_averaged": [
            {"path": str(m.run.root), "seed": m.run.seed, "state": m.run.state, "round": m.run.reached}
            for m in group.apart
        ],
        "metrics": {measure.key: _summary(group.summary(measure.key)) for measure in measures},
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    low, high = summary.interval or (None, None)
    return {"n": summary.n, "mean": summary.mean, "std": summary.std, "low": low, "high": high}
