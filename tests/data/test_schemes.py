"""Partition schemes: nothing lost, nothing twice, nothing that hangs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.components import ParameterError
from fedpcd_cli.data.partition import Pool
from fedpcd_cli.data.schemes.dirichlet import Dirichlet, fill
from fedpcd_cli.data.schemes.dirichlet_class import DirichletClass
from fedpcd_cli.data.schemes.iid import IID
from fedpcd_cli.data.schemes.natural import Natural
from fedpcd_cli.data.schemes.shards import Shards
from fedpcd_cli.errors import DataError


def make_pool(class_sizes, *, seed=0, owners=None):
    targets = np.repeat(np.arange(len(class_sizes)), class_sizes)
    shuffled = np.random.default_rng(seed).permutation(targets).astype(np.int64)
    return Pool(targets=shuffled, n_classes=len(class_sizes), owners=owners)


def deal(scheme, pool, n_clients, seed=0):
    """Deal, check that every sample stands in exactly one client, and return client x class counts."""
    dealing = scheme.deal(pool, n_clients, np.random.default_rng(seed))
    assert len(dealing.indices) == n_clients
    joined = np.concatenate(dealing.indices)
    assert joined.dtype == np.int64
    assert np.array_equal(np.sort(joined), np.arange(len(pool.targets)))
    assert all((np.diff(part) > 0).all() for part in dealing.indices)
    counts = np.array([np.bincount(pool.targets[part], minlength=pool.n_classes) for part in dealing.indices])
    return counts, dealing


class_sizes_lists = st.lists(st.integers(0, 60), min_size=1, max_size=12).filter(lambda sizes: sum(sizes) > 0)
alphas = st.floats(1e-3, 1e3)


@settings(max_examples=80, deadline=None)
@given(sizes=class_sizes_lists, alpha=alphas, data=st.data(), lognormal=st.booleans(), seed=st.integers(0, 2**32))
def test_dirichlet_deals_every_sample_once(sizes, alpha, data, lognormal, seed):
    n_clients = data.draw(st.integers(1, sum(sizes)))
    scheme = Dirichlet(dirichlet_alpha=alpha, sizes="lognormal" if lognormal else "equal")
    counts, _ = deal(scheme, make_pool(sizes), n_clients, seed)
    held = counts.sum(axis=1)
    assert held.min() >= 1
    if not lognormal:
        assert held.max() - held.min() <= 1


@settings(max_examples=80, deadline=None)
@given(sizes=class_sizes_lists, alpha=alphas, data=st.data(), balance=st.booleans(), seed=st.integers(0, 2**32))
def test_dirichlet_class_deals_every_sample_once(sizes, alpha, data, balance, seed):
    n_clients = data.draw(st.integers(1, sum(sizes)))
    min_size = data.draw(st.integers(0, sum(sizes) // n_clients))
    scheme = DirichletClass(dirichlet_alpha=alpha, balance=balance, min_size=min_size)
    counts, dealing = deal(scheme, make_pool(sizes), n_clients, seed)
    assert counts.sum(axis=1).min() >= min_size
    assert len(dealing.notes) <= 1


@settings(max_examples=80, deadline=None)
@given(sizes=class_sizes_lists, data=st.data(), seed=st.integers(0, 2**32))
def test_shards_give_exactly_k_classes(sizes, data, seed):
    n_clients = data.draw(st.integers(1, sum(sizes)))
    present = sum(size > 0 for size in sizes)
    k = data.draw(st.integers(1, present))
    possible = n_clients * k >= present and sum(min(size, n_clients) for size in sizes) >= n_clients * k
    if not possible:
        with pytest.raises(DataError, match=r"data\.partition\.classes_per_client must be at (least|most) "):
            deal(Shards(classes_per_client=k), make_pool(sizes), n_clients, seed)
        return
    counts, _ = deal(Shards(classes_per_client=k), make_pool(sizes), n_clients, seed)
    assert ((counts > 0).sum(axis=1) == k).all()
    for column in counts.T:  # a class is cut evenly: the remainder is spread
        held = column[column > 0]
        assert held.size == 0 or held.max() - held.min() <= 1


@settings(max_examples=30, deadline=None)
@given(sizes=class_sizes_lists, data=st.data(), seed=st.integers(0, 2**32))
def test_iid_sizes_differ_by_one_at_most(sizes, data, seed):
    n_clients = data.draw(st.integers(1, sum(sizes)))
    counts, _ = deal(IID(), make_pool(sizes), n_clients, seed)
    assert np.ptp(counts.sum(axis=1)) <= 1


@pytest.mark.parametrize(
    "scheme",
    [
        IID(),
        Dirichlet(dirichlet_alpha=0.01),
        Dirichlet(dirichlet_alpha=0.01, sizes="lognormal"),
        DirichletClass(dirichlet_alpha=0.01),
        DirichletClass(dirichlet_alpha=0.01, balance=True),
        Shards(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("class_sizes", [[6000] * 10, [600] * 100], ids=["10 classes", "100 classes"])
def test_the_paper_setting_takes_no_time(scheme, class_sizes):
    """α = 0.01, 60,000 samples, 100 clients: where tools that draw again never end. Many seeds, no NaN."""
    pool = make_pool(class_sizes)
    started = time.perf_counter()
    for seed in range(3):
        deal(scheme, pool, 100, seed)
    assert (time.perf_counter() - started) / 3 < 1.0


@pytest.mark.parametrize("alpha", [1e-3, 0.01, 1e3])
@pytest.mark.parametrize("kind", [Dirichlet, DirichletClass])
def test_ten_thousand_clients(kind, alpha):
    settings = {"min_size": 5} if kind is DirichletClass else {}
    started = time.perf_counter()
    deal(kind(dirichlet_alpha=alpha, **settings), make_pool([6000] * 10), 10_000)
    assert time.perf_counter() - started < 5.0


def test_ten_thousand_clients_of_shards():
    started = time.perf_counter()
    deal(Shards(), make_pool([6000] * 10), 10_000)
    assert time.perf_counter() - started < 5.0


def test_a_class_with_one_sample():
    for scheme in (
        IID(),
        Dirichlet(dirichlet_alpha=1e-3),
        DirichletClass(min_size=1),
        Shards(classes_per_client=2),
    ):
        counts, _ = deal(scheme, make_pool([1, 50, 50]), 10)
        assert counts[:, 0].sum() == 1


@pytest.mark.parametrize("scheme", [IID(), Dirichlet(), DirichletClass(), Shards()], ids=lambda s: s.name)
def test_impossible_numbers_of_clients(scheme):
    with pytest.raises(
        DataError, match=r"data\.partition\.n_clients must be at most 6, the number of samples to deal; "
    ):
        deal(scheme, make_pool([3, 3]), 7)
    with pytest.raises(DataError, match=r"data\.partition\.n_clients must be at least 1; found 0"):
        deal(scheme, make_pool([3, 3]), 0)


@pytest.mark.parametrize("scheme", [IID(), Dirichlet(), DirichletClass(), Shards()], ids=lambda s: s.name)
def test_same_generator_same_dealing(scheme):
    pool = make_pool([40] * 5)
    first, second, other = (scheme.deal(pool, 10, np.random.default_rng(s)).indices for s in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


# --- dirichlet ---


def test_large_alpha_gives_even_mixtures():
    counts, _ = deal(Dirichlet(dirichlet_alpha=1e3), make_pool([6000] * 10), 100)
    assert np.abs(counts / 600 - 0.1).max() < 0.06  # binomial noise: 0.012


def test_small_alpha_gives_one_class_while_the_pools_last():
    """Twenty clients and large pools: nobody has to leave its favorite class."""
    logs = np.log(np.full((20, 4), 1e-300))
    logs[np.arange(20), np.arange(20) % 4] = 0.0
    counts, n_redrawn = fill(logs, np.full(20, 30), np.full(4, 150), np.random.default_rng(0))
    assert n_redrawn == 0
    assert counts.tolist() == [[30 * (k == i % 4) for k in range(4)] for i in range(20)]


def test_used_up_classes_are_renormalized_over_the_others():
    """Both clients want class 0 only; it has 60 of the 100 samples, and their next choices differ."""
    logs = np.array([[0.0, -500.0, -900.0], [0.0, -900.0, -500.0]])
    counts, n_redrawn = fill(logs, np.array([50, 50]), np.array([60, 20, 20]), np.random.default_rng(0))
    assert counts.sum(axis=0).tolist() == [60, 20, 20]
    assert counts.sum(axis=1).tolist() == [50, 50]
    assert counts[:, 0] == pytest.approx([30, 30], abs=12)  # hypergeometric: sd 2.4
    assert n_redrawn == 40  # each sample once, however often it is drawn
    # Whoever needs less than 20 more takes it from its own second choice alone.
    first, second = counts
    assert first[2] == max(0, first[1] + first[2] - 20)
    assert second[1] == max(0, second[1] + second[2] - 20)


def test_redraws_are_reported():
    _, dealing = deal(Dirichlet(dirichlet_alpha=0.01), make_pool([60] * 10), 10)
    assert len(dealing.notes) == 1
    assert "of the samples were drawn again because their class was used up" in dealing.notes[0]
    assert deal(Dirichlet(dirichlet_alpha=0.01), make_pool([60]), 10)[1].notes == ()


def test_lognormal_sizes():
    counts, _ = deal(Dirichlet(sizes="lognormal", size_sigma=1.0), make_pool([20_000] * 10), 500)
    logs = np.log(counts.sum(axis=1) - 1)
    assert logs.std() == pytest.approx(1.0, abs=0.12)
    counts, _ = deal(Dirichlet(sizes="lognormal", size_sigma=0.0), make_pool([100] * 3), 10)
    assert np.ptp(counts.sum(axis=1)) <= 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dirichlet_alpha": 0}, "dirichlet.dirichlet_alpha must be at least 1e-09; found 0"),
        ({"sizes": "even"}, "dirichlet.sizes must be one of 'equal' or 'lognormal'; found 'even'"),
        ({"alpha": 0.1}, "dirichlet.alpha is not a parameter of partition 'dirichlet'."),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ParameterError) as caught:
        Dirichlet.from_params(params)
    assert message in str(caught.value)


# --- dirichlet-class ---


def test_each_class_is_cut_by_a_dirichlet_draw():
    """Shares of one class over N clients have the Dirichlet's variance p (1 - p) / (N α + 1)."""
    shares = []
    for seed in range(60):
        counts, _ = deal(DirichletClass(dirichlet_alpha=0.5, min_size=0), make_pool([2000] * 5), 10, seed)
        shares.append(counts / 2000)
    assert np.var(np.array(shares)) == pytest.approx(0.1 * 0.9 / 6, rel=0.15)


