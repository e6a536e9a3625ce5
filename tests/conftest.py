"""Fixtures that all tests share."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep decoded data out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDPCD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def fedpcd(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty folder: `fedpcd("train", "quick-start") -> Outcome`."""
    from fedpcd_cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedpcd", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
