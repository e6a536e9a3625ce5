"""Follows runs in progress: the table anew whenever one of them came further."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from fedpcd_cli.errors import StoreError
from fedpcd_cli.report.build import Options, Report, build_report
from fedpcd_cli.store.reader import RunReader, find_runs
from fedpcd_cli.store.status import RunState
from fedpcd_cli.views.console import message_console
from fedpcd_cli.views.report import print_terminal

POLL_SECONDS = 2.0
GRACE_SECONDS = 30.0
"""How long a sweep may take to start its next run before it counts as over."""

Seen = tuple[tuple[str, str, int, int], ...]


def follow(
    paths: Sequence[Path],
    options: Options,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Show progress until no run is running: on a terminal the whole table, else one plain line per change.

    Both go to stderr, so that stdout holds the final table alone.

    Raises:
        StoreError: No run can be shown.
    """
    console = message_console()
    seen: Seen | None = None
    last_alive = clock() if any(state == RunState.RUNNING for _, state, _, _ in look(paths)) else None
    while last_alive is not None:
        now = look(paths)
        if now != seen:
            seen = now
            report = build_report(paths, options)
            if console.is_terminal:
                console.clear()
                print_terminal(report, console)
            console.print(progress_line(now, report), soft_wrap=True, markup=False)
        if any(state == RunState.RUNNING for _, state, _, _ in now):
            last_alive = clock()
        elif len(now) == 1:
            break  # one run, and it is over: no sweep to wait for
        elif clock() - last_alive >= GRACE_SECONDS:
            break
        sleep(POLL_SECONDS)
    if seen is not None and console.is_terminal:
        console.clear()


def look(paths: Sequence[Path]) -> Seen:
    """Return path, state, round and size of the records of every run; unreadable ones are left to the report."""
    found = []
    for root in find_runs(list(paths)):
        reader = RunReader(root)
        try:
            status = reader.status
        except StoreError:
            continue
        is_gone = status.state is RunState.RUNNING and not status.owner_is_alive
        files = [reader.paths.evaluations, reader.paths.rounds]
        sizes = [path.stat().st_size if path.exists() else 0 for path in files]
        found.append((str(root), "killed" if is_gone else str(status.state), status.round_index, sum(sizes)))
    return tuple(found)


def progress_line(now: Seen, report: Report) -> str:
    """Return `2 running, 7 finished, 1 diverged; fedpcd seed 3 at 120 of 500`."""
    counts = Counter(state for _, state, _, _ in now)
    text = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    running = [m.run for m in report.members if m.run.state == RunState.RUNNING and m.run.model == "global"]
    if not running:
        waiting = f"; waiting {GRACE_SECONDS:.0f} s for another run to start" if len(now) > 1 else ""
        return f"{text}{waiting}"
    shown = ", ".join(
        f"{run.aggregator} seed {run.seed} at {run.reached} of {run.n_rounds}" for run in running[:4]
    )
    return f"{text}; {shown}" + (f" and {len(running) - 4} more" if len(running) > 4 else "")
