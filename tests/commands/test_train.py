"""`fedpcd train` as a user runs it: on small real data, reading the files it leaves."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from fedpcd_cli.store.reader import RunReader

RECIPE = """\
name: tiny
rounds: 4
data:
  dataset: digits
  partition: {scheme: dirichlet, n_clients: 12, dirichlet_alpha: 0.05}
model: {name: mlp, hidden: [16]}
local: {lr: 0.1, batch_size: 10}
server: {participation_rate: 0.34}
aggregator: {name: fedpcd, tau: 0.1, history_rounds: 3}
evaluation: {every: 2}
engine: {threads: 1}
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE)
    return path


def only_run(folder: Path) -> Path:
    (status,) = folder.rglob("status.json")
    return status.parent


def test_leaves_a_complete_run_and_prints_its_table(fedpcd, recipe, tmp_path):
    done = fedpcd("train", recipe)
    assert done.code == 0, done.err
    root = only_run(tmp_path / "runs")
    assert root.parent.name == "tiny"
    assert root.name.startswith("fedpcd-s1-")
    assert {p.name for p in root.iterdir()} == {
        "recipe.yaml", "environment.json", "status.json", "partition.npz", "rounds.jsonl", "timings.jsonl",
        "evaluations.jsonl", "certificates", "checkpoint", "model.safetensors",
    }  # fmt: skip
    run = RunReader(root)
    assert run.status.state == "finished"
    assert [record["round"] for record in run.rounds] == [1, 2, 3, 4]
    assert [evaluation["round"] for evaluation in run.evaluations] == [0, 2, 4]
    assert all(len(record["client_ids"]) == 4 for record in run.rounds)
    last = run.evaluations[-1]
    assert sum(last["n_correct"]) / sum(last["n_test"]) == pytest.approx(last["metrics"]["global_accuracy"])
    certificate = run.certificate(4)
    assert certificate.round_index == 4
    assert set(run.rounds[-1]["client_ids"]) <= set(certificate.client_ids.tolist())
    tensors = load_file(root / "model.safetensors")
    assert sum(t.numel() for t in tensors.values()) == run.environment["model"]["n_params"]
    # the table is on stdout, everything else on stderr
    assert "Worst" in done.out
    assert "Jain" in done.out
    assert "matched" in done.out
    assert "12 clients (12 evaluated)" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "round 2/4: " in done.err
    assert f"Run kept in runs/tiny/{root.name}" in done.err
    assert "Next: fedpcd report runs/tiny" in done.err
    assert "\x1b" not in done.out + done.err


def test_a_finished_run_is_shown_not_repeated(fedpcd, recipe, tmp_path):
    fedpcd("train", recipe)
    root = only_run(tmp_path / "runs")
    stamp = (root / "rounds.jsonl").stat().st_mtime_ns
    again = fedpcd("train", recipe)
    assert again.code == 0
    assert "Already finished; --force runs it again." in again.err
    assert "Jain" in again.out
    assert (root / "rounds.jsonl").stat().st_mtime_ns == stamp
    assert fedpcd("train", recipe, "--force").code == 0
    assert (root / "rounds.jsonl").stat().st_mtime_ns != stamp


def test_two_runs_with_one_seed_are_equal_to_the_byte(fedpcd, recipe, tmp_path):
    for name in ("one", "two"):
        done = fedpcd("train", recipe, "--set", f"output.root={tmp_path / name}", "--set", "model.dropout=0.2")
        assert done.code == 0, done.err
    one, two = only_run(tmp_path / "one"), only_run(tmp_path / "two")
    assert one.name == two.name
    for name in ("rounds.jsonl", "evaluations.jsonl", "model.safetensors", "recipe.yaml"):
        if name != "recipe.yaml":  # which names the output folder
            assert (one / name).read_bytes() == (two / name).read_bytes(), name
    other = fedpcd("train", recipe, "--set", "seed=2", "--set", f"output.root={tmp_path / 'three'}")
    assert other.code == 0
    assert (only_run(tmp_path / "three") / "rounds.jsonl").read_bytes() != (one / "rounds.jsonl").read_bytes()


