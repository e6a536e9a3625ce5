"""`fedpcd explain-round`: the program behind one round, and why the direction is what it is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fedpcd_cli.commands.options import FormatOption
from fedpcd_cli.explain.sort_key import SortKey
from fedpcd_cli.views.formats import OutputFormat


class PrimaryChoice(StrEnum):
    """What the objective measures from."""

    FEDAVG = "fedavg"
    NONE = "none"


def explain_round(
    run: Annotated[Path, typer.Argument(help="A run directory, finished or in progress, or a folder with one.")],
    round_wanted: Annotated[
        str, typer.Argument(metavar="[ROUND]", help="A number, last, most-bent, most-active or infeasible.")
    ] = "last",
    everything: Annotated[bool, typer.Option("--all", help="Show every constraint.")] = False,
    active_only: Annotated[bool, typer.Option("--active", help="Show active constraints only.")] = False,
    client: Annotated[int | None, typer.Option("--client", metavar="ID", help="Show one client only.")] = None,
    over_time: Annotated[
        bool, typer.Option("--over-time", help="With --client: that client's story over all rounds.")
    ] = False,
    sort: Annotated[SortKey, typer.Option(help="Order of the table.")] = SortKey.NEED,
    verify: Annotated[bool, typer.Option("--verify", help="Solve the program again with CVXPY.")] = False,
    tau: Annotated[float | None, typer.Option("--tau", help="What if: another tolerance.")] = None,
    history: Annotated[
        int | None, typer.Option("--history", metavar="H", help="What if: a shorter history.")
    ] = None,
    without: Annotated[
        str | None, typer.Option("--without", metavar="IDS", help="What if: without these constraints, as 12,40.")
    ] = None,
    primary: Annotated[
        PrimaryChoice | None, typer.Option(help="What if: measured from the average, or from nothing.")
    ] = None,
    sweep: Annotated[bool, typer.Option("--tau-sweep", help="Solve it over the tolerances from 0 to 1.")] = False,
    show_conflicts: Annotated[
        bool, typer.Option("--conflicts", help="Show the matrix of cosines among constraints.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Write the picture to a .png, .svg or .pdf file too."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with a slider for tau; it needs no network."),
    ] = None,
    output_format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Open one round: the program that was solved, who bent the direction, and whether the solution is one.

    Works from the run's records alone, without data or PyTorch, also while the run goes on. --tau, --history,
    --without and --primary solve the recorded program anew and show both side by side.
    """
    from fedpcd_cli.explain.what_if import Change
    from fedpcd_cli.views.explain import Request, print_round, print_story

    change = Change(
        tau=tau,
        history_rounds=history,
        without=_ids(without),
        primary=None if primary is None else primary is PrimaryChoice.FEDAVG,
    )
    request = Request(
        root=run,
        wanted=round_wanted,
        everything=everything,
        active_only=active_only,
        client_id=client,
        sort=sort,
        verify=verify,
        change=change,
        sweep=sweep,
        conflicts=show_conflicts,
        figure=figure,
        page=page,
        output_format=output_format,
    )
    if over_time:
        print_story(request)
    else:
        print_round(request)


def _ids(text: str | None) -> tuple[int, ...]:
    """Return the clients of `12,40`.

    Raises:
        UsageError: It is no list of client ids.
    """
    from fedpcd_cli.errors import UsageError

    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise UsageError(f"--without must be client ids such as 12,40; found '{text}'.")
    return tuple(dict.fromkeys(int(part) for part in parts))
