"""`fedpcd data` as a user runs it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

RECIPE = """\
name: tiny
rounds: 1
data:
  dataset: digits
  partition: {scheme: dirichlet, n_clients: 12, dirichlet_alpha: 0.05}
model: linear
local: {lr: 0.1, batch_size: 10}
aggregator: fedavg
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE)
    return path


def test_table(fedpcd, recipe):
    done = fedpcd("data", recipe)
    assert done.code == 0, done.err
    assert "dataset     digits: 1,797 samples of 1 x 8 x 8, 10 classes" in done.out
    assert "clients     12, dealt by 'dirichlet'" in done.out
    assert "matched (train and test pools merged" in done.out
    assert "share of the row's samples" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out
    assert done.err == ""


def test_json_and_csv_agree(fedpcd, recipe):
    document = json.loads(fedpcd("data", recipe, "--format", "json").out)
    assert document["schema_version"] == 1
    federation = document["federation"]
    rows = list(csv.DictReader(io.StringIO(fedpcd("data", recipe, "--format", "csv").out)))
    assert len(rows) == len(federation["clients"]) == 12
    for row, client in zip(rows, federation["clients"], strict=True):
        assert {key: int(value) for key, value in row.items()} == client
    assert sum(client["n_train"] + client["n_test"] for client in federation["clients"]) == 1797
    assert len(federation["partition_digest"]) == 64


def test_it_is_the_partition_of_the_run(fedpcd, recipe, tmp_path):
    digest = json.loads(fedpcd("data", recipe, "--format", "json").out)["federation"]["partition_digest"]
    assert fedpcd("train", recipe, "--quiet").code == 0
    (stored,) = (tmp_path / "runs").rglob("partition.npz")
    with np.load(stored) as arrays:
        assert str(arrays["digest"]) == digest


def test_the_data_seed_alone_decides(fedpcd, recipe):
    def digest(*settings):
        done = fedpcd("data", recipe, "--format", "json", *settings)
        return json.loads(done.out)["federation"]["partition_digest"]

    fixed = digest("--set", "data_seed=5")
    assert digest("--set", "data_seed=5", "--set", "seed=9") == fixed
    assert digest("--set", "data_seed=6") != fixed


def test_figure(fedpcd, recipe, tmp_path):
    done = fedpcd("data", recipe, "--figure", "out/skew.svg")
    assert done.code == 0, done.err
    assert "<svg" in (tmp_path / "out" / "skew.svg").read_text()
    assert done.err == "Figure written to out/skew.svg\n"
    assert "share of the row's samples" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "x.bmp"], "error: --figure must end in .png, .svg, .pdf; found 'x.bmp'."),
        (
            ["--set", "data.partition.n_clients=2000"],
            "n_clients must be at most 1797, the number of samples to deal",
        ),
        (["--set", "data.dataset=npz"], "data.root is required by dataset 'npz'"),
        (["--set", "data.dataset=cifar10", "--set", "data.root=."], "dataset 'cifar10' needs data_batch_1"),
        (["--set", "data.partition={scheme: natural, n_clients: 3}"], "'natural' needs a dataset with owners"),
    ],
)
def test_errors_are_text_with_exit_code_2(fedpcd, recipe, arguments, message):
    done = fedpcd("data", recipe, *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err
