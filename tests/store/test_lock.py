"""A run directory belongs to one process at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.store.lock import FolderLock, empty_folder
from fedpcd_cli.store.status import RunState
from fedpcd_cli.store.writer import RunWriter

pytest.importorskip("fcntl")


def test_a_second_writer_is_refused_and_removes_nothing(tmp_path):
    root = tmp_path / "run"
    writer = RunWriter(root, 3)
    writer.write_setup("{}", {}, {})
    before = sorted(path.name for path in root.iterdir())
    for keep_through in (None, 0):
        with pytest.raises(UsageError, match="is being run by another process"):
            RunWriter(root, 3, keep_through)
    assert sorted(path.name for path in root.iterdir()) == before
    writer.write_state(RunState.INTERRUPTED)
    writer.close()
    RunWriter(root, 3).close()


def test_a_killed_process_leaves_no_lock(tmp_path):
    code = (
        "import os, pathlib, sys; from fedpcd_cli.store.lock import FolderLock; "
        "FolderLock(pathlib.Path(sys.argv[1])); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    FolderLock(tmp_path).release()


def test_emptying_keeps_the_folder_and_what_links_point_to(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("x")
    folder = tmp_path / "run"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_text("x")
    (folder / "link").symlink_to(outside)
    empty_folder(folder)
    assert list(folder.iterdir()) == []
    assert (outside / "kept.txt").exists()
