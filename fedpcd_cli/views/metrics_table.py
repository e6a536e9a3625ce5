"""The table of fairness metrics, for one run or several."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from fedpcd_cli.metrics import DEFINITIONS
from fedpcd_cli.views.run_summary import RunSummary

SHOWN = (
    "global_accuracy",
    "mean_accuracy",
    "worst10_accuracy",
    "best10_accuracy",
    "accuracy_std",
    "jain_index",
)


def format_metric(key: str, value: float | None) -> str:
    """Return accuracies and spread in percent with two decimals, Jain and loss with three."""
    if value is None:
        return "–"
    return f"{value:.3f}" if key in ("jain_index", "loss") else f"{100 * value:.2f}"


def metrics_table(runs: Sequence[RunSummary]) -> Table:
    """Return one row per run, the caption naming everything that the numbers depend on."""
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=caption(runs),
        caption_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    same_recipe = len({run.recipe for run in runs}) == 1
    if not same_recipe:
        table.add_column("Recipe", overflow="fold")
    table.add_column("Rule", overflow="fold", min_width=10)
    some_unfinished = any(run.state != "finished" for run in runs)
    if some_unfinished:
        table.add_column("State", no_wrap=True)
    table.add_column("Seed", justify="right", no_wrap=True)
    table.add_column("Round", justify="right", no_wrap=True)
    for key in SHOWN:
        table.add_column(DEFINITIONS[key][0], justify="right", min_width=6)
    for run in runs:
        cells = [run_label(run, runs), *([run.state] if some_unfinished else [])]
        cells += [str(run.seed), "–" if run.round_index is None else str(run.round_index)]
        cells += [format_metric(key, run.metrics[key] if run.metrics else None) for key in SHOWN]
        table.add_row(*([] if same_recipe else [run.recipe]), *cells)
    return table


def run_label(run: RunSummary, runs: Sequence[RunSummary]) -> str:
    """Return the rule's name, with those of its parameters that differ among the runs shown."""
    same_rule = [other.params for other in runs if other.aggregator == run.aggregator]
    differing = [key for key, value in run.params.items() if any(params.get(key) != value for params in same_rule)]
    name = f"{run.aggregator} ({run.model})" if run.model == "personal" else run.aggregator
    return " ".join([name, *(f"{key}={run.params[key]}" for key in differing)])


def caption(runs: Sequence[RunSummary]) -> str:
    """Return what was measured, on what, and under which protocol."""
    lines = []
    for dataset, scheme, protocol, n_clients in dict.fromkeys(
        (run.dataset, run.scheme, run.protocol, run.n_clients) for run in runs
    ):
        group = [
            run
            for run in runs
            if (run.dataset, run.scheme, run.protocol, run.n_clients) == (dataset, scheme, protocol, n_clients)
        ]
        evaluated = ", ".join(str(n) for n in dict.fromkeys(run.n_evaluated for run in group))
        seeds = ", ".join(str(seed) for seed in dict.fromkeys(run.data_seed for run in group))
        lines.append(
            f"{dataset}, {n_clients} clients ({evaluated} evaluated), {scheme}, {protocol} test data, "
            f"data seed {seeds}."
        )
        lines += [f"Note: {note}" for note in dict.fromkeys(note for run in group for note in run.notes)]
    lines.append("Accuracies and spread in percent, at the last evaluated round; each client counts once.")
    return "\n".join(lines)
