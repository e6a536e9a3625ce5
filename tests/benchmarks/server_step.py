"""Server time per round of every rule, on updates of a real size.

    python tests/benchmarks/server_step.py

100 clients, cohort 10, the layout of `cnn` on CIFAR-10 (797,962 parameters); synthetic float32 updates that share a
direction and conflict otherwise, 16 rounds, so that histories are full. Prints the median of the last 6 rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from fedpcd_cli.aggregators.base import ServerContext
from fedpcd_cli.engine.flat_model import FlatModel, build_module
from fedpcd_cli.engine.sampling import sample_cohort
from fedpcd_cli.registry import get_registry
from fedpcd_cli.rounds.cohort import Cohort

N_CLIENTS, COHORT, ROUNDS = 100, 10, 16


def cohorts(model: FlatModel, rounds: int):
    """Yield one cohort per round, its updates drawn anew."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(model.layout.n_params, generator=generator)
    for t in range(1, rounds + 1):
        updates = torch.randn(COHORT, model.layout.n_params, generator=generator).add_(shared, alpha=0.2)
        rng = np.random.default_rng(t)
        yield Cohort(
            round_index=t,
            n_rounds=rounds,
            n_clients=N_CLIENTS,
            client_ids=sample_cohort(0, t, N_CLIENTS, COHORT),
            n_examples=rng.integers(400, 600, COHORT),
            pseudo_gradients=updates,
            params=model.initial,
            local_lr=0.01,
            server_lr=1.0,
            layout=model.layout,
            received_losses=rng.uniform(0.5, 2.0, COHORT),
            running_losses=rng.uniform(0.5, 2.0, COHORT),
            final_losses=rng.uniform(0.5, 2.0, COHORT),
        )


def main() -> None:
    """Time every registered rule and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    registry = get_registry()
    module = build_module(registry.get("model", "cnn")(), (3, 32, 32), 10, seed=0)
    model = FlatModel(module, torch.device("cpu"), torch.float32)
    context = ServerContext(n_clients=N_CLIENTS, cohort_size=COHORT, layout=model.layout, params=model.initial)
    rules = {name: registry.get("aggregator", name)() for name in registry.names("aggregator")}
    states = {name: rule.init(context) for name, rule in rules.items()}
    times: dict[str, list[float]] = {name: [] for name in rules}
    constraints, solves = 0, []
    for cohort in cohorts(model, options.rounds):
        for name, rule in rules.items():
            started = time.perf_counter()
            aggregation, states[name] = rule.aggregate(cohort, states[name])
            times[name].append(1e3 * (time.perf_counter() - started))
            if aggregation.certificate is not None:
                constraints = aggregation.certificate.size
                solves.append(1e3 * aggregation.certificate.seconds)
    medians = {name: statistics.median(values[-6:]) for name, values in times.items()}
    print(f"{options.threads} threads, cohort {COHORT}, {model.layout.n_params:,} parameters")
    for name, value in sorted(medians.items(), key=lambda item: item[1]):
        extra = (
            f"   program {statistics.median(solves[-6:]):.2f} ms, {constraints} constraints"
            if name == "fedpcd"
            else ""
        )
        print(f"{name:14} {value:7.1f} ms{extra}")
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "milliseconds": medians}, indent=2) + "\n")


if __name__ == "__main__":
    main()
