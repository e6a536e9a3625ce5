"""Time and memory of `fedpcd explain-round` on a long run.

    python tests/benchmarks/explain_round.py

Writes a run of 500 rounds with 100 clients (cohort 10, history 10, about 69 constraints a round) into a temporary
folder, then starts the command anew for each way of asking and prints wall-clock time, processor time and peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

N_CLIENTS, COHORT, ROUNDS, PARAMS = 100, 10, 500, 300
QUESTIONS = (
    "last", "most-bent", "most-active", "last --tau 0.1", "last --tau-sweep", "last --conflicts",
    "last --format json", "last --client 3 --over-time", "last --verify", "last --figure round.png",
    "last --html round.html",
)  # fmt: skip


def cohorts():
    """Yield the rounds of clients that mostly pull apart."""
    import torch

    from fedpcd_cli.engine.sampling import sample_cohort
    from fedpcd_cli.seeds import numpy_generator
    from fedpcd_cli.testing.cohorts import make_cohort

    rng = numpy_generator(0, "centers")
    centers = rng.standard_normal((N_CLIENTS, PARAMS)) + 0.1
    for t in range(1, ROUNDS + 1):
        ids = sample_cohort(0, t, N_CLIENTS, COHORT)
        rows = centers[list(ids)] + rng.standard_normal((COHORT, PARAMS))
        yield make_cohort(
            rows, client_ids=ids, round_index=t, n_rounds=ROUNDS, n_clients=N_CLIENTS, dtype=torch.float32
        )


def write_run(root: Path) -> None:
    """Write the run directory."""
    from fedpcd_cli.pcd.aggregator import FedPCD
    from fedpcd_cli.rounds.record import RoundRecord
    from fedpcd_cli.store.status import RunState
    from fedpcd_cli.store.writer import RunWriter
    from fedpcd_cli.testing.cohorts import aggregate_all

    rule = FedPCD()
    rounds = list(cohorts())
    writer = RunWriter(root, ROUNDS)
    recipe = {"name": "long", "seed": 1, "aggregator": {"name": rule.name, **asdict(rule)}}
    writer.write_setup(json.dumps(recipe), {"partition": {"n_clients": N_CLIENTS}}, {})
    results = aggregate_all(rule, rounds, n_clients=N_CLIENTS, cohort_size=COHORT)
    for cohort, (result, _) in zip(rounds, results, strict=True):
        record = RoundRecord(
            round_index=cohort.round_index,
            client_ids=cohort.client_ids,
            n_examples=(1,) * COHORT,
            excluded=(),
            local_lr=0.1,
            update_norms=tuple(cohort.pseudo_gradients.norm(dim=1).tolist()),
            update_cosines=(None,) * cohort.size,
            training_loss=1.0,
            direction_norm=float(result.direction.norm()),
            diagnostics=result.diagnostics,
        )
        writer.write_round(record, result.certificate, {})
    writer.write_state(RunState.FINISHED)
    writer.close()


def ask(root: Path, question: str) -> tuple[float, float, float]:
    """Return seconds on the clock, seconds of processor time, and peak MiB of one command."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.chdir(root.parent)
        os.execv(
            sys.executable, [sys.executable, "-m", "fedpcd_cli", "explain-round", str(root), *question.split()]
        )
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"explain-round {question} failed")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Write the run, ask, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        # A process of its own: what a parent held would count as its children's peak memory.
        subprocess.run([sys.executable, __file__, str(root)], check=True)
        print(f"{'question':32} {'seconds':>8} {'cpu s':>8} {'MiB':>6}")
        for question in QUESTIONS:
            best = min(ask(root, question) for _ in range(3))
            print(f"{question:32} {best[0]:8.2f} {best[1]:8.2f} {best[2]:6.0f}")
    print(f"{N_CLIENTS} clients, {ROUNDS} rounds")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_run(Path(sys.argv[1]))
    else:
        main()
