"""Time and memory of `fedpcd report` on many long runs.

    python tests/benchmarks/report_scale.py [--every 1]

Writes 100 runs (ten rules, ten seeds) of 500 rounds with 100 clients into a temporary folder, then starts the command
anew for each way of asking and prints wall-clock time, processor time and peak memory; again with 10 and 50 runs, whose
peak memory shows whether it grows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_CLIENTS, COHORT, ROUNDS = 100, 10, 500
RULES = (
    "fedavg", "fedpcd", "fedlf", "fedfv", "fedmgda-plus", "qffl", "afl", "fedheal", "fedpw", "craft",
)  # fmt: skip
QUESTIONS = (
    "", "--format json --interval --baseline fedavg", "--at best", "--at mean-of-last-10", "--metrics all",
    "--target fedavg", "--format latex", "--figures FIGURES",
)  # fmt: skip


def recipe(rule: str, seed: int) -> dict:
    """Return a resolved recipe."""
    own = {"tau": 0.02, "history_rounds": 10} if rule == "fedpcd" else {}
    return {
        "name": "scale", "seed": seed, "data_seed": None, "rounds": ROUNDS,
        "data": {
            "dataset": "cifar10", "root": "data", "download": False, "normalize": None, "augment": None,
            "partition": {"scheme": "dirichlet", "dirichlet_alpha": 0.1, "n_clients": N_CLIENTS},
            "test": {"protocol": "matched", "fraction": 0.2},
        },
        "model": {"name": "cnn"},
        "local": {"epochs": 1, "steps": None, "batch_size": 50, "lr": 0.1, "lr_decay": 1.0},
        "server": {"lr": 1.0, "participation_rate": COHORT / N_CLIENTS},
        "aggregator": {"name": rule, **own},
        "evaluation": {"every": 1, "model": "both", "unseen": "initial"},
        "engine": {"device": "auto", "threads": "auto", "precision": "float32"},
        "output": {"root": "runs", "checkpoint_seconds": 60.0},
    }  # fmt: skip


def write_run(root: Path, rule: str, seed: int, every: int) -> None:
    """Write what a run of that size leaves behind, apart from certificates and models."""
    from fedpcd_cli.metrics import compute_metrics

    rng = np.random.default_rng([RULES.index(rule), seed])
    (root / "certificates").mkdir(parents=True)
    (root / "recipe.yaml").write_text(json.dumps(recipe(rule, seed)))
    environment = {
        "data": {"dataset": "cifar10", "fingerprint": "f" * 64, "notes": []},
        "partition": {
            "scheme": "dirichlet", "protocol": "matched", "n_clients": N_CLIENTS, "notes": [], "digest": f"{seed:064d}",
        },
    }  # fmt: skip
    (root / "environment.json").write_text(json.dumps(environment))
    status = {
        "state": "finished", "round_index": ROUNDS, "n_rounds": ROUNDS, "message": "", "pid": 0, "host": "",
        "format_version": 1,
    }  # fmt: skip
    (root / "status.json").write_text(json.dumps(status))
    counts = rng.integers(80, 140, N_CLIENTS)
    skill = rng.uniform(0.3, 0.9, N_CLIENTS)
    with (root / "evaluations.jsonl").open("w") as file:
        for t in range(0, ROUNDS + 1, every):
            right = rng.binomial(counts, skill * (0.1 + 0.9 * (1 - np.exp(-t / 120))))
            losses = (counts - right) * rng.uniform(1, 2, N_CLIENTS)
            record = {
                "round": t, "params_digest": "0" * 32, "n_test": counts.tolist(),
                "metrics": compute_metrics(right, counts, losses).as_dict(), "n_correct": right.tolist(),
                "loss_sums": losses.tolist(),
            }  # fmt: skip
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
    with (root / "rounds.jsonl").open("w") as file:
        for t in range(1, ROUNDS + 1):
            clients = rng.choice(N_CLIENTS, COHORT, replace=False)
            active = rng.choice(N_CLIENTS, 20, replace=False)
            facts = {
                "n_constraints": 69, "n_cached": 59, "n_active": 20, "feasible": True, "status": "bent", "tau_used": 0.02,
                "angle_degrees": float(rng.uniform(20, 50)), "least_progress": 0.02, "kkt_residual": 1e-16,
                "zero_clients": [], "multipliers": {str(c): float(rng.exponential(0.1)) for c in active},
            }  # fmt: skip
            record = {
                "round": t, "client_ids": clients.tolist(), "n_examples": [400] * COHORT, "excluded": [], "local_lr": 0.1,
                "update_norms": rng.uniform(1, 3, COHORT).tolist(), "training_loss": 1.0, "direction_norm": 1.0,
                "diagnostics": facts if rule == "fedpcd" else {}, "warnings": [],
            }  # fmt: skip
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def ask(runs: Path, question: str) -> tuple[float, float, float]:
    """Return seconds on the clock, seconds of processor time, and peak MiB of one command."""
    question = question.replace("FIGURES", str(runs.parent / "figures"))
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "-m", "fedpcd_cli", "report", str(runs), *question.split()])
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"report {question} failed")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Write the runs, ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=10, help="rounds between evaluations")
    parser.add_argument("--write", type=Path, help="only write the runs, into this folder")
    arguments = parser.parse_args()
    if arguments.write:
        for seed in range(1, 11):
            for rule in RULES:
                write_run(arguments.write / f"{rule}-s{seed}", rule, seed, arguments.every)
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        # A process of its own: what a parent held would count as its children's peak memory.
        command = [sys.executable, __file__, "--every", str(arguments.every), "--write", str(runs)]
        subprocess.run(command, check=True)
        size = sum(path.stat().st_size for path in runs.rglob("*.jsonl")) / 2**20
        print(f"100 runs, {ROUNDS} rounds, {N_CLIENTS} clients, evaluated every {arguments.every}: {size:.0f} MiB")
        print(f"{'question':44} {'runs':>5} {'seconds':>8} {'cpu s':>8} {'MiB':>6}")
        for question in QUESTIONS:
            best = min(ask(runs, question) for _ in range(3))
            print(f"{question:44} {100:5} {best[0]:8.2f} {best[1]:8.2f} {best[2]:6.0f}")
        for n in (10, 50):
            part = Path(folder) / f"runs{n}"
            part.mkdir()
            for root in sorted(runs.iterdir())[:n]:
                shutil.copytree(root, part / root.name)
            best = min(ask(part, "") for _ in range(3))
            print(f"{'':44} {n:5} {best[0]:8.2f} {best[1]:8.2f} {best[2]:6.0f}")


if __name__ == "__main__":
    main()