def test_small_clients_are_filled_from_the_largest():
    pool = make_pool([200, 200])
    raw, _ = deal(DirichletClass(dirichlet_alpha=0.01, min_size=0), pool, 20, seed=3)
    counts, dealing = deal(DirichletClass(dirichlet_alpha=0.01, min_size=10), pool, 20, seed=3)
    before, after = raw.sum(axis=1), counts.sum(axis=1)
    small = before < 10
    assert small.sum() > 10
    assert (after[small] == 10).all()
    assert (after[~small] <= before[~small]).all()
    assert after.min() == 10
    n_moved = int((10 - before[small]).sum())
    assert dealing.notes == (
        f"dirichlet-class: {small.sum()} of 20 clients had fewer than 10 samples; "
        f"{n_moved} samples moved to them from the largest clients",
    )


def test_balance_stops_clients_at_their_even_share():
    """After its cap a client gets nothing more, so it ends below n/N plus one class."""
    pool = make_pool([100] * 10)

    def given_above_the_cap(balance):
        counts, _ = deal(DirichletClass(dirichlet_alpha=0.1, balance=balance, min_size=0), pool, 10)
        held = np.cumsum(counts, axis=1)
        return int(counts[:, 1:][held[:, :-1] >= 100].sum()), int(counts.sum(axis=1).max())

    above, largest = given_above_the_cap(balance=True)
    assert above == 0
    assert largest <= 99 + 100
    assert given_above_the_cap(balance=False)[0] > 0


