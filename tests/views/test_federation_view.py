"""The picture of a federation, at any width, and its figure file."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from fedpcd_cli.data.assemble import assemble_dataset
from fedpcd_cli.data.federation import Federation
from fedpcd_cli.data.records import make_partition
from fedpcd_cli.errors import UsageError
from fedpcd_cli.views.federation import (
    client_order,
    client_rows,
    federation_summary,
    federation_view,
    picture_lines,
)
from fedpcd_cli.views.federation_figure import check_figure_path, federation_figure, write_figure


@pytest.fixture
def federation():
    """Four clients: [6 cats, 2 dogs], [2 dogs], one without test samples, one without any."""
    targets = np.array([0] * 6 + [1] * 5)
    dataset = assemble_dataset(
        name="pets",
        inputs=np.zeros((11, 1), np.float32),
        targets=targets,
        n_train=8,
        class_names=["cat", "dog"],
        notes=["made up"],
    )
    train = [np.array([0, 1, 2, 3, 6]), np.array([8]), np.array([10]), np.array([], int)]
    test = [np.array([4, 5, 7]), np.array([9]), np.array([], int), np.array([], int)]
    return Federation(dataset, make_partition("shards", "matched", train, test, ["2 of 4 clients have none"]))


def render(federation, **settings):
    console = Console(file=io.StringIO(), **({"width": 80, "highlight": False} | settings))
    console.print(federation_view(federation))
    return console.file.getvalue()


def test_summary_by_hand(federation):
    summary = federation_summary(federation)
    assert summary["train_size"] == {"min": 0, "median": 1.0, "max": 5}
    assert summary["test_size"] == {"min": 0, "median": 0.5, "max": 3}
    assert summary["classes_per_client"] == {"min": 0, "median": 1.0, "max": 2}
    assert (summary["n_train"], summary["n_test"], summary["n_clients"]) == (7, 4, 4)
    assert summary["clients_without_train"] == [3]
    assert summary["clients_without_test"] == [2, 3]
    assert summary["notes"] == ["made up", "2 of 4 clients have none"]
    assert summary["partition_digest"] == federation.partition.digest
    assert (summary["protocol"], summary["scheme"], summary["dataset"]) == ("matched", "shards", "pets")


def test_rows_by_hand(federation):
    assert client_rows(federation)[0] == {
        "client": 0, "n_train": 5, "n_test": 3, "n_classes": 2,
        "train:cat": 4, "train:dog": 1, "test:cat": 2, "test:dog": 1,
    }  # fmt: skip
    assert [row["n_classes"] for row in client_rows(federation)] == [2, 1, 1, 0]


def test_view_by_hand(federation):
    lines = [line.rstrip() for line in render(federation).splitlines()]
    assert lines[-8:] == [
        "client  0    1      samples",
        "     0  ▓▓▓▓ ▒▒▒▒         8",
        "     1       ████         2",
        "     2       ████         1",
        "     3                    0",
        "",
        "share of the row's samples: ░ below 10%, ▒ to 40%, ▓ to 80%, █ above",
        "classes: 0 cat, 1 dog",
    ]
    assert "test size   min 0, median 0.5, max 3 per client, 4 in all; 2 clients without: 2," in lines
    assert any(line.startswith("partition   " + federation.partition.digest) for line in lines)


@pytest.mark.parametrize("settings", [{"no_color": True}, {"force_terminal": True}, {"color_system": None}])
def test_shades_need_no_color(federation, settings):
    assert "▓▓▓▓ ▒▒▒▒" in render(federation, **settings)


def test_ascii_shades_where_nothing_else_can_be_shown(federation):
    class Ascii(io.StringIO):
        encoding = "ascii"

    console = Console(file=Ascii(), width=80)
    console.print(federation_view(federation))
    assert "     0  #### ++++" not in console.file.getvalue()
    assert "     0  ++++ ::::         8" in console.file.getvalue()
    console.file.getvalue().encode("ascii")


@pytest.mark.parametrize("n_classes", [1, 2, 10, 47, 61, 100, 1000])
@pytest.mark.parametrize("n_clients", [1, 40, 41, 10_000])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_too_wide_or_missing(n_classes, n_clients, width):
    counts = np.random.default_rng(0).integers(0, 3, (n_clients, n_classes))
    names = [f"class number {k}" for k in range(n_classes)]
    lines = picture_lines(counts, names, width=width)
    assert max(map(len, lines)) <= width
    assert len([line for line in lines[1 : lines.index("")] if line]) == min(n_clients, 40)
    last = [int(line.replace(",", "").split()[-1]) for line in lines[1 : lines.index("")]]
    assert sum(last) == counts.sum()


@pytest.mark.parametrize(
    ("share", "shade"),
    [(0, " "), (1, "░"), (9, "░"), (10, "▒"), (39, "▒"), (40, "▓"), (79, "▓"), (80, "█"), (100, "█")],
)
def test_shades_by_share(share, shade):
    line = picture_lines(np.array([[share, 100 - share]]), ["0", "1"])[1]
    assert line[8:12] == 4 * shade


def test_many_classes_share_columns():
    counts = np.zeros((1, 100), int)
    counts[0, 99] = 7
    lines = picture_lines(counts, [str(k) for k in range(100)])
    assert "columns: 2 classes each" in lines
    assert lines[1].count("█") == 1


def test_groups_are_sorted_by_largest_class():
    counts = np.array([[0, 9], [5, 4], [9, 0], [0, 0]])
    assert client_order(counts).tolist() == [2, 1, 3, 0]
    many = np.tile(counts[:3], (20, 1))
    lines = picture_lines(many, ["0", "1"])
    assert "rows: groups of clients, sorted by largest class" in lines
    assert lines[1].split()[:3] == ["2", "clients", "████"]


def test_figure_shows_shares_and_sizes(federation):
    figure = federation_figure(federation)
    heat, bars = figure.axes[:2]
    (image,) = heat.images
    assert np.asarray(image.get_array()) == pytest.approx(np.array([[0.75, 0.25], [0, 1], [0, 1], [0, 0]]))
    assert [label.get_text() for label in heat.get_xticklabels()] == ["cat", "dog"]
    edges = [patch.get_data() for patch in bars.patches]
    assert edges[0].values.tolist() == [5, 1, 1, 0]
    assert edges[1].values.tolist() == [8, 2, 1, 0]
    assert edges[1].baseline.tolist() == [5, 1, 1, 0]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_figure_files_are_reproducible(federation, tmp_path, suffix):
    first, second = tmp_path / "deep" / f"a{suffix}", tmp_path / f"b{suffix}"
    write_figure(federation, first)
    write_figure(federation, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 2000
    assert [p.name for p in first.parent.iterdir()] == [first.name]


def test_figure_paths_are_checked(tmp_path, federation):
    with pytest.raises(UsageError, match=r"--figure must end in \.png, \.svg, \.pdf; found 'x\.gif'"):
        check_figure_path(tmp_path.__class__("x.gif"))
    (tmp_path / "d.png").mkdir()
    with pytest.raises(UsageError, match=r"--figure must be a file; '.*d\.png' is a folder"):
        check_figure_path(tmp_path / "d.png")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--figure .*a\.png can't be written: "):
        write_figure(federation, tmp_path / "file" / "a.png")