def test_data_seed_and_model_seed_are_separate(fedpcd, recipe, tmp_path):
    digests, models = [], []
    for seed, data_seed in ((1, 1), (2, 1), (1, 2)):
        folder = tmp_path / f"{seed}-{data_seed}"
        fedpcd(
            "train", recipe, "--set", f"seed={seed}", "--set", f"data_seed={data_seed}", "--set",
            f"output.root={folder}", "--set", "rounds=1",
        )  # fmt: skip
        run = RunReader(only_run(folder))
        digests.append(run.environment["partition"]["digest"])
        models.append(run.evaluations[0]["params_digest"])
    assert digests[0] == digests[1] != digests[2]
    assert models[0] == models[2] != models[1]


def test_json_and_csv_are_one_document(fedpcd, recipe):
    done = fedpcd("train", recipe, "--format", "json", "--quiet")
    assert done.err == ""
    content = json.loads(done.out)
    assert content["schema_version"] == 1
    (row,) = content["runs"]
    assert row["aggregator"] == "fedpcd"
    assert row["aggregator.tau"] == 0.1
    assert 0 <= row["worst10_accuracy"] <= row["mean_accuracy"] <= 1
    (line,) = csv.DictReader(io.StringIO(fedpcd("train", recipe, "--format", "csv").out))
    assert float(line["jain_index"]) == row["jain_index"]


def test_fedpcd_without_short_clients_is_fedavg_bit_for_bit(fedpcd, recipe, tmp_path):
    """Full participation, one shared distribution, tau = 0: nobody falls short."""
    common = [
        "--set", "data.partition={scheme: iid, n_clients: 4}", "--set", "server.participation_rate=1.0",
        "--set", "rounds=3",
    ]  # fmt: skip
    fedpcd("train", recipe, *common, "--set", "aggregator.tau=0.0", "--set", f"output.root={tmp_path / 'a'}")
    fedpcd("train", recipe, *common, "--set", "aggregator=fedavg", "--set", f"output.root={tmp_path / 'b'}")
    a, b = RunReader(only_run(tmp_path / "a")), RunReader(only_run(tmp_path / "b"))
    assert all(record["diagnostics"]["n_active"] == 0 for record in a.rounds)
    assert a.paths.final_model.read_bytes() == b.paths.final_model.read_bytes()


def test_divergence_stops_with_exit_3_and_keeps_everything(fedpcd, recipe, tmp_path):
    done = fedpcd("train", recipe, "--set", "local.lr=1e30", "--set", "rounds=50", "--set", "aggregator=fedavg")
    assert done.code == 3
    assert done.err.count("error: round") == 1
    assert "Use a smaller local.lr" in done.err
    assert "Traceback" not in done.err
    run = RunReader(only_run(tmp_path / "runs"))
    assert run.status.state == "diverged"
    assert list(run.paths.checkpoints.glob("*.safetensors"))
    # and is shown as what it is
    report = fedpcd("report", "runs")
    assert report.code == 0
    assert "diverged" in report.out


def test_an_unfinished_run_says_so_and_resumes_to_the_same_bits(fedpcd, recipe, tmp_path):
    whole = tmp_path / "whole"
    assert fedpcd("train", recipe, "--set", f"output.root={whole}").code == 0
    assert fedpcd("train", recipe).code == 0
    root = only_run(tmp_path / "runs")
    _pretend_killed_after(root, 2, recipe, fedpcd)
    refused = fedpcd("train", recipe)
    assert refused.code == 2
    assert "is unfinished: 2 of 4 rounds" in refused.err
    assert "--resume" in refused.err
    resumed = fedpcd("train", recipe, "--resume")
    assert resumed.code == 0, resumed.err
    for name in ("rounds.jsonl", "evaluations.jsonl", "model.safetensors"):
        assert (root / name).read_bytes() == (only_run(whole) / name).read_bytes(), name


