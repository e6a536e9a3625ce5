"""Time per round of fedpcd against a bare PyTorch loop that takes the same SGD steps, in one process.

    python tests/benchmarks/round_time.py --archive cifar10-images.tar.xz

100 clients, Dirichlet 0.1, cohort 10, batch 50, one epoch, lr 0.1 x 0.1: the bare loop, FedAvg and FedPCD
(H = 10) in turn, round by round, so that a machine that drifts hits all of them alike. Prints medians, ratios to
the bare loop, FedPCD's server step and its program, and peak memory; `--json FILE` keeps them.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from fedpcd_cli.data.cache import cache_dir
from fedpcd_cli.data.federation import Federation, build_federation
from fedpcd_cli.engine.flat_model import build_module
from fedpcd_cli.engine.sampling import sample_cohort
from fedpcd_cli.engine.simulate import Simulation
from fedpcd_cli.recipe.document import recipe_from_document
from fedpcd_cli.recipe.schema import Recipe


def document(archive: Path | None, aggregator: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return the benchmark's recipe; Fashion-MNIST if there is no CIFAR-10 archive."""
    data: dict[str, Any] = {"dataset": "fashion-mnist"}
    if archive is not None:
        data = {"dataset": "image-folder", "root": str(archive)}
    return {
        "name": "benchmark",
        "seed": 1,
        "rounds": 1000,
        "data": {
            **data,
            "partition": {"scheme": "dirichlet", "n_clients": 100, "dirichlet_alpha": 0.1},
        },
        "model": {"name": "cnn"},
        "local": {"epochs": 1, "batch_size": 50, "lr": 0.01},
        "server": {"participation_rate": 0.1},
        "aggregator": aggregator,
        "engine": {"device": "cpu", "threads": threads},
    }


class BareLoop:
    """FedAvg as a page of plain PyTorch would have it: same cohorts, same number and size of steps."""

    def __init__(self, recipe: Recipe, federation: Federation, *, images_last: bool) -> None:
        dataset = federation.dataset
        self.module = build_module(recipe.model, dataset.sample_shape, dataset.n_classes, recipe.seed)
        self.format = torch.channels_last if images_last else torch.contiguous_format
        self.inputs = torch.from_numpy(dataset.inputs)
        self.targets = torch.from_numpy(dataset.targets)
        self.indices = [torch.from_numpy(i.copy()) for i in federation.partition.train_indices]
        self.recipe = recipe
        self.round_index = 0

    def run_round(self) -> float:
        """Run one round; return its seconds."""
        started = time.perf_counter()
        self.round_index += 1
        parameters = list(self.module.parameters())
        received = [p.detach().clone() for p in parameters]
        total = [torch.zeros_like(p) for p in received]
        cohort = sample_cohort(self.recipe.seed, self.round_index, 100, 10)
        n_cohort = sum(len(self.indices[c]) for c in cohort)
        self.module.train()
        for client in cohort:
            with torch.no_grad():
                for parameter, value in zip(parameters, received, strict=True):
                    parameter.copy_(value)
            order = self.indices[client][torch.randperm(len(self.indices[client]))]
            for batch in order.split(self.recipe.local.batch_size):
                inputs = self.inputs[batch].float().div_(255).contiguous(memory_format=self.format)
                loss = functional.cross_entropy(self.module(inputs), self.targets[batch])
                gradients = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.add_(gradient, alpha=-self.recipe.local.lr)
            for sum_, parameter in zip(total, parameters, strict=True):
                sum_.add_(parameter.detach(), alpha=len(order) / n_cohort)
        with torch.no_grad():
            for parameter, value in zip(parameters, total, strict=True):
                parameter.copy_(value)
        return time.perf_counter() - started


