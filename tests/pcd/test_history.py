"""The history cache: who is a constraint, for how long, and what it costs."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.pcd.history import HistoryCache
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_all, context_of, make_cohort


def _noisy(client: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(30)


def _run(schedule, *, window, n_clients=20, cohort_size=2, values=None, **params):
    """Aggregate cohorts of the given clients, one per round; client i sends its own row every time."""
    rows = numpy_generator(0, "rows").standard_normal((n_clients, 12)) if values is None else values
    cohorts = [
        make_cohort(rows[list(ids)], client_ids=ids, round_index=t, n_clients=n_clients)
        for t, ids in enumerate(schedule, start=1)
    ]
    rule = FedPCD(tau=0.0, history_rounds=window, **params)
    return list(aggregate_all(rule, cohorts, n_clients=n_clients, cohort_size=cohort_size))


def _cached(result):
    certificate = result.certificate
    return dict(
        zip(
            certificate.client_ids[certificate.cached].tolist(),
            certificate.source_rounds[certificate.cached].tolist(),
            strict=True,
        )
    )


def test_age_h_counts_and_age_h_plus_one_does_not():
    results = [result for result, _ in _run([(0, 1), (2,), (3,), (4,)], window=2)]
    assert _cached(results[0]) == {}
    assert _cached(results[1]) == {0: 1, 1: 1}
    assert _cached(results[2]) == {0: 1, 1: 1, 2: 2}
    assert _cached(results[3]) == {2: 2, 3: 3}
    assert sorted(results[2].certificate.ages.tolist()) == [0, 1, 2, 2]


def test_gaps_between_rounds_count_as_age():
    rule = FedPCD(history_rounds=2, tau=0.0)
    rows = np.eye(3)
    early = make_cohort(rows[:1], client_ids=[0], n_clients=3, round_index=1)
    for late, expected in ((3, 1), (4, 0)):
        cohort = make_cohort(rows[1:2], client_ids=[1], n_clients=3, round_index=late)
        *_, (result, _) = aggregate_all(rule, [early, cohort], n_clients=3, cohort_size=1)
        assert result.diagnostics["n_cached"] == expected


def test_returning_client_overwrites_its_entry_and_is_not_doubled():
    results = [result for result, _ in _run([(0, 1), (2, 0), (3,), (4,)], window=2)]
    assert results[1].certificate.client_ids.tolist() == [2, 0, 1]
    assert _cached(results[2]) == {0: 2, 1: 1, 2: 2}
    assert _cached(results[3]) == {0: 2, 2: 2, 3: 3}


def test_zero_update_of_a_returning_client_leaves_no_entry():
    values = numpy_generator(0, "rows").standard_normal((4, 6))
    first = make_cohort(values[:2], client_ids=[0, 1], n_clients=4, round_index=1)
    again = make_cohort(np.zeros((1, 6)), client_ids=[0], n_clients=4, round_index=2)
    last = make_cohort(values[2:3], client_ids=[2], n_clients=4, round_index=3)
    results = list(aggregate_all(FedPCD(tau=0.0), [first, again, last], n_clients=4, cohort_size=2))
    assert results[1][0].diagnostics["status"] == "no_step"
    assert _cached(results[2][0]) == {1: 1}


def test_no_history():
    results = _run([(0, 1), (2, 3), (4, 5)], window=0)
    assert all(result.diagnostics["n_cached"] == 0 for result, _ in results)
    assert results[-1][1]["history"]["ring"] is None


def test_history_never_changes_the_average():
    values = np.eye(6)
    results = _run([(0, 1), (2, 3)], window=5, values=values, n_clients=6)
    certificate = results[1][0].certificate
    assert certificate.weights.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert certificate.mean_norm == pytest.approx(np.sqrt(0.5))


def test_gram_matrix_of_cached_rows_equals_fresh_products(sample_rounds):
    cohorts = list(sample_rounds(_noisy, n_clients=15, cohort_size=4, n_rounds=12))
    seen = {}
    for cohort, (result, _) in zip(
        cohorts, aggregate_all(FedPCD(history_rounds=4), cohorts, n_clients=15, cohort_size=4), strict=True
    ):
        seen |= dict(zip(cohort.client_ids, cohort.pseudo_gradients.numpy().copy(), strict=True))
        rows = np.stack([seen[client] for client in result.certificate.client_ids.tolist()])
        scales = result.certificate.scales
        np.testing.assert_allclose(
            result.certificate.gram, rows @ rows.T / scales[:, None] / scales[None, :], atol=1e-12
        )


def test_only_new_rows_are_multiplied(sample_rounds):
    """k * c pairs a round: cohort against cohort and cached rows, never cached against cached."""
    cohorts = list(sample_rounds(_noisy, n_clients=40, cohort_size=4, n_rounds=20))
    total = 0
    for result, state in aggregate_all(FedPCD(history_rounds=6), cohorts, n_clients=40, cohort_size=4):
        total += 4 * result.certificate.size
        assert state["history"]["multiplied_pairs"] == total
    assert result.certificate.size > 16


def test_ring_is_one_matrix_that_is_updated_in_place(sample_rounds):
    cohorts = list(sample_rounds(_noisy, n_clients=40, cohort_size=4, n_rounds=8))
    rings = [
        state["history"]["ring"]
        for _, state in aggregate_all(FedPCD(history_rounds=3), cohorts, n_clients=40, cohort_size=4)
    ]
    assert rings[0].shape == (12, 30)
    assert len({ring.data_ptr() for ring in rings}) == 1
    few = HistoryCache.empty(10, n_clients=7, cohort_size=4)
    assert few.capacity == 7


def test_cohort_matrix_may_be_reused_by_the_engine():
    """Rows are copied: the next round's training may overwrite the matrix."""
    matrix = torch.eye(4, dtype=torch.float64)
    rule = FedPCD(tau=0.0)
    first = make_cohort(matrix[:2], client_ids=[0, 1], n_clients=4, round_index=1)
    state = rule.aggregate(first, rule.init(context_of(first)))[1]
    matrix[:2] = 99.0
    second = make_cohort(matrix[2:], client_ids=[2, 3], n_clients=4, round_index=2)
    certificate = rule.aggregate(second, state)[0].certificate
    np.testing.assert_array_equal(certificate.norms, 1.0)


