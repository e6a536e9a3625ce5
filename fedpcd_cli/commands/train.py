"""`fedpcd train`: run a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedpcd_cli.commands.options import FormatOption, QuietOption, SetOption
from fedpcd_cli.views.formats import OutputFormat

if TYPE_CHECKING:
    from fedpcd_cli.recipe.load import ResolvedRecipe


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped one.")],
    overrides: SetOption = None,
    force: Annotated[bool, typer.Option("--force", help="Start again even if the run exists.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    quiet: QuietOption = False,
    output_format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Train one rule on one federation and print its fairness metrics.

    The run lies in <output.root>/<recipe>/<rule>-s<seed>-<digest>; equal recipes share a directory, and a
    finished one is shown, not run again.
    """
    from fedpcd_cli.commands.report import print_report
    from fedpcd_cli.errors import UsageError
    from fedpcd_cli.recipe.library import find_recipe
    from fedpcd_cli.recipe.load import load_recipe
    from fedpcd_cli.store.atomic import storage_errors
    from fedpcd_cli.store.layout import run_directory
    from fedpcd_cli.views.console import message_console

    if force and resume:
        raise UsageError("--force starts again and --resume goes on; give one of them.")
    resolved = load_recipe(find_recipe(recipe), overrides or [])
    plan = resolved.recipe
    root = run_directory(plan.output.root, plan.name, plan.aggregator.name, plan.seed, resolved.digest)
    messages = message_console(quiet=quiet)
    if _is_finished(root, force=force, resume=resume):
        messages.print(f"Already finished; --force runs it again. It is in {root}", soft_wrap=True)
        print_report([root], output_format)
        return
    with storage_errors(root):  # known before anything is loaded
        root.parent.mkdir(parents=True, exist_ok=True)
    _run(resolved, root, resume=resume, quiet=quiet)
    messages.print(f"Run kept in {root}", soft_wrap=True)
    print_report([root], output_format)
    messages.print(f"Next: fedpcd report {root.parent}", soft_wrap=True)


def _is_finished(root: Path, *, force: bool, resume: bool) -> bool:
    """Return whether the run is complete and need not be run again.

    Raises:
        UsageError: It is unfinished and neither --force nor --resume was given, or it is running now.
        StoreError: The folder can't be looked into.
    """
    from fedpcd_cli.errors import StoreError, UsageError
    from fedpcd_cli.store.atomic import storage_errors
    from fedpcd_cli.store.status import RunState, read_status

    with storage_errors(root):
        exists = (root / "status.json").exists()
    if not exists:
        if resume:
            raise UsageError(f"There is no run to resume in {root}.", hint="Leave --resume out to start it.")
        return False
    try:
        status = read_status(root / "status.json")
    except StoreError as error:
        if force:
            return False
        raise UsageError(error.message, hint="Start again with --force.") from None
    # A process on another machine can't be asked; --force takes the user's word that it is gone.
    if status.owner_is_alive and not (force and status.is_elsewhere):
        raise UsageError(
            f"{root} is being run by process {status.pid} on {status.host}.",
            hint="Wait for it, or stop it first; if that process is another program, delete the folder.",
        )
    if status.state is RunState.FINISHED:
        return not force
    if not resume and not force:
        raise UsageError(
            f"{root} is unfinished: {status.round_index} of {status.n_rounds} rounds"
            + (f" ({status.message})" if status.message else "")
            + ".",
            hint="Go on from its last checkpoint with --resume, or start again with --force.",
        )
    return False


def _run(resolved: ResolvedRecipe, root: Path, *, resume: bool, quiet: bool) -> None:
    from fedpcd_cli.commands.loading import load_federation
    from fedpcd_cli.recipe.document import to_yaml
    from fedpcd_cli.views.console import message_console
    from fedpcd_cli.views.live import LiveRun
    from fedpcd_cli.views.steps import show_steps

    plan = resolved.recipe
    console = message_console()
    messages = message_console(quiet=quiet)
    federation = load_federation(plan, messages)
    for note in federation.notes:
        messages.print(f"Note: {note}", soft_wrap=True, markup=False)
    with LiveRun(console, plan.aggregator.title or plan.aggregator.name, plan.rounds, quiet=quiet) as live:
        with show_steps(messages, "loading PyTorch"):
            from fedpcd_cli.engine.run import execute
        execute(resolved, to_yaml(resolved.document), federation, root, live, resume=resume)
