"""Rounds in the plane, where everything can be worked by hand."""

from __future__ import annotations

import pytest

from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.testing.cohorts import aggregate_all, aggregate_once, make_cohort, unit_rows


@pytest.fixture
def in_the_plane():
    """`in_the_plane(10, 45, 155, tau=0.25) -> Certificate` of unit clients 0, 1, ... at these angles."""

    def build(*degrees, **params):
        return aggregate_once(FedPCD(**params), make_cohort(unit_rows(*degrees))).certificate

    return build


@pytest.fixture
def with_history():
    """Three rounds in the plane: clients 0 and 1 at 0° and 40°, then 2 at 170°, then 3 at 20°; the last certificate."""

    def build(**params):
        cohorts = [
            make_cohort(unit_rows(*angles), client_ids=ids, round_index=t, n_clients=4)
            for t, (angles, ids) in enumerate([((0, 40), (0, 1)), ((170,), (2,)), ((20,), (3,))], start=1)
        ]
        *_, (result, _) = aggregate_all(FedPCD(**params), cohorts, n_clients=4, cohort_size=2)
        return result.certificate

    return build


@pytest.fixture
def that_cancels():
    """The certificate of two clients whose average is exactly zero."""
    return aggregate_once(FedPCD(tau=0.1), make_cohort([[1.0, 0.0], [-1.0, 0.0]])).certificate
