"""Run directories made up in milliseconds, with accuracies that a test can work out by hand."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import partial

import numpy as np
import pytest

from fedpcd_cli.metrics import compute_metrics

RECIPE = {
    "name": "made-up",
    "seed": 1,
    "data_seed": 1,
    "rounds": 20,
    "data": {
        "dataset": "digits",
        "root": None,
        "download": False,
        "partition": {"scheme": "dirichlet", "n_clients": 4, "dirichlet_alpha": 0.1},
        "test": {"protocol": "matched", "fraction": 0.2},
    },
    "model": {"name": "mlp", "hidden": [8]},
    "local": {"epochs": 1, "lr": 0.1},
    "server": {"lr": 1.0, "participation_rate": 0.5},
    "aggregator": {"name": "fedavg", "weights": "examples"},
    "evaluation": {"every": 10, "model": "both", "unseen": "initial"},
    "engine": {"device": "cpu", "threads": 1, "precision": "float32"},
    "output": {"root": "runs", "checkpoint_seconds": 60.0},
}


def evaluation(round_index, correct, n_test=100):
    """Return a record: client i has correct[i] of `n_test` test examples right."""
    right = np.asarray(correct, dtype=float)
    counts = np.full(right.size, n_test) if np.isscalar(n_test) else np.asarray(n_test)
    losses = (counts - right) * 0.5
    return {
        "round": round_index,
        "params_digest": "0",
        "n_test": counts.tolist(),
        "metrics": compute_metrics(right, counts, losses).as_dict(),
        "n_correct": right.astype(int).tolist(),
        "loss_sums": losses.tolist(),
    }


def write_run(
    folder, rule="fedavg", *, seed=1, data_seed=1, curve=None, state="finished", reached=None, changes=None,
    personal=None, fingerprint="f" * 64, digest=None, notes=(), name=None, rounds=(), timings=(), version=1,
    pid=999_999_999, **params,
):  # fmt: skip
    """Write a run directory: `write_run(folder, "fedpcd", seed=2, curve={0: [..], 20: [..]}, tau=0.1) -> Path`.

    `curve` maps rounds to right answers per client, or to one number for all four clients; other keywords are the
    rule's parameters; `changes` sets recipe keys by their dotted names.
    """
    recipe = copy.deepcopy(RECIPE)
    recipe |= {"seed": seed, "data_seed": data_seed, "aggregator": {"name": rule, **params}}
    for key, value in (changes or {}).items():
        *path, last = key.split(".")
        node = recipe
        for part in path:
            node = node[part]
        node[last] = value
    n_clients = recipe["data"]["partition"]["n_clients"]
    curve = {0: 10, 10: 40, 20: 60} if curve is None else curve
    full = {t: [v] * n_clients if np.isscalar(v) else v for t, v in curve.items()}
    text = json.dumps([recipe["aggregator"], changes, seed, data_seed, state], sort_keys=True, default=str)
    tag = hashlib.blake2b(text.encode(), digest_size=3).hexdigest()
    root = folder / (name or f"{rule}-s{seed}-{tag}")
    root.mkdir(parents=True)
    (root / "recipe.yaml").write_text(json.dumps(recipe))
    protocol = recipe["data"]["test"]["protocol"]
    environment = {
        "data": {"dataset": recipe["data"]["dataset"], "fingerprint": fingerprint, "notes": list(notes)},
        "partition": {
            "scheme": recipe["data"]["partition"]["scheme"], "protocol": protocol, "n_clients": n_clients,
            "notes": [], "digest": digest or f"split-{data_seed}",
        },
    }  # fmt: skip
    (root / "environment.json").write_text(json.dumps(environment))
    status = {
        "state": state, "round_index": max(full) if reached is None else reached,
        "n_rounds": recipe["rounds"], "message": "", "pid": pid, "host": "", "format_version": version,
    }  # fmt: skip
    (root / "status.json").write_text(json.dumps(status))
    lines = []
    for t, correct in full.items():
        record = evaluation(t, correct)
        if personal is not None:
            own = evaluation(t, [personal[t]] * n_clients)
            record["personal"] = {"n_unseen": 1, **{k: own[k] for k in ("metrics", "n_correct", "loss_sums")}}
        lines.append(json.dumps(record, separators=(",", ":")) + "\n")
    (root / "evaluations.jsonl").write_text("".join(lines))
    (root / "rounds.jsonl").write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rounds))
    (root / "timings.jsonl").write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in timings))
    return root


@pytest.fixture(scope="session")
def run_writer():
    """Return :func:`write_run`."""
    return write_run


@pytest.fixture
def make_run(tmp_path):
    """Write a run directory below `runs`; see :func:`write_run`."""
    return partial(write_run, tmp_path / "runs")


@pytest.fixture
def report_of(tmp_path):
    """Build the report of everything below the runs folder: `report_of(interval=True) -> Report`."""
    from fedpcd_cli.report.build import Options, build_report

    def build(*paths, **options):
        return build_report(list(paths) or [tmp_path / "runs"], Options(**options))

    return build
