"""A federation as a picture file: client x class heat map beside client sizes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedpcd_cli.errors import UsageError
from fedpcd_cli.views.federation import MAX_ROWS, client_order

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedpcd_cli.data.federation import Federation

SUFFIXES = (".png", ".svg", ".pdf")
_TRAIN, _TEST = "#0072B2", "#E69F00"  # Okabe and Ito: distinct under every color blindness


def check_figure_path(path: Path) -> None:
    """Refuse file names that no picture can be written to.

    Raises:
        UsageError: The ending is unknown, or the path is a folder.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--figure must end in {', '.join(SUFFIXES)}; found '{path}'.")
    if path.is_dir():
        raise UsageError(f"--figure must be a file; '{path}' is a folder.")


def write_figure(federation: Federation, path: Path) -> None:
    """Write the figure, atomically; equal federations give equal files.

    Raises:
        UsageError: The file can't be written.
    """
    save_figure(lambda: federation_figure(federation), path)


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Draw a figure and write it, atomically; equal drawings give equal files.

    Raises:
        UsageError: The file can't be written.
    """
    import matplotlib as mpl

    suffix = path.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    with mpl.rc_context({"svg.hashsalt": "fedpcd", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure = draw()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.stem}-{os.getpid()}{suffix}")
            try:
                figure.savefig(temporary, dpi=150, metadata=metadata)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UsageError(f"--figure {path} can't be written: {error}.") from error


def federation_figure(federation: Federation) -> Figure:
    """Return the figure: share of each class per client, and train and test samples per client.

    Clients stand in the order of their ids up to 40 clients, and sorted by their largest class above.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    dataset, n_clients = federation.dataset, federation.n_clients
    counts = federation.train_counts + federation.test_counts
    is_sorted = n_clients > MAX_ROWS
    order = client_order(counts) if is_sorted else np.arange(n_clients)
    shares = counts[order] / np.maximum(counts[order].sum(axis=1, keepdims=True), 1)

    figure = Figure(figsize=(8.0, min(10.0, max(4.0, 1.6 + 0.16 * n_clients))), layout="constrained")
    heat, bars = figure.subplots(1, 2, sharey=True, width_ratios=[2.2, 1.0])
    image = heat.imshow(shares, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    figure.colorbar(image, ax=heat, location="left", label="share of the client's samples", aspect=40)
    heat.set_ylabel("client (sorted by largest class)" if is_sorted else "client")
    heat.set_xlabel("class")
    heat.yaxis.set_major_locator(MaxNLocator(integer=True))
    if is_sorted:
        heat.set_yticks([])
    if dataset.n_classes <= 20:
        heat.set_xticks(range(dataset.n_classes), [_short(name) for name in dataset.class_names])
        if not _all_short(dataset.class_names):
            for label in heat.get_xticklabels():
                label.set(rotation=45, ha="right", rotation_mode="anchor")

    edges = np.arange(n_clients + 1) - 0.5
    train, test = federation.train_sizes[order], federation.test_sizes[order]
    bars.stairs(train, edges, orientation="horizontal", fill=True, color=_TRAIN, label="train")
    bars.stairs(
        train + test, edges, baseline=train, orientation="horizontal", fill=True, color=_TEST, label="test"
    )
    bars.set_xlabel("samples")
    bars.set_xlim(left=0)
    bars.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    bars.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    for side in ("top", "right"):
        bars.spines[side].set_visible(False)
    partition = federation.partition
    figure.suptitle(
        f"{dataset.name}: {n_clients:,} clients, {partition.scheme}, {partition.protocol} test data\n"
        f"partition {partition.digest[:12]}",
        fontsize="medium",
    )
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 16 else name[:15] + "…"


def _all_short(names: tuple[str, ...]) -> bool:
    return all(len(name) <= 2 for name in names)
