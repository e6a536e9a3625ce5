"""The screens of `fedpcd explain-round`, put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.checks import check, verify
from fedpcd_cli.explain.conflicts import conflicts
from fedpcd_cli.explain.rows import constraint_rows, select_rows, sort_rows
from fedpcd_cli.explain.run_facts import RunFacts, run_facts
from fedpcd_cli.explain.select import RoundEntry, find_round, find_run
from fedpcd_cli.explain.sort_key import SortKey
from fedpcd_cli.explain.story import client_story
from fedpcd_cli.explain.what_if import Change, contradicts_at_every_tau, tau_sweep, what_if
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.views.console import message_console, result_console
from fedpcd_cli.views.explain_checks import checks_view
from fedpcd_cli.views.explain_conflicts import ConflictsView
from fedpcd_cli.views.explain_data import (
    checks_data,
    program_data,
    round_data,
    story_data,
    sweep_data,
    verification_data,
)
from fedpcd_cli.views.explain_figure import round_figure
from fedpcd_cli.views.explain_head import head
from fedpcd_cli.views.explain_page import check_page_path, round_page, write_page
from fedpcd_cli.views.explain_story import story_view
from fedpcd_cli.views.explain_table import cohort_rows, cohort_table, constraint_table
from fedpcd_cli.views.explain_what_if import sweep_view, what_if_view
from fedpcd_cli.views.federation_figure import check_figure_path, save_figure
from fedpcd_cli.views.formats import OutputFormat, to_csv, to_json


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for.

    Attributes:
        root: The run directory, or a folder that holds just that run.
        wanted: Round, by number or word.
        everything: Show every constraint.
        active_only: Show active ones only.
        client_id: Show one client only.
        sort: Order of the table.
        verify: Solve again with CVXPY.
        change: What if.
        sweep: Solve over the tolerances.
        conflicts: Show the matrix of cosines.
        figure: Picture file to write.
        page: HTML file to write.
        output_format: What to print.
    """

    root: Path
    wanted: str = "last"
    everything: bool = False
    active_only: bool = False
    client_id: int | None = None
    sort: SortKey = SortKey.NEED
    verify: bool = False
    change: Change = field(default_factory=Change)
    sweep: bool = False
    conflicts: bool = False
    figure: Path | None = None
    page: Path | None = None
    output_format: OutputFormat = OutputFormat.TABLE


def print_round(request: Request) -> None:
    """Print one round.

    Raises:
        FedPCDError: The run, the round or a file of it can't be read, or an option does not fit the round.
    """
    if request.figure is not None:
        check_figure_path(request.figure)
    if request.page is not None:
        check_page_path(request.page)
    run = find_run(request.root)
    facts = run_facts(run)
    entry = find_round(run, request.wanted)
    if entry.certificate is None:
        _refuse_program_options(request, facts)
    if request.output_format is OutputFormat.JSON:
        print(to_json("explanation", _data(request, facts, entry)))
    elif request.output_format is OutputFormat.CSV:
        print(to_csv(_csv_rows(request, facts, entry)))
    else:
        console = result_console()
        parts = list(_parts(request, facts, entry, console.width))  # before anything is printed: it may raise
        for index, part in enumerate(parts):
            if index:
                console.print()
            console.print(part)
    if entry.certificate is not None:
        _write_files(request, facts, entry.certificate)


def _write_files(request: Request, facts: RunFacts, certificate: Certificate) -> None:
    messages = message_console()
    if request.figure is not None:
        save_figure(lambda: round_figure(certificate, facts), request.figure)
        messages.print(f"Figure written to {request.figure}", soft_wrap=True, markup=False)
    if request.page is not None:
        write_page(round_page(certificate, facts), request.page)
        messages.print(f"Page written to {request.page}", soft_wrap=True, markup=False)


