"""Following runs in progress."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys

import pytest

from fedpcd_cli.errors import StoreError
from fedpcd_cli.report.build import Options
from fedpcd_cli.views.report_watch import GRACE_SECONDS, follow


def set_status(root, **changes):
    path = root / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def running(make_run):
    """A run of another process that is alive: our parent."""
    root = make_run("fedpcd", state="running", reached=10, curve={0: 10, 10: 40}, pid=os.getppid())
    set_status(root, host=socket.gethostname())
    return root


class Clock:
    """Time that passes only while one sleeps, and a script of what happens meanwhile."""

    def __init__(self, *events):
        self.now = 0.0
        self.events = list(events)

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.events:
            self.events.pop(0)()


def test_one_line_per_change_and_an_end(running, capsys):
    clock = Clock(
        lambda: None,
        lambda: (running / "rounds.jsonl").write_text('{"round":11}\n{"round":12}\n{"rou'),
        lambda: set_status(running, state="interrupted"),
    )
    follow([running], Options(), sleep=clock.sleep, clock=clock)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "1 running; fedpcd seed 1 at 10 of 20",
        "1 running; fedpcd seed 1 at 12 of 20",
        "1 interrupted",
    ]


def test_a_sweep_may_pause_between_two_runs(running, make_run, capsys, tmp_path):
    make_run("fedavg")
    clock = Clock(lambda: set_status(running, state="diverged"))
    follow([tmp_path / "runs"], Options(), sleep=clock.sleep, clock=clock)
    assert clock.now == pytest.approx(GRACE_SECONDS, abs=5)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last in {
        "1 finished, 1 diverged; waiting 30 s for another run to start",
        "1 diverged, 1 finished; waiting 30 s for another run to start",
    }


def test_nothing_in_progress_ends_at_once(make_run, capsys):
    clock = Clock()
    follow([make_run()], Options(), sleep=clock.sleep, clock=clock)
    assert (clock.now, capsys.readouterr().err) == (0.0, "")


def test_a_folder_without_runs(tmp_path):
    with pytest.raises(StoreError, match="is not a run"):
        follow([tmp_path], Options())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_table_is_drawn_anew(running):
    """The watched process sees its table, then an end; stdout is the terminal too."""
    script = (
        "import json, sys; from pathlib import Path; from fedpcd_cli.views.report_watch import follow\n"
        "from fedpcd_cli.report.build import Options\n"
        "root = Path(sys.argv[1]); path = root / 'status.json'\n"
        "def sleep(_):\n"
        "    path.write_text(json.dumps({**json.loads(path.read_text()), 'state': 'interrupted'}))\n"
        "follow([root], Options(), sleep=sleep)\n"
    )
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    done = subprocess.Popen(
        [sys.executable, "-c", script, str(running)], stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert done.wait() == 0
    text = seen.decode()
    assert "\x1b[2J" in text
    assert "Not averaged: fedpcd seed 1 running at 10 of 20." in text
    assert "1 running; fedpcd seed 1 at 10 of 20" in text