def test_slot_positions_mean_nothing(sample_rounds):
    cohorts = list(sample_rounds(_noisy, n_clients=15, cohort_size=3, n_rounds=9))
    rule = FedPCD(history_rounds=4, tau=0.1)
    *_, (_, state) = aggregate_all(rule, cohorts[:-1], n_clients=15, cohort_size=3)
    history = copy.deepcopy(state["history"])
    order = np.random.default_rng(0).permutation(history["capacity"])
    history["ring"] = history["ring"][torch.from_numpy(order)]
    history["slots"] = np.argsort(order)[history["slots"]]
    one, _ = rule.aggregate(cohorts[-1], {"history": history, "ema": state["ema"]})
    other, _ = rule.aggregate(cohorts[-1], state)
    assert one.certificate.size == other.certificate.size > 6
    torch.testing.assert_close(one.direction, other.direction, rtol=1e-12, atol=1e-12)


def test_state_is_plain_data_and_survives_a_checkpoint(sample_rounds, tmp_path):
    from fedpcd_cli.store.checkpoint import load_checkpoint, save_checkpoint

    cohorts = list(sample_rounds(_noisy, n_clients=15, cohort_size=3, n_rounds=8, dtype=torch.float32))
    rule = FedPCD(history_rounds=4, tau=0.1, normalization="ema")
    whole = [r.direction for r, _ in aggregate_all(rule, cohorts, n_clients=15, cohort_size=3)]
    *_, (_, state) = aggregate_all(rule, cohorts[:4], n_clients=15, cohort_size=3)
    save_checkpoint(tmp_path, 4, {"aggregator": state})
    loaded, complaints = load_checkpoint(tmp_path, torch.device("cpu"))
    assert complaints == []
    resumed = loaded["aggregator"]
    for cohort, expected in zip(cohorts[4:], whole[4:], strict=True):
        result, resumed = rule.aggregate(cohort, resumed)
        assert torch.equal(result.direction, expected)


def test_cohort_larger_than_declared_is_refused():
    rows = np.eye(5)
    cohorts = [make_cohort(rows, n_clients=9, round_index=1)]
    with pytest.raises(FedPCDError, match="round 1: the history holds 2 updates; found 5"):
        list(aggregate_all(FedPCD(history_rounds=1, tau=0.0), cohorts, n_clients=9, cohort_size=2))