@pytest.mark.parametrize(
    ("name", "left", "found"),
    [("rounds.jsonl", 1, "found 1, the last of round 1"), ("evaluations.jsonl", 0, "found 0.")],
)
def test_a_run_whose_records_are_gone_is_not_finished_without_them(fedpcd, recipe, tmp_path, name, left, found):
    assert fedpcd("train", recipe).code == 0
    root = only_run(tmp_path / "runs")
    _pretend_killed_after(root, 2, recipe, fedpcd)
    lines = (root / name).read_text().splitlines(keepends=True)
    (root / name).write_text("".join(lines[:left]))
    refused = fedpcd("train", recipe, "--resume")
    assert refused.code == 1
    assert f"{name}: must hold all records up to the checkpoint's round 2; {found}" in refused.err
    assert fedpcd("train", recipe, "--force").code == 0


def _pretend_killed_after(root, n_rounds, recipe, fedpcd):
    """Leave the directory as a kill during the round after `n_rounds` would."""
    import torch

    from fedpcd_cli.data.cache import cache_dir
    from fedpcd_cli.data.federation import build_federation
    from fedpcd_cli.engine.simulate import Simulation
    from fedpcd_cli.recipe.load import load_recipe
    from fedpcd_cli.store.checkpoint import save_checkpoint
    from fedpcd_cli.store.status import RunState, write_status

    plan = load_recipe(recipe).recipe
    simulation = Simulation(plan, build_federation(plan.data, 1, cache_dir=cache_dir()))
    for _ in range(n_rounds):
        simulation.run_round()
    for old in (root / "checkpoint").iterdir():
        old.unlink()
    save_checkpoint(root / "checkpoint", n_rounds, simulation.state())
    (root / "model.safetensors").unlink()
    with (root / "rounds.jsonl").open("a") as file:
        file.write('{"round":5,"cli')
    write_status(root / "status.json", RunState.RUNNING, n_rounds, 4)
    assert torch.get_num_threads() >= 1