def test_min_size_that_cannot_be_met():
    with pytest.raises(DataError) as caught:
        deal(DirichletClass(min_size=7), make_pool([30, 30]), 10)
    assert str(caught.value) == "data.partition.min_size must be at most 6 (60 samples, 10 clients); found 7."


# --- shards ---


def test_shards_mix_class_pairs():
    counts, _ = deal(Shards(classes_per_client=2), make_pool([600] * 10), 100)
    pairs = {tuple(np.flatnonzero(row)) for row in counts}
    assert len(pairs) > 25  # of 45; dealing in turn would give 5
    assert (counts.sum(axis=1) == 60).all()


def test_shards_follow_class_sizes():
    counts, _ = deal(Shards(classes_per_client=1), make_pool([100, 300]), 8)
    assert (counts > 0).sum(axis=0).tolist() == [2, 6]


@pytest.mark.parametrize(
    ("k", "sizes", "n_clients", "message"),
    [
        (4, [10, 10, 0, 10], 5, "must be at most 3, the number of classes; found 4."),
        (1, [10, 10, 10, 10], 3, "must be at least 2: 3 clients with 1 classes each can't hold 4 classes."),
        (2, [20, 1, 1], 10, "must be at most 1 for 10 clients: the classes have too few samples for 20 shards"),
    ],
)
def test_impossible_shards(k, sizes, n_clients, message):
    with pytest.raises(DataError) as caught:
        deal(Shards(classes_per_client=k), make_pool(sizes), n_clients)
    assert f"data.partition.classes_per_client {message}" in str(caught.value)


# --- natural ---


def test_natural_owners_are_sorted_by_id():
    pool = Pool(targets=np.array([0, 1, 0, 1]), n_classes=2, owners=np.array([30, 7, 30, 12]))
    _, dealing = deal(Natural(), pool, 3)
    assert [part.tolist() for part in dealing.indices] == [[1], [3], [0, 2]]


@pytest.mark.parametrize(
    ("owners", "n_clients", "message"),
    [
        (None, 2, "data.partition.scheme 'natural' needs a dataset with owners; this one has none."),
        ([0, 1, 2, 1], 2, "data.partition.n_clients must be 3, the number of owners in the data; found 2."),
        ([0, 1, -1, -1], 2, "needs an owner for every sample; 2 samples have none."),
    ],
)
def test_natural_refusals(owners, n_clients, message):
    pool = Pool(targets=np.array([0, 1, 0, 1]), n_classes=2, owners=None if owners is None else np.array(owners))
    with pytest.raises(DataError) as caught:
        deal(Natural(), pool, n_clients)
    assert message in str(caught.value)
    assert caught.value.hint
