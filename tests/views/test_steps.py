"""Progress before the rounds."""

from __future__ import annotations

import io

from rich.console import Console

from fedpcd_cli.views.steps import show_steps


def test_a_log_gets_few_plain_lines():
    seconds = [0.0]
    console = Console(file=io.StringIO(), width=40)
    with show_steps(console, "loading", clock=lambda: seconds[0]) as tell:
        for seconds[0] in (0.1, 1.9, 2.1, 5.0, 12.0, 12.2, 30.0):
            tell(f"step [{seconds[0]}]")
    assert console.file.getvalue() == "step [2.1]\nstep [12.2]\nstep [30.0]\n"


def test_a_terminal_gets_a_spinner_with_the_text_as_it_is():
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    with show_steps(console, "loading [a]") as tell:
        tell("decoding [b]")
    assert "[a]" in console.file.getvalue() or "[b]" in console.file.getvalue()


def test_a_quiet_console_stays_quiet():
    console = Console(file=io.StringIO(), quiet=True)
    with show_steps(console, "loading", clock=iter([0.0, 9.0, 9.0]).__next__) as tell:
        tell("slow")
    assert console.file.getvalue() == ""
