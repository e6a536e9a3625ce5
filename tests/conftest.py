"""Fixtures that all tests share."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass

import pytest

# Read when torch loads: threads that wait actively stall each other on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _cosines(updates, direction):
    lengths = updates.norm(dim=1) * direction.norm()
    return tuple(
        p / n if n > 0 else None for p, n in zip((updates @ direction).tolist(), lengths.tolist(), strict=True)
    )


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep decoded data out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDPCD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def fedpcd(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty folder: `fedpcd("train", "quick-start") -> Outcome`."""
    from fedpcd_cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedpcd", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def record_run(tmp_path):
    """Write a run directory from cohorts: `record_run(FedPCD(tau=0.1), [cohort, ...], "name") -> Path`."""
    from fedpcd_cli.rounds.record import RoundRecord
    from fedpcd_cli.store.status import RunState
    from fedpcd_cli.store.writer import RunWriter
    from fedpcd_cli.testing.cohorts import aggregate_all

    def record(
        rule, cohorts, name="made-up", *, state=RunState.FINISHED, n_rounds=None, evaluations=(), excluded=()
    ):
        cohorts = list(cohorts)
        n_clients = cohorts[0].n_clients
        writer = RunWriter(tmp_path / name, len(cohorts) if n_rounds is None else n_rounds)
        recipe = {"name": name, "seed": 1, "aggregator": {"name": rule.name, **asdict(rule)}}
        writer.write_setup(json.dumps(recipe), {"partition": {"n_clients": n_clients}}, {})
        rounds = aggregate_all(rule, cohorts, n_clients=n_clients, cohort_size=max(c.size for c in cohorts))
        for cohort, (result, _) in zip(cohorts, rounds, strict=True):
            writer.write_round(
                RoundRecord(
                    round_index=cohort.round_index,
                    client_ids=cohort.client_ids,
                    n_examples=tuple(int(n) for n in cohort.n_examples),
                    excluded=tuple(excluded),
                    local_lr=cohort.local_lr,
                    update_norms=tuple(cohort.pseudo_gradients.norm(dim=1).tolist()),
                    update_cosines=_cosines(cohort.pseudo_gradients, result.direction),
                    training_loss=None,
                    direction_norm=float(result.direction.norm()),
                    diagnostics=result.diagnostics,
                    warnings=result.warnings,
                ),
                result.certificate,
                {},
            )
        for evaluation in evaluations:
            writer._evaluations.append(evaluation)
        writer.write_state(state)
        writer.close()
        return tmp_path / name

    return record
