"""Progress of steps before the rounds: a spinner on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

_QUIET_SECONDS = 2.0
_INTERVAL_SECONDS = 10.0


@contextmanager
def show_steps(
    console: Console, first: str, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Show what is being done, and yield the function that is told.

    Args:
        console: Where messages go.
        first: The first step.
        clock: Seconds; for tests.

    Yields:
        A function to call with each step. Without a terminal it prints nothing in the first two seconds and
        then at most one line in ten, so that a log tells what takes long and stays short.
    """
    if console.is_terminal and not console.is_dumb_terminal:
        with console.status(escape(first)) as status:
            yield lambda step: status.update(escape(step))
        return
    due = clock() + _QUIET_SECONDS

    def tell(step: str) -> None:
        nonlocal due
        if clock() >= due:
            due = clock() + _INTERVAL_SECONDS
            console.print(step, markup=False, soft_wrap=True)

    yield tell
