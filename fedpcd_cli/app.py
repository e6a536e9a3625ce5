"""The `fedpcd` command. Importing this module loads no torch."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import NoReturn

import typer

from fedpcd_cli import __version__
from fedpcd_cli.commands.config import config
from fedpcd_cli.commands.data import data
from fedpcd_cli.commands.explain_round import explain_round
from fedpcd_cli.commands.plugins import plugins
from fedpcd_cli.commands.recipes import recipes_app
from fedpcd_cli.commands.report import report
from fedpcd_cli.commands.train import train
from fedpcd_cli.commands.validate import validate
from fedpcd_cli.errors import ExitCode, FedPCDError, UsageError, is_out_of_memory, out_of_memory

EPILOG = (
    "Exit codes: 0 fine, 1 the run failed, 2 usage or recipe, 3 diverged (non-finite numbers), 4 plug-in, "
    "130 interrupted."
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

app = typer.Typer(
    name="fedpcd",
    help="Fair federated learning experiments: FedPCD and the rules it is compared with.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, report, data, config, validate, plugins):
    app.command()(command)
app.command("explain-round")(explain_round)
app.add_typer(recipes_app, name="recipes")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedpcd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Fair federated learning experiments: FedPCD and the rules it is compared with."""


def _check_working_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError("The current folder no longer exists.", hint="Change to another one.") from None


def main() -> None:
    """Run the command line; errors that a user can act on are printed as text, with their exit code."""
    # OpenMP reads this when torch loads. Threads that wait actively are fastest alone on a machine, but two such
    # runs side by side stall each other tenfold and worse.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters that a terminal can't show become '?'
            stream.reconfigure(errors="replace")
    try:
        _check_working_folder()
        app()
    except FedPCDError as error:
        _stop(f"error: {error}", error.exit_code)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _stop(f"error: {out_of_memory(error)}", ExitCode.RUN_FAILED)
    except KeyboardInterrupt:
        _stop("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stderr.close()
        sys.exit(int(ExitCode.OK))
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _stop(f"error: the output can't be written: {error.strerror}.", ExitCode.RUN_FAILED)


def _stop(text: str, code: ExitCode) -> NoReturn:
    """Print an error and end; plain, since a recipe's brackets are no markup and a log's lines aren't wrapped."""
    with contextlib.suppress(OSError):  # nobody may be reading
        print(text, file=sys.stderr, flush=True)
    sys.exit(int(code))
