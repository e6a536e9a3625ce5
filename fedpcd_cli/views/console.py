"""The two consoles: results go to stdout, everything else to stderr.

rich honors NO_COLOR, FORCE_COLOR, TERM=dumb and COLUMNS; without a terminal the width is 80 columns.
"""

from __future__ import annotations

import contextlib
import os

from rich.console import Console


class _Console(Console):
    """A console whose reader may go away, as `head` does: what is left to print is dropped, the work goes on."""

    def on_broken_pipe(self) -> None:
        """Print nothing from now on, and leave nothing behind that fails when the process ends."""
        self.quiet = True
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)


def result_console() -> Console:
    """Return the console for results. Tables keep their width when the output is no terminal."""
    return _Console(highlight=False, soft_wrap=False)


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages."""
    return _Console(stderr=True, highlight=False, quiet=quiet)
