"""Figures for papers on disk: PDF with embedded fonts, PNG to look at, CSV of what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpcd_cli.errors import UsageError
from fedpcd_cli.store.atomic import write_atomically
from fedpcd_cli.views.formats import to_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = 3.35
"""Width of a paper's column in inches."""

Rows = Sequence[Mapping[str, Any]]
_STYLE: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    # TrueType, which journals ask for; type 3 fonts are refused.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}


def check_folder(folder: Path) -> None:
    """Make the folder, so that a name that can't be one is told before any work.

    Raises:
        UsageError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--figures must be a folder; '{folder}' can't be made: {error.strerror or error}."
        ) from None


def save(folder: Path, name: str, draw: Callable[[], Figure], rows: Rows) -> list[Path]:
    """Write `name.pdf`, `name.png` and `name.csv`; equal data give equal files.

    Raises:
        StoreError: A file can't be written.
    """
    import matplotlib as mpl

    paths = [folder / f"{name}.pdf", folder / f"{name}.png", folder / f"{name}.csv"]
    with mpl.rc_context(_STYLE):
        figure = draw()
        write_atomically(
            paths[0],
            lambda path: figure.savefig(path, format="pdf", metadata={"CreationDate": None}),
            durable=False,
        )
        write_atomically(paths[1], lambda path: figure.savefig(path, format="png", dpi=200), durable=False)
    write_atomically(paths[2], lambda path: path.write_text(to_csv(rows) + "\n", encoding="utf-8"), durable=False)
    return paths


def new_figure(height: float, width: float = COLUMN) -> Figure:
    """Return an empty figure of a column's width, inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
