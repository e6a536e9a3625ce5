"""A federation before training: facts, a picture of client x class counts, and rows for scripts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fedpcd_cli.data.federation import Federation

MAX_ROWS = 40
_LIMITS = (0.1, 0.4, 0.8)  # shares at which the next darker shade starts
_SHADES = "░▒▓█"
_ASCII_SHADES = ".:+#"


def federation_summary(federation: Federation) -> dict[str, Any]:
    """Return the facts of a federation as plain JSON values."""
    dataset, partition = federation.dataset, federation.partition
    counts = federation.train_counts + federation.test_counts
    return {
        "dataset": dataset.name,
        "n_samples": len(dataset.targets),
        "n_official_train": dataset.n_train,
        "sample_shape": list(dataset.sample_shape),
        "class_names": list(dataset.class_names),
        "dataset_fingerprint": dataset.fingerprint,
        "protocol": partition.protocol,
        "scheme": partition.scheme,
        "n_clients": federation.n_clients,
        "n_train": int(federation.train_sizes.sum()),
        "n_test": int(federation.test_sizes.sum()),
        "train_size": _spread(federation.train_sizes),
        "test_size": _spread(federation.test_sizes),
        "classes_per_client": _spread((counts > 0).sum(axis=1)),
        "clients_without_train": np.flatnonzero(federation.train_sizes == 0).tolist(),
        "clients_without_test": np.flatnonzero(federation.test_sizes == 0).tolist(),
        "notes": list(federation.notes),
        "partition_digest": partition.digest,
    }


def client_rows(federation: Federation) -> list[dict[str, Any]]:
    """Return one row per client: sizes, number of classes, and train and test samples of each class."""
    names = federation.dataset.class_names
    rows = []
    for client in range(federation.n_clients):
        train, test = federation.train_counts[client], federation.test_counts[client]
        row = {
            "client": client,
            "n_train": int(train.sum()),
            "n_test": int(test.sum()),
            "n_classes": int(np.count_nonzero(train + test)),
        }
        row |= {f"train:{name}": int(count) for name, count in zip(names, train, strict=True)}
        row |= {f"test:{name}": int(count) for name, count in zip(names, test, strict=True)}
        rows.append(row)
    return rows


def federation_view(federation: Federation) -> RenderableType:
    """Return facts, notes and picture for a terminal or a pipe, at whatever width that has."""
    summary = federation_summary(federation)
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for key, value in _facts(summary):
        facts.add_row(key, Text(value))
    return Group(facts, Text(), Picture(federation))


def _facts(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    shape = " x ".join(str(n) for n in summary["sample_shape"])
    yield "dataset", f"{summary['dataset']}: {summary['n_samples']:,} samples of {shape}, {_classes(summary)}"
    yield "clients", f"{summary['n_clients']:,}, dealt by '{summary['scheme']}'"
    yield "test data", _PROTOCOLS.get(summary["protocol"], summary["protocol"])
    yield "train size", _describe(summary["train_size"], summary["n_train"], summary["clients_without_train"])
    yield "test size", _describe(summary["test_size"], summary["n_test"], summary["clients_without_test"])
    yield "classes", f"{_range(summary['classes_per_client'])} per client"
    for note in summary["notes"]:
        yield "note", note
    yield "partition", summary["partition_digest"]


_PROTOCOLS = {
    "matched": "matched (train and test pools merged, then split within each client)",
    "official": "official (train and test pools stay apart; each client is tested on its own mixture)",
}


def _classes(summary: dict[str, Any]) -> str:
    return f"{len(summary['class_names'])} classes"


def _describe(spread: dict[str, float], total: int, without: Sequence[int]) -> str:
    text = f"{_range(spread)} per client, {total:,} in all"
    if without:
        shown = ", ".join(str(client) for client in without[:8]) + (", ..." if len(without) > 8 else "")
        text += f"; {len(without):,} clients without: {shown}"
    return text


def _spread(values: np.ndarray) -> dict[str, float]:
    return {"min": int(values.min()), "median": float(np.median(values)), "max": int(values.max())}


def _range(spread: dict[str, float]) -> str:
    median = f"{spread['median']:,.1f}".removesuffix(".0")
    return f"min {spread['min']:,}, median {median}, max {spread['max']:,}"


def client_order(counts: np.ndarray) -> np.ndarray:
    """Return clients sorted by their largest class, and within it by its share, int64 `[N]`.

    Args:
        counts: Samples per client and class, `[N, K]`.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.lexsort((np.arange(len(counts)), -shares.max(axis=1), counts.argmax(axis=1)))


