"""How far a run has come and how it ended."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from fedpcd_cli.errors import NotARunError, StoreError
from fedpcd_cli.store.atomic import write_text
from fedpcd_cli.store.layout import FORMAT_VERSION


class RunState(StrEnum):
    """States of a run; `running` of a process that is gone means that it was killed."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    DIVERGED = "diverged"


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """Content of `status.json`."""

    state: RunState
    round_index: int
    n_rounds: int
    message: str = ""
    pid: int = 0
    host: str = ""
    format_version: int = FORMAT_VERSION

    @property
    def is_elsewhere(self) -> bool:
        """Whether another machine wrote it, whose processes can't be seen from here."""
        return self.host != socket.gethostname()

    @property
    def owner_is_alive(self) -> bool:
        """Whether the process that wrote it still runs, as far as this host can tell."""
        if self.state is not RunState.RUNNING or self.is_elsewhere:
            return self.state is RunState.RUNNING and self.host != ""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return self.pid != os.getpid()


def write_status(path: Path, state: RunState, round_index: int, n_rounds: int, message: str = "") -> None:
    """Write the status of this process's run, atomically."""
    status = RunStatus(
        state=state,
        round_index=round_index,
        n_rounds=n_rounds,
        message=message,
        pid=os.getpid(),
        host=socket.gethostname(),
    )
    write_text(path, json.dumps(asdict(status), indent=2) + "\n")


def read_status(path: Path) -> RunStatus:
    """Read a status.

    Raises:
        NotARunError: The file is missing.
        StoreError: It is damaged, or of a newer format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = int(content["format_version"])
        if version > FORMAT_VERSION:
            raise StoreError(
                f"{path.parent}: run format {version} is newer than this fedpcd reads ({FORMAT_VERSION}).",
                hint="Use the fedpcd that wrote it, or a newer one.",
            )
        return RunStatus(**{**content, "state": RunState(content["state"])})
    except FileNotFoundError:
        raise NotARunError(
            f"{path.parent} is not a run: it has no {path.name}.",
            hint="Name a folder that 'fedpcd train' wrote, such as runs/quick-start/fedpcd-s1-….",
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: damaged ({error}).", hint="Run the recipe again with --force.") from None
