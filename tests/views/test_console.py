"""Output that nobody reads, that can't be shown, or that has no room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedpcd_cli.views.console import message_console, result_console


@pytest.mark.parametrize(("console", "stream"), [(message_console, "stderr"), (result_console, "stdout")])
def test_work_goes_on_when_the_reader_is_gone(monkeypatch, console, stream):
    """A log that is piped to `head` must not stop a run."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        monkeypatch.setattr(sys, stream, nobody)
        printer = console()
        for _ in range(3):
            printer.print("a line")
        assert printer.quiet


def run(*arguments: str, **options):
    return subprocess.run(
        [sys.executable, "-m", "fedpcd_cli", *arguments], check=False, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_cannot_be_shown_are_replaced(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = run("plugins", stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fedpcd" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("output_format", ["table", "json"])
def test_a_full_disk_is_one_line(output_format):
    with open("/dev/full", "w") as full:
        done = run("plugins", "--format", output_format, stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output can't be written: No space left on device.\n")
    assert "Traceback" not in done.stderr