def resident_mib() -> float:
    """Return this process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure_memory(recipe: Recipe, rounds: int) -> dict[str, float]:
    """Run FedPCD alone and return how its peak exceeds that of a process that has trained one batch."""
    module = build_module(recipe.model, (3, 32, 32), 10, seed=0)
    for _ in range(3):
        functional.cross_entropy(module(torch.rand(50, 3, 32, 32)), torch.zeros(50, dtype=torch.long)).backward()
    before = resident_mib()
    federation = build_federation(recipe.data, 1, cache_dir=cache_dir())
    simulation = Simulation(recipe, federation)
    peak = before
    for _ in range(rounds):
        simulation.run_round()
        peak = max(peak, resident_mib())
    model = simulation.params.numel() * 4 / 2**20
    history = simulation.aggregator_state["history"]["ring"].shape[0] + simulation.cohort_size
    data = federation.dataset.inputs.nbytes / 2**20
    return {
        "growth_mib": peak - before,
        "data_mib": data,
        "model_mib": model,
        "history_mib": history * model,
        "allowed_mib": data + 3 * model + history * model,
    }


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, help="CIFAR-10 as images; without it Fashion-MNIST is used")
    parser.add_argument("--rounds", type=int, default=24, help="rounds of each; the first 2 are not counted")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--memory", action="store_true", help="only FedPCD's memory, in a process of its own")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rules = {
        "fedavg": {"name": "fedavg"},
        "fedpcd": {"name": "fedpcd", "tau": 0.02, "history_rounds": 10},
    }
    recipes = {
        name: recipe_from_document(document(options.archive, rule, options.threads))
        for name, rule in rules.items()
    }
    if options.memory:
        torch.set_num_threads(options.threads)
        print(json.dumps(measure_memory(recipes["fedpcd"], options.rounds)))
        return
    federation = build_federation(
        recipes["fedavg"].data, 1, cache_dir=cache_dir(), progress=lambda text: print(text, file=sys.stderr)
    )
    simulations = {name: Simulation(recipe, federation) for name, recipe in recipes.items()}
    bare = {
        "bare loop": BareLoop(recipes["fedavg"], federation, images_last=False),
        "bare loop, channels last": BareLoop(recipes["fedavg"], federation, images_last=True),
    }
    times: dict[str, list[float]] = {name: [] for name in (*bare, *simulations)}
    server: list[float] = []
    solve: list[float] = []
    constraints: list[int] = []
    for index in range(options.rounds):
        for name, loop in bare.items():
            times[name].append(loop.run_round())
        for name, simulation in simulations.items():
            started = time.perf_counter()
            result = simulation.run_round()
            times[name].append(time.perf_counter() - started)
            if name == "fedpcd":
                server.append(result.seconds["server"])
                solve.append(result.seconds["solve"])
                constraints.append(int(result.record.diagnostics["n_constraints"]))
        print(f"round {index + 1}/{options.rounds}", file=sys.stderr)
    medians = {name: statistics.median(values[2:]) for name, values in times.items()}
    full = slice(min(12, options.rounds - 1), None)  # the history has filled
    command = [
        sys.executable,
        __file__,
        "--memory",
        "--rounds",
        str(options.rounds),
        "--threads",
        str(options.threads),
    ]
    command += ["--archive", str(options.archive)] if options.archive else []
    memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    result_row = {
        "threads": options.threads,
        "seconds_per_round": medians,
        "ratio_to_bare_loop": {name: value / medians["bare loop"] for name, value in medians.items()},
        "fedpcd_server_ms": 1e3 * statistics.median(server[full]),
        "fedpcd_solve_ms": 1e3 * statistics.median(solve[full]),
        "constraints": statistics.median(constraints[full]),
        "n_params": simulations["fedpcd"].model.layout.n_params,
        "memory": memory,
    }
    for name, value in medians.items():
        print(f"{name:26} {value:7.3f} s/round   {value / medians['bare loop']:5.2f} x bare loop")
    print(
        f"FedPCD server step {result_row['fedpcd_server_ms']:.1f} ms, program {result_row['fedpcd_solve_ms']:.2f} ms "
        f"({result_row['constraints']:.0f} constraints, {result_row['n_params']:,} parameters)"
    )
    print(
        f"FedPCD's memory grows by {memory['growth_mib']:.0f} MiB; data + 3 models + history and cohort: "
        f"{memory['allowed_mib']:.0f} MiB"
    )
    if options.json:
        options.json.write_text(json.dumps(result_row, indent=2) + "\n")


if __name__ == "__main__":
    main()
