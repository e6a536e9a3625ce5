"""One client's rounds, by hand."""

from __future__ import annotations

import pytest

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.explain.story import client_story
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.rounds.record import Exclusion
from fedpcd_cli.store.reader import RunReader
from fedpcd_cli.testing.cohorts import make_cohort, unit_rows


@pytest.fixture
def run(record_run):
    """Client 1 is sampled in rounds 1 and 5 of 6 and cached for two rounds after each."""
    seen = [((30, 60), (0, 1)), ((200,), (2,)), ((40,), (0,)), ((50,), (3,)), ((60,), (1,)), ((10,), (0,))]
    cohorts = [
        make_cohort(unit_rows(*angles), client_ids=ids, round_index=t, n_clients=4)
        for t, (angles, ids) in enumerate(seen, start=1)
    ]
    evaluations = [
        {"round": 2, "n_test": [2, 5, 2, 2], "n_correct": [0, 1, 0, 0]},
        {"round": 4, "n_test": [2, 5, 2, 2], "n_correct": [0, 4, 0, 0]},
    ]
    return RunReader(record_run(FedPCD(tau=0.1, history_rounds=2), cohorts, evaluations=evaluations))


def test_sampled_cached_and_evaluated(run):
    chapters = list(client_story(run, 1))
    assert [(c.round_index, c.role, c.age) for c in chapters] == [
        (1, "sampled", 0), (2, "cached", 1), (3, "cached", 2), (4, "absent", None), (5, "sampled", 0), (6, "cached", 1),
    ]  # fmt: skip
    assert [c.accuracy for c in chapters] == [None, 0.2, None, 0.8, None, None]
    # Round 2 follows client 2 at 200 degrees; client 1 lies at 60.
    assert chapters[1].before == pytest.approx(-0.766, abs=1e-3)
    assert chapters[1].short
    assert chapters[1].required == pytest.approx(0.1)
    assert chapters[3].multiplier is None
    assert [c.norm for c in chapters if c.norm is not None] == pytest.approx([1.0] * 5)


def test_progress_is_that_of_the_certificate(run):
    for chapter in client_story(run, 1):
        if chapter.age is not None:
            certificate = run.certificate(chapter.round_index)
            place = certificate.client_ids.tolist().index(1)
            assert chapter.after == pytest.approx(certificate.progress[place])
            assert chapter.multiplier == certificate.multipliers[place]
            assert chapter.active == certificate.active[place]


def test_left_out_is_told_with_the_reason(record_run):
    root = record_run(
        FedPCD(), [make_cohort(unit_rows(30), n_clients=3)], excluded=[Exclusion(client_id=2, reason="NaN")]
    )
    (chapter,) = client_story(RunReader(root), 2)
    assert (chapter.role, chapter.reason, chapter.age) == ("excluded", "NaN", None)


def test_a_client_without_test_examples_has_no_accuracy(record_run):
    evaluations = [{"round": 1, "n_test": [0, 1], "n_correct": [0, 1]}]
    root = record_run(FedPCD(), [make_cohort(unit_rows(30), n_clients=2)], evaluations=evaluations)
    (chapter,) = client_story(RunReader(root), 0)
    assert chapter.accuracy is None


def test_a_client_that_is_not_there(run):
    with pytest.raises(UsageError) as caught:
        list(client_story(run, 4))
    assert str(caught.value) == "--client must be in [0, 3], the clients of the run; found 4."


def test_a_missing_certificate_is_named(run):
    run.paths.certificate(2).unlink()
    with pytest.raises(StoreError, match=r"round-000002\.npz: no such file"):
        list(client_story(run, 1))


def test_a_damaged_environment_is_named(run):
    run.paths.environment.write_text("{}")
    with pytest.raises(StoreError, match=r"damaged \(missing 'partition'\)"):
        list(client_story(RunReader(run.root), 1))


def test_a_damaged_evaluation_is_named(run):
    path = run.paths.evaluations
    path.write_text(path.read_text().replace('"n_correct":[0,4,0,0]', '"n_correct":[0]'))
    with pytest.raises(StoreError) as caught:
        list(client_story(RunReader(run.root), 1))
    assert str(caught.value) == (
        f"{path}:2: damaged record (list index out of range).\n  Run the recipe again with --force."
    )
