"""Certificates: exact round trips, solving again, and damage that is named."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest

from fedpcd_cli.errors import StoreError
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.rounds.outcome import SolveStatus
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, make_cohort, unit_rows


def _bent_certificate() -> Certificate:
    rows = numpy_generator(0, "rows").standard_normal((6, 4))
    cohorts = [
        make_cohort(rows[2 * t : 2 * t + 2], client_ids=[2 * t, 2 * t + 1], round_index=t + 1, n_clients=6)
        for t in range(3)
    ]
    *_, (result, _) = aggregate_all(FedPCD(tau=0.05), cohorts, n_clients=6, cohort_size=2)
    assert result.certificate.status is SolveStatus.BENT
    return result.certificate


def _certificates() -> list[Certificate]:
    opposite = make_cohort([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.3, 1.0]])
    zero = make_cohort([[0.0, 0.0]])
    return [
        _bent_certificate(),
        aggregate_once(FedPCD(), opposite).certificate,
        aggregate_once(FedPCD(on_infeasible="relax", primary="none"), opposite).certificate,
        aggregate_once(FedPCD(), zero).certificate,
    ]


def _through_a_file(certificate: Certificate) -> dict[str, np.ndarray]:
    file = io.BytesIO()
    np.savez(file, **certificate.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as content:
        return {name: content[name] for name in content.files}


@pytest.mark.parametrize("which", range(4))
def test_round_trip_is_exact(which):
    certificate = _certificates()[which]
    again = Certificate.from_arrays(_through_a_file(certificate))
    for field in dataclasses.fields(Certificate):
        before, after = getattr(certificate, field.name), getattr(again, field.name)
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after, err_msg=field.name)
            assert before.dtype == after.dtype, field.name
        else:
            assert before == after, field.name


def test_program_can_be_solved_again_from_the_saved_arrays():
    certificate = _bent_certificate()
    again = solve(Certificate.from_arrays(_through_a_file(certificate)).program())
    np.testing.assert_array_equal(again.multipliers, certificate.multipliers)
    assert again.residuals == certificate.residuals
    other = solve(certificate.program(), "cvxpy")
    np.testing.assert_allclose(other.multipliers, certificate.multipliers, atol=1e-6)


def test_certificate_says_enough_to_check_the_round():
    """Everything that is recorded follows from gram, reference products and multipliers."""
    c = _bent_certificate()
    np.testing.assert_allclose(c.slacks, c.gram @ c.multipliers + c.reference_products - c.thresholds, atol=1e-15)
    np.testing.assert_allclose(c.thresholds, c.tau * np.diag(c.gram))
    squared = (
        c.reference_norm**2 + 2 * c.reference_products @ c.multipliers + c.multipliers @ c.gram @ c.multipliers
    )
    assert c.direction_norm == pytest.approx(np.sqrt(squared), rel=1e-12)
    assert c.progress.min() >= c.tau - 1e-9
    assert sorted(c.ages.tolist()) == [0, 0, 1, 1, 2, 2]
    assert (c.weights[c.cached] == 0).all()
    assert c.weights.sum() == pytest.approx(1)


def test_angle_of_the_published_example():
    certificate = aggregate_once(FedPCD(tau=0.25), make_cohort(unit_rows(10, 45, 155))).certificate
    reference = unit_rows(10, 45, 155).mean(dim=0).numpy()
    reference /= np.linalg.norm(reference)
    bent = reference + certificate.multipliers @ unit_rows(10, 45, 155).numpy()
    cosine = reference @ bent / np.linalg.norm(bent)
    assert certificate.angle_degrees == pytest.approx(np.degrees(np.arccos(cosine)), abs=1e-6)


def test_conflicting_clients_are_named():
    cohort = make_cohort([[1.0, 0.0], [-1.0, 0.0], [0.3, 1.0]], client_ids=[11, 5, 8])
    assert aggregate_once(FedPCD(), cohort).certificate.conflicting_ids == (11, 5)


@pytest.mark.parametrize("name", ["client_ids", "multipliers", "gram_lower", "facts", "active", "norms"])
def test_missing_entries_are_named(name):
    arrays = _bent_certificate().to_arrays()
    del arrays[name]
    with pytest.raises(StoreError, match=f"The certificate is damaged: entry '{name}' is missing"):
        Certificate.from_arrays(arrays)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("slacks", np.zeros(3), r"entry 'slacks' must be float64 \[6\]; found float64 \[3\]"),
        ("gram_lower", np.zeros(5), r"entry 'gram_lower' must be float64 \[21\]"),
        ("multipliers", np.full(6, np.nan), "entry 'multipliers' must be finite"),
        ("active", np.zeros(6), "entry 'active' must be bool"),
        ("client_ids", np.zeros(6), "entry 'client_ids' must be int64"),
        ("facts", np.array("{nonsense"), "entry 'facts' is not JSON"),
        ("facts", np.array("[]"), "entry 'facts' must be a JSON object"),
        ("facts", np.zeros(2), "entry 'facts' must be one text"),
    ],
)
def test_damaged_entries_are_named(name, value, message):
    arrays = _bent_certificate().to_arrays() | {name: value}
    with pytest.raises(StoreError, match=message):
        Certificate.from_arrays(arrays)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tau", None, "'tau' is missing"),
        ("tau", "high", "'tau' must be int or float; found 'high'"),
        ("primary", 1, "'primary' must be bool; found 1"),
        ("status", "guessed", "status or residuals are not known"),
        ("residuals", {"primal": 0.0}, "status or residuals are not known"),
        ("format_version", 99, "has format 99; this fedpcd reads up to 1"),
    ],
)
def test_damaged_facts_are_named(key, value, message):
    arrays = _bent_certificate().to_arrays()
    facts = json.loads(str(arrays["facts"]))
    facts = {k: v for k, v in facts.items() if k != key} | ({} if value is None else {key: value})
    with pytest.raises(StoreError, match=message):
        Certificate.from_arrays(arrays | {"facts": np.array(json.dumps(facts))})