def print_story(request: Request) -> None:
    """Print one client over the rounds.

    Raises:
        FedPCDError: The run or a file of it can't be read, or no client is named.
    """
    if request.client_id is None:
        raise UsageError("--over-time needs a client.", hint="Name one, as in --client 12 --over-time.")
    run = find_run(request.root)
    facts = run_facts(run)
    chapters = list(client_story(run, request.client_id))
    if request.output_format is OutputFormat.JSON:
        print(to_json("story", story_data(facts, request.client_id, chapters)))
    elif request.output_format is OutputFormat.CSV:
        print(to_csv([asdict(chapter) for chapter in chapters]))
    else:
        result_console().print(story_view(chapters, request.client_id, len(run.rounds)))


def _parts(request: Request, facts: RunFacts, entry: RoundEntry, width: int) -> Iterator[RenderableType]:
    yield head(facts, entry)
    certificate = entry.certificate
    if certificate is None:
        yield cohort_table(entry.record)
        return
    if request.change:
        changed = what_if(certificate, request.change, window=facts.window)
        yield what_if_view(certificate, changed, request.change)
    elif not request.sweep and not request.conflicts:
        shown = _shown_rows(request, certificate)
        whole = certificate.size if not (request.active_only or request.client_id is not None) else len(shown)
        yield constraint_table(shown, whole, width)
    if request.sweep:
        yield sweep_view(tau_sweep(certificate), contradicts_at_every_tau(certificate))
    if request.conflicts:
        yield ConflictsView(conflicts(certificate))
    if (not request.sweep and not request.conflicts and not request.change) or request.verify:
        second = verify(certificate) if request.verify else None
        yield checks_view(check(certificate), second, entry.round_index)


def _shown_rows(request: Request, certificate: Certificate) -> list[Any]:
    return select_rows(
        sort_rows(constraint_rows(certificate), request.sort),
        everything=request.everything or request.output_format is not OutputFormat.TABLE,
        active_only=request.active_only,
        client_id=request.client_id,
        round_index=certificate.round_index,
    )


def _data(request: Request, facts: RunFacts, entry: RoundEntry) -> dict[str, Any]:
    content = round_data(facts, entry)
    certificate = entry.certificate
    if certificate is None:
        return content
    content["program"]["constraints"] = [asdict(row) for row in _shown_rows(request, certificate)]
    content["checks"] = checks_data(check(certificate))
    content["tau_sweep"] = sweep_data(tau_sweep(certificate), contradicts_at_every_tau(certificate))
    if request.change:
        changed = what_if(certificate, request.change, window=facts.window)
        content["what_if"] = {"change": asdict(request.change), "program": program_data(changed)}
    second = verify(certificate) if request.verify else None
    if second is not None:
        content["verification"] = verification_data(second)
    return content


def _csv_rows(request: Request, facts: RunFacts, entry: RoundEntry) -> list[dict[str, Any]]:
    """Return one row per constraint; of the changed program beside it with --tau and the like."""
    certificate = entry.certificate
    if certificate is None:
        return cohort_rows(entry.record)
    if request.sweep:
        return [asdict(point) for point in tau_sweep(certificate)]
    rows = [asdict(row) for row in _shown_rows(request, certificate)]
    if request.change:
        changed = what_if(certificate, request.change, window=facts.window)
        other = {row.client_id: row for row in constraint_rows(changed)}
        for row in rows:
            found = other.get(row["client_id"])
            for key in ("required", "after", "slack", "multiplier"):
                row[f"what_if_{key}"] = None if found is None else getattr(found, key)
    return rows


def _refuse_program_options(request: Request, facts: RunFacts) -> None:
    """Refuse options that need a program.

    Raises:
        UsageError: One was given.
    """
    given = {
        "--verify": request.verify,
        "--tau": request.change.tau is not None,
        "--history": request.change.history_rounds is not None,
        "--without": bool(request.change.without),
        "--primary": request.change.primary is not None,
        "--tau-sweep": request.sweep,
        "--conflicts": request.conflicts,
        "--active": request.active_only,
        "--client": request.client_id is not None,
        "--figure": request.figure is not None,
        "--html": request.page is not None,
    }
    used = [option for option, is_given in given.items() if is_given]
    if used:
        raise UsageError(
            f"{', '.join(used)} can't be used: '{facts.rule}' recorded no program in this round.",
            hint="Leave it out to see the cohort; --client ID --over-time works for every rule.",
        )
