"""Rounds by number and word; every wrong one is a line of text."""

from __future__ import annotations

import json
import shutil

import pytest

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.explain.select import find_round
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.store.reader import RunReader
from fedpcd_cli.store.status import RunState
from fedpcd_cli.testing.cohorts import make_cohort, unit_rows

ANGLES = [(35, 60, 85), (10, 45, 155), (0, 180, 80), (10, 20, 170, 30, 40, 150), (0, 180, 90), (30, 50, 70)]


@pytest.fixture
def run(record_run):
    """Unchanged, bent by one, infeasible, bent by more, infeasible, unchanged."""
    cohorts = [make_cohort(unit_rows(*a), round_index=t, n_clients=6) for t, a in enumerate(ANGLES, start=1)]
    return RunReader(record_run(FedPCD(tau=0.25, history_rounds=0), cohorts))


def test_by_number_and_word(run):
    assert find_round(run, "2").round_index == 2
    assert find_round(run, "last").round_index == 6
    assert find_round(run, "most-bent").round_index == 4
    assert find_round(run, "most-active").round_index in (2, 4)
    entry = find_round(run, "infeasible")
    assert (entry.round_index, entry.others) == (5, (3,))
    assert entry.certificate.round_index == 5


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("0", "has no round 0; it has rounds 1 to 6 of 9 planned."),
        ("-1", "has no round -1; it has rounds 1 to 6 of 9 planned."),
        ("7", "has no round 7; it has rounds 1 to 6 of 9 planned."),
    ],
)
def test_rounds_that_are_not_there(record_run, wanted, message):
    cohorts = [make_cohort(unit_rows(*a), round_index=t, n_clients=6) for t, a in enumerate(ANGLES, start=1)]
    root = record_run(FedPCD(history_rounds=0), cohorts, n_rounds=9, state=RunState.RUNNING)
    with pytest.raises(UsageError) as caught:
        find_round(RunReader(root), wanted)
    assert str(caught.value) == f"{root} {message}"


def test_a_word_that_means_nothing(run):
    with pytest.raises(UsageError) as caught:
        find_round(run, "most-bend")
    assert str(caught.value) == (
        "ROUND must be a number or one of last, most-bent, most-active, infeasible; found 'most-bend'."
        " Did you mean 'most-bent'?"
    )


def test_no_round_was_infeasible(record_run):
    root = record_run(FedPCD(), [make_cohort(unit_rows(10, 20))])
    with pytest.raises(StoreError) as caught:
        find_round(RunReader(root), "infeasible")
    assert str(caught.value) == f"{root}: no round was infeasible; all 1 programs had a solution."


def test_no_round_is_finished(run):
    run.paths.rounds.write_text("")
    with pytest.raises(StoreError) as caught:
        find_round(run, "last")
    assert str(caught.value) == (
        f"{run.root} has no finished round yet.\n  Wait for the first one, or look at its log."
    )


def test_a_missing_certificate(run):
    run.paths.certificate(2).unlink()
    with pytest.raises(StoreError) as caught:
        find_round(run, "2")
    assert str(caught.value) == (
        f"{run.paths.certificate(2)}: no such file.\n"
        "  Restore the file from a copy, or train the run again; other rounds still open."
    )
    assert find_round(run, "4").round_index == 4


def test_a_truncated_certificate(run):
    path = run.paths.certificate(2)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(StoreError, match=r"round-000002\.npz: damaged \(.*\)\.\n  Restore the file from a copy"):
        find_round(run, "2")


def test_a_flipped_byte(run):
    path = run.paths.certificate(2)
    content = bytearray(path.read_bytes())
    place = content.index(b"gram_lower.npy") + 160
    content[place] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match=r"round-000002\.npz: damaged"):
        find_round(run, "2")


def test_the_certificate_of_another_round(run):
    shutil.copy(run.paths.certificate(4), run.paths.certificate(2))
    with pytest.raises(StoreError, match=r"round-000002\.npz: damaged \(it holds round 4, not 2\)"):
        find_round(run, "2")


def test_words_that_need_programs(run):
    lines = run.paths.rounds.read_text().splitlines()
    records = [json.loads(line) | {"diagnostics": {}} for line in lines]
    run.paths.rounds.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(StoreError) as caught:
        find_round(run, "most-bent")
    assert str(caught.value) == (
        f"{run.root}: 'most-bent' needs rounds that solved a program; this run's rule records none.\n"
        "  Name a round by its number, or 'last'."
    )
    assert find_round(run, "last").certificate is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda record: record.pop("diagnostics"), "missing 'diagnostics'"),
        (lambda record: record.pop("client_ids"), "missing 'client_ids'"),
        (lambda record: record.update(diagnostics=[]), "its diagnostics are no object"),
    ],
)
def test_a_record_that_lacks_an_entry(run, change, what):
    records = [json.loads(line) for line in run.paths.rounds.read_text().splitlines()]
    change(records[2])
    run.paths.rounds.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(StoreError) as caught:
        find_round(run, "1")
    assert str(caught.value) == (
        f"{run.paths.rounds}:3: damaged record ({what}).\n  Run the recipe again with --force."
    )
