"""Stopping a run between two rounds when the user or the system asks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequestedError(Exception):
    """Raised inside a run at a point where stopping loses nothing but the round in progress."""


class StopFlag:
    """Remembers that SIGINT or SIGTERM arrived."""

    def __init__(self) -> None:
        self.requested = False

    def check(self) -> None:
        """Raise if a stop was requested.

        Raises:
            StopRequestedError: A signal arrived.
        """
        if self.requested:
            raise StopRequestedError

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Take the first signal as a request, the second as an order."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """Let SIGINT and SIGTERM set a flag for the time of a run; a second one interrupts at once."""
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    previous = {number: signal.signal(number, flag.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