class Picture:
    """Client x class shares in shades, as wide as the console allows. Says its own legend.

    A row is a client; above :data:`MAX_ROWS` clients a row is a group of neighbors in the order of
    :func:`client_order`. A
    column is a class; above what fits, several classes. Without Unicode the shades are ASCII characters.
    """

    def __init__(self, federation: Federation) -> None:
        self._counts = federation.train_counts + federation.test_counts
        self._names = federation.dataset.class_names

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in picture_lines(
            self._counts, self._names, width=options.max_width, ascii_only=options.ascii_only
        ):
            yield Text(line, no_wrap=True, overflow="crop")


def picture_lines(
    counts: np.ndarray, class_names: Sequence[str], *, width: int = 80, ascii_only: bool = False
) -> list[str]:
    """Return the lines of the picture, none longer than `width` (at least 40).

    Args:
        counts: Samples per client and class, int `[N, K]`.
        class_names: `[K]`.
        width: Columns of the console.
        ascii_only: Whether only ASCII characters can be shown.
    """
    n_clients, n_classes = counts.shape
    groups = _groups(counts)
    labels = [str(int(group[0])) if n_clients <= MAX_ROWS else f"{len(group)} clients" for group in groups]
    sizes = [f"{counts[group].sum():,}" for group in groups]
    label_width = max(len("client"), *(len(label) for label in labels))
    size_width = max(len("samples"), *(len(size) for size in sizes))
    room = max(width, 40) - label_width - size_width - 4
    per_column = -(-n_classes // room)
    n_columns = -(-n_classes // per_column)
    cell = max(1, min(5, room // n_columns))
    shades = _ASCII_SHADES if ascii_only else _SHADES
    lines = [f"{'client':>{label_width}}  {_header(n_columns, per_column, cell)}  {'samples':>{size_width}}"]
    starts = np.arange(0, n_classes, per_column)
    for group, label, size in zip(groups, labels, sizes, strict=True):
        held = np.add.reduceat(counts[group].sum(axis=0), starts)
        shares = held / max(int(held.sum()), 1)
        cells = "".join(_shade(share, shades) * max(cell - 1, 1) + " " * (cell > 1) for share in shares)
        lines.append(f"{label:>{label_width}}  {cells}  {size:>{size_width}}")
    return [line.rstrip() for line in [*lines, *_legend(shades, n_clients, per_column, class_names, width)]]


def _groups(counts: np.ndarray) -> list[np.ndarray]:
    """Return the clients of each row: one each in order of their ids, or MAX_ROWS groups of similar ones."""
    n_clients = len(counts)
    if n_clients <= MAX_ROWS:
        return list(np.arange(n_clients)[:, None])
    return np.array_split(client_order(counts), MAX_ROWS)


def _shade(share: float, shades: str) -> str:
    if share <= 0:
        return " "
    return shades[int(np.searchsorted(_LIMITS, share, side="right"))]


def _header(n_columns: int, per_column: int, cell: int) -> str:
    """Return the number of each column's first class, as often as it fits."""
    header = ""
    for column in range(n_columns):
        number = str(column * per_column)
        place = column * cell
        if place >= len(header) + bool(header) and place + len(number) <= n_columns * cell:
            header = header.ljust(place) + number
    return header.ljust(n_columns * cell)


def _legend(shades: str, n_clients: int, per_column: int, class_names: Sequence[str], width: int) -> Iterator[str]:
    low, middle, high = (f"{limit:.0%}" for limit in _LIMITS)
    yield ""
    texts = [
        f"share of the row's samples: {shades[0]} below {low}, {shades[1]} to {middle}, {shades[2]} to {high}, "
        f"{shades[3]} above"
    ]
    if n_clients > MAX_ROWS:
        texts.append("rows: groups of clients, sorted by largest class")
    if per_column > 1:
        texts.append(f"columns: {per_column} classes each")
    elif len(class_names) <= 20 and list(class_names) != [str(k) for k in range(len(class_names))]:
        texts.append("classes: " + ", ".join(f"{k} {name}" for k, name in enumerate(class_names)))
    for text in texts:
        yield from textwrap.wrap(text, width, subsequent_indent="  ")
