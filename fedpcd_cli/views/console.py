"""The two consoles: results go to stdout, everything else to stderr.

rich honors NO_COLOR, FORCE_COLOR, TERM=dumb and COLUMNS; without a terminal the width is 80 columns.
"""

from __future__ import annotations

from rich.console import Console


def result_console() -> Console:
    """Return the console for results. Tables keep their width when the output is no terminal."""
    return Console(highlight=False, soft_wrap=False)


def message_console(*, quiet: bool = False) -> Console:
    """Return the console for progress and messages."""
    return Console(stderr=True, highlight=False, quiet=quiet)
