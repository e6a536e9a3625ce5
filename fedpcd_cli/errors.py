"""Errors that a user can act on, and the exit codes that scripts can rely on.

Every message follows one dialect: where, what is allowed, what was found, what to do next. Anything that is
not a :class:`FedPCDError` is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes of every `fedpcd` command."""

    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    DIVERGED = 3
    PLUGIN = 4
    INTERRUPTED = 130


class FedPCDError(Exception):
    """Base of all errors that are printed as text, without a traceback.

    Args:
        message: One line: where, what is allowed, what was found.
        hint: What to do next; printed on a line of its own.
    """

    exit_code: ExitCode = ExitCode.RUN_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


class UsageError(FedPCDError):
    """A command line or a recipe that can't be carried out as written."""

    exit_code = ExitCode.USAGE


class RecipeError(UsageError):
    """All problems of one recipe, one line each.

    Args:
        problems: The complete lines, `file:line: key ...`.
    """

    def __init__(self, problems: Iterable[str], *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems), hint=hint)


class DataError(UsageError):
    """Data that is missing, unreadable, or not what the recipe says."""


class StoreError(FedPCDError):
    """A run directory or a file in it that can't be read or written."""


class NotARunError(StoreError):
    """A path on the command line that is no run directory."""

    exit_code = ExitCode.USAGE


class PluginError(FedPCDError):
    """A plug-in that failed to load, clashes with another, or broke its contract."""

    exit_code = ExitCode.PLUGIN


class DivergedError(FedPCDError):
    """Training left the finite numbers."""

    exit_code = ExitCode.DIVERGED


class InterruptedRunError(FedPCDError):
    """The user stopped a run; what it had done is on disk."""

    exit_code = ExitCode.INTERRUPTED


def is_out_of_memory(error: BaseException) -> bool:
    """Whether NumPy, PyTorch on the CPU (a plain RuntimeError) or on an accelerator could not allocate."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )


def out_of_memory(error: BaseException) -> FedPCDError:
    """Return the error for the user."""
    text = " ".join(str(error).split())
    return FedPCDError(
        f"there is not enough memory{f' ({text[:200]})' if text else ''}.",
        hint="Use a smaller model, a smaller cohort or a shorter history.",
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known name, or the list of known names if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f" Did you mean '{near[0]}'?"
    return f" Known: {', '.join(names)}." if names else ""
