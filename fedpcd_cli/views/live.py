"""A run while it goes on: a live display on a terminal, one plain line per evaluation elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn
from rich.text import Text

from fedpcd_cli.report.measures import MEASURES

if TYPE_CHECKING:
    from fedpcd_cli.engine.evaluate import Evaluation
    from fedpcd_cli.engine.simulate import RoundResult

_SHOWN = ("global_accuracy", "worst10_accuracy", "jain_index")


class _PaceColumn(TextColumn):
    """Rounds per second and the time that is left, from the run's own clock."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(pace(task.completed - task.fields["first"], task.fields["left"], task.fields["seconds"]))


def pace(n_done: float, n_left: float, seconds: float) -> str:
    """Return `1.92 rounds/s, 0:00:27 left`."""
    if n_done < 1 or seconds <= 0:
        return "first round …"
    rate = n_done / seconds
    speed = f"{rate:.2f} rounds/s" if rate >= 0.1 else f"{1 / rate:.0f} s/round"
    left = round(n_left / rate)
    return f"{speed}, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"


class LiveRun:
    """Shows a run on the message console; a context manager and a `RunObserver`.

    Args:
        console: Where messages go.
        label: Name of the rule.
        n_rounds: T.
        quiet: Show warnings only.
    """

    def __init__(self, console: Console, label: str, n_rounds: int, *, quiet: bool = False) -> None:
        self._console = console
        self._label = label
        self._n_rounds = n_rounds
        self._quiet = quiet
        self._facts: dict[str, str] = {}
        self._started = time.monotonic()
        self._first = 0
        self._progress = Progress(
            TextColumn("{task.fields[label]} round {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=20),
            _PaceColumn(),
            console=console,
        )
        self._task: TaskID | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, environment: Mapping[str, Any], first_round: int) -> None:
        """Say what the run uses, and start the display."""
        self._started = time.monotonic()
        self._first = first_round - 1
        if self._quiet:
            return
        data, partition, model = environment["data"], environment["partition"], environment["model"]
        self._console.print(
            f"{self._label} on {data['dataset']}: {partition['n_clients']} clients "
            f"({environment['cohort_size']} a round), {model['name']} with {model['n_params']:,} parameters, "
            f"{environment['device']}, {environment['threads']} of {environment['cores']} cores",
            soft_wrap=True,
        )
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._task = self._progress.add_task(
                "", total=self._n_rounds, completed=self._first, label=self._label, first=self._first,
                left=self._n_rounds - self._first, seconds=0.0,
            )  # fmt: skip
            self._live = Live(self._render(), console=self._console, refresh_per_second=4, transient=True)
            self._live.start()

    def round_finished(self, result: RoundResult) -> None:
        """Advance the display."""
        diagnostics = result.record.diagnostics
        if "n_active" in diagnostics:
            self._facts["active"] = f"{diagnostics['n_active']}/{diagnostics.get('n_constraints', '?')}"
        if diagnostics.get("angle_degrees") is not None:
            self._facts["angle"] = f"{diagnostics['angle_degrees']:.1f}°"
        if result.record.training_loss is not None:
            self._facts["loss"] = f"{result.record.training_loss:.3f}"
        if self._live is not None and self._task is not None:
            done = result.record.round_index
            self._progress.update(
                self._task,
                completed=done,
                left=self._n_rounds - done,
                seconds=time.monotonic() - self._started,
            )
            self._live.update(self._render())

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show the newest metrics; without a terminal, as one plain line."""
        values = (evaluation.personal or evaluation.scores).metrics.as_dict()
        shown = {MEASURES[key].title.lower(): MEASURES[key].format(values[key]) for key in _SHOWN}
        self._facts |= shown
        if self._live is not None:
            self._live.update(self._render())
        elif not self._quiet:
            done = evaluation.round_index
            facts = ", ".join(f"{key} {value}" for key, value in self._facts.items())
            speed = ""
            if done > self._first:
                elapsed = time.monotonic() - self._started
                speed = f", {pace(done - self._first, self._n_rounds - done, elapsed)}"
            self._console.print(f"round {done}/{self._n_rounds}: {facts}{speed}", soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning above the display."""
        self._console.print(Text.assemble(("warning: ", "yellow"), text), soft_wrap=True)

    def _render(self) -> RenderableType:
        facts = Text(overflow="fold")
        for key, value in self._facts.items():
            if key == "loss" and self._console.width < 90:
                continue
            facts.append(f"{key} ", style="dim").append(f"{value}  ", style="bold")
        return Group(self._progress, facts)