def test_ctrl_c_keeps_everything_and_exits_130(recipe, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "fedpcd_cli", "train", str(recipe), "--set", "rounds=100000"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        records = list((tmp_path / "runs").rglob("rounds.jsonl"))
        if records and records[0].read_text().count("\n") >= 3:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "error: interrupted after round" in err
    assert "--resume" in err
    assert "Traceback" not in err
    run = RunReader(only_run(tmp_path / "runs"))
    assert run.status.state == "interrupted"
    done = len(run.rounds)
    assert done >= 3
    assert (run.paths.checkpoints / f"round-{done:06d}.safetensors").exists()


def test_wrong_options_are_usage_errors(fedpcd, recipe):
    assert fedpcd("train", recipe, "--force", "--resume").code == 2
    missing = fedpcd("train", recipe, "--resume")
    assert missing.code == 2
    assert "There is no run to resume in runs/tiny/" in missing.err
    wrong = fedpcd("train", recipe, "--set", "aggregator.tua=0.1")
    assert wrong.code == 2
    assert "Did you mean 'tau'?" in wrong.err
    wrong = fedpcd("train", recipe, "--set", "engine.device=cuda:77")
    assert wrong.code == 2
    assert "engine.device must be a device of this machine; found 'cuda:77'" in wrong.err
    wrong = fedpcd("train", "quick-strat")
    assert wrong.code == 2
    assert "quick-start" in wrong.err


def test_every_client_is_evaluated_and_its_values_kept(fedpcd, recipe, tmp_path):
    fedpcd("train", recipe)
    run = RunReader(only_run(tmp_path / "runs"))
    for evaluation in run.evaluations:
        assert len(evaluation["n_correct"]) == len(evaluation["n_test"]) == 12
        accuracies = np.array(evaluation["n_correct"]) / np.array(evaluation["n_test"])
        assert evaluation["metrics"]["worst10_accuracy"] == pytest.approx(np.sort(accuracies)[:2].mean())


def test_ditto_shows_global_and_personal_models_as_rows_of_their_own(fedpcd, recipe, tmp_path):
    done = fedpcd("train", recipe, "--set", "aggregator=ditto")
    assert done.code == 0, done.err
    assert "(personal)" in done.out
    assert "never took part" in " ".join(done.out.split())
    rows = json.loads(fedpcd("report", "runs", "--format", "json").out)["runs"]
    assert [row["model"] for row in rows] == ["global", "personal"]
    assert rows[0]["loss"] != rows[1]["loss"]
    run = RunReader(only_run(tmp_path / "runs"))
    seen = {client for record in run.rounds for client in record["client_ids"]}
    assert run.evaluations[-1]["personal"]["n_unseen"] == 12 - len(seen)
    # Before anybody trained, every personal model is the global one.
    assert run.evaluations[0]["personal"]["n_correct"] == run.evaluations[0]["n_correct"]
    only = fedpcd(
        "train", recipe, "--set", "aggregator=ditto", "--set", "evaluation.model=personal", "--format", "json"
    )
    assert [row["model"] for row in json.loads(only.out)["runs"]] == ["personal"]
    wrong = fedpcd("train", recipe, "--set", "evaluation.model=personal")
    assert wrong.code == 2
    assert "evaluation.model must be 'global' or 'both'" in wrong.err


def test_force_does_not_take_a_run_from_a_process_that_writes_it(fedpcd, recipe, tmp_path):
    assert fedpcd("train", recipe, "--quiet").code == 0
    root = only_run(tmp_path / "runs")
    status = json.loads((root / "status.json").read_text())
    parent = {**status, "state": "running", "pid": os.getppid()}
    (root / "status.json").write_text(json.dumps(parent))
    records = (root / "rounds.jsonl").read_bytes()
    for options in ((), ("--resume",), ("--force",)):
        refused = fedpcd("train", recipe, *options)
        assert refused.code == 2, options
        assert f"is being run by process {os.getppid()}" in refused.err
        assert (root / "rounds.jsonl").read_bytes() == records
    # A process of another machine can't be asked; then --force is the user's word.
    (root / "status.json").write_text(json.dumps({**parent, "host": "another-machine"}))
    assert fedpcd("train", recipe, "--resume").code == 2
    assert fedpcd("train", recipe, "--force", "--quiet").code == 0
    # And a damaged status is no obstacle.
    (root / "status.json").write_text("{")
    assert fedpcd("train", recipe).code == 2
    assert fedpcd("train", recipe, "--force", "--quiet").code == 0


def test_folders_and_threads_that_cannot_be_are_one_line(fedpcd, recipe):
    long = fedpcd("train", recipe, "--set", f"output.root={'x' * 300}")
    assert (long.code, long.out) == (1, "")
    assert "can't be written: File name too long" in long.err
    threads = fedpcd("train", recipe, "--set", "engine.threads=100000")
    assert threads.code == 2
    assert "engine.threads must be at most" in threads.err


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[enforce fail] can't allocate memory: 256 GB")])
def test_too_little_memory_is_said_in_words(fedpcd, recipe, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("fedpcd_cli.commands.train._run", fail)
    done = fedpcd("train", recipe)
    assert done.code == 1
    assert "error: there is not enough memory" in done.err


def test_an_output_folder_that_cannot_be_made_is_named_before_data_is_loaded(fedpcd, recipe, tmp_path):
    (tmp_path / "file").write_text("")
    done = fedpcd("train", recipe, "--set", f"output.root={tmp_path / 'file'}")
    assert done.code == 1
    assert done.err.startswith(f"error: {tmp_path / 'file'}/tiny/fedpcd-s1-")
    assert "can't be written" in done.err
    assert "Note:" not in done.err
