"""Who is tested on what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.data.partition import Dealing, PartitionScheme
from fedpcd_cli.data.protocol import count_classes, deal_federation
from fedpcd_cli.data.schemes.dirichlet import Dirichlet
from fedpcd_cli.data.schemes.dirichlet_class import DirichletClass
from fedpcd_cli.data.schemes.iid import IID
from fedpcd_cli.data.schemes.natural import Natural
from fedpcd_cli.errors import PluginError


class Fixed(PartitionScheme):
    """Deals consecutive blocks of given sizes."""

    name = "fixed"
    sizes: tuple[int, ...] = ()

    def deal(self, pool, n_clients, rng):
        ends = np.cumsum(self.sizes)[:-1]
        return Dealing(indices=tuple(np.split(np.arange(len(pool.targets)), ends)))


def fixed(*sizes):
    scheme = Fixed()
    object.__setattr__(scheme, "sizes", sizes)
    return scheme


def run(dataset, scheme, n_clients, protocol="matched", fraction=1 / 6, seed=0):
    partition = deal_federation(
        dataset, scheme, n_clients, protocol=protocol, test_fraction=fraction, data_seed=seed
    )
    joined = np.concatenate([*partition.train_indices, *partition.test_indices])
    assert len(np.unique(joined)) == len(joined)
    return partition


def sizes(parts):
    return [len(part) for part in parts]


# --- matched ---


def test_matched_splits_each_client_five_to_one(make_dataset):
    dataset = make_dataset(np.arange(48) % 3, np.arange(12) % 3, 3)
    partition = run(dataset, IID(), 5)
    assert sizes(partition.train_indices) == [10] * 5
    assert sizes(partition.test_indices) == [2] * 5
    assert (partition.protocol, partition.scheme, partition.notes) == ("matched", "iid", ())


def test_matched_uses_train_and_test_samples_alike(make_dataset):
    dataset = make_dataset(np.zeros(300, int), np.zeros(300, int), 1)
    partition = run(dataset, IID(), 4, fraction=0.5)
    in_test = np.concatenate(partition.test_indices)
    assert 110 < np.count_nonzero(in_test < 300) < 190


def test_matched_keeps_one_sample_of_each_kind(make_dataset):
    """Sizes 1, 2, 3, 54 with 1/6: exact shares 0.17, 0.33, 0.5, 9 of ten test samples."""
    dataset = make_dataset(np.zeros(60, int), [], 1)
    partition = run(dataset, fixed(1, 2, 3, 54), 4)
    assert sizes(partition.test_indices)[:3] == [0, 1, 1]
    assert sizes(partition.train_indices)[:3] == [1, 1, 2]
    assert sizes(partition.test_indices)[3] in (9, 10)
    assert partition.notes == ("1 of 4 clients have no test samples",)


def test_matched_never_takes_the_last_training_sample(make_dataset):
    dataset = make_dataset(np.zeros(12, int), [], 1)
    partition = run(dataset, fixed(2, 10), 2, fraction=0.99)
    assert sizes(partition.train_indices) == [1, 1]


def test_empty_clients_are_noted(make_dataset):
    dataset = make_dataset(np.zeros(12, int), [], 1)
    partition = run(dataset, fixed(0, 12), 2)
    assert partition.notes == ("1 of 2 clients have no training samples", "1 of 2 clients have no test samples")


@settings(max_examples=50, deadline=None)
@given(n=st.integers(4, 400), data=st.data(), fraction=st.floats(0.01, 0.99), alpha=st.floats(1e-3, 1e3))
def test_matched_counts(make_dataset_once, n, data, fraction, alpha):
    n_clients = data.draw(st.integers(1, n // 2))
    dataset = make_dataset_once(n)
    partition = run(dataset, Dirichlet(dirichlet_alpha=alpha), n_clients, fraction=fraction)
    train, test = np.array(sizes(partition.train_indices)), np.array(sizes(partition.test_indices))
    total = train + test
    assert total.sum() == n
    assert (train >= 1).all()
    assert (test >= 1).all()
    free = (test > 1) & (train > 1)
    assert (np.abs(test - fraction * total)[free] <= 1).all()


@pytest.fixture(scope="module")
def make_dataset_once():
    from fedpcd_cli.data.assemble import assemble_dataset

    def build(n):
        return assemble_dataset(
            name="m",
            inputs=np.zeros((n, 1), np.float32),
            targets=np.arange(n) % 3,
            n_train=n,
            class_names=list("abc"),
        )

    return build


def test_whole_federation_count_is_exact_when_clients_are_large(make_dataset):
    dataset = make_dataset(np.arange(60_000) % 10, np.arange(10_000) % 10, 10)
    partition = run(dataset, Dirichlet(dirichlet_alpha=0.01), 100, fraction=1 / 7)
    assert sum(sizes(partition.test_indices)) == 10_000


# --- official ---


def test_official_keeps_train_and_test_apart(make_dataset):
    dataset = make_dataset(np.arange(100) % 5, np.arange(50) % 5, 5)
    partition = run(dataset, DirichletClass(min_size=1), 7, "official")
    assert np.concatenate(partition.train_indices).max() < 100
    assert np.concatenate(partition.test_indices).min() >= 100
    assert sum(sizes(partition.test_indices)) == 50


def test_official_deals_by_largest_remainder(make_dataset):
    """Class 0: 6 and 2 training samples, 5 test samples: exact shares 3.75 and 1.25, so 4 and 1."""
    dataset = make_dataset([0] * 6 + [1] * 3 + [0] * 2, [0] * 5 + [1] * 2, 2)
    partition = run(dataset, fixed(9, 2), 2, "official")
    counts = count_classes(dataset.targets, partition.test_indices, 2)
    assert counts.tolist() == [[4, 2], [1, 0]]


def test_official_reports_classes_that_nobody_holds(make_dataset):
    dataset = make_dataset([0, 0, 1, 1], [0, 1, 2, 2, 2], 3)
    partition = run(dataset, IID(), 2, "official")
    assert sum(sizes(partition.test_indices)) == 2
    assert partition.notes[0] == "official: 3 test samples of classes that no client holds (2)"


def test_official_mixtures_match(make_dataset):
    dataset = make_dataset(np.arange(60_000) % 10, np.arange(10_000) % 10, 10)
    partition = run(dataset, Dirichlet(dirichlet_alpha=0.1), 50, "official")
    train = count_classes(dataset.targets, partition.train_indices, 10)
    test = count_classes(dataset.targets, partition.test_indices, 10)
    assert np.abs(test - train / 6).max() < 1.0
    assert test.sum() == 10_000


def test_official_ties_favor_no_client(make_dataset):
    """100 clients with one sample of the class each, 50 test samples: half of them, not the first fifty."""
    dataset = make_dataset(np.zeros(100, int), np.zeros(50, int), 1)
    partition = run(dataset, IID(), 100, "official")
    served = np.flatnonzero(sizes(partition.test_indices))
    assert len(served) == 50
    assert 30 < served.mean() < 70
    assert served.max() > 80


# --- natural ---


def test_natural_official_follows_the_test_owners(make_dataset):
    dataset = make_dataset([0, 1, 0, 1], [0, 0, 1, 1], 2, owners=[9, 4, 9, 4, 4, 9, 5, 9])
    partition = run(dataset, Natural(), 2, "official")
    assert [p.tolist() for p in partition.train_indices] == [[1, 3], [0, 2]]
    assert [p.tolist() for p in partition.test_indices] == [[4], [5, 7]]
    assert partition.notes == ("official: 1 test samples belong to no owner with training samples",)


def test_natural_official_without_test_owners_uses_mixtures(make_dataset):
    dataset = make_dataset([0, 1, 0, 1], [0, 0, 1], 2, owners=[9, 4, 9, 4, -1, -1, -1])
    partition = run(dataset, Natural(), 2, "official")
    assert [p.tolist() for p in partition.test_indices] == [[6], [4, 5]]


def test_natural_matched(make_dataset):
    dataset = make_dataset([0] * 12, [0] * 6, 1, owners=[1, 2] * 9)
    partition = run(dataset, Natural(), 2, "matched", fraction=1 / 3)
    assert sizes(partition.train_indices) == [6, 6]
    held = np.concatenate([partition.train_indices[0], partition.test_indices[0]])
    assert (held % 2 == 0).all()


# --- schemes of plug-ins ---


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([[0, 1], [2]], "2 clients, 1 samples missing, 3 dealt."),
        ([[0, 1], [2, 2]], "2 clients, 1 samples missing, 4 dealt."),
        ([[0, 1], [2, 3, 3]], "2 clients, 0 samples missing, 5 dealt."),
        ([[0, 1], [2, 4]], "2 clients, 1 samples missing, 4 dealt."),
        ([[0, 1, 2, 3]], "1 clients, 0 samples missing, 4 dealt."),
    ],
)
@pytest.mark.parametrize("protocol", ["matched", "official"])
def test_a_scheme_that_breaks_its_contract_is_named(make_dataset, parts, found, protocol):
    class Broken(PartitionScheme):
        name = "broken"

        def deal(self, pool, n_clients, rng):
            return Dealing(indices=tuple(np.array(part) for part in parts))

    dataset = make_dataset([0, 0, 0, 0], [], 1)
    with pytest.raises(PluginError) as caught:
        run(dataset, Broken(), 2, protocol)
    assert str(caught.value) == (
        f"partition 'broken' must deal each of 4 samples to exactly one of 2 clients; found {found}"
    )


# --- seeds ---


@pytest.mark.parametrize("protocol", ["matched", "official"])
def test_partition_depends_on_the_data_seed_only(make_dataset, protocol):
    dataset = make_dataset(np.arange(200) % 4, np.arange(80) % 4, 4)
    digests = [run(dataset, Dirichlet(), 8, protocol, seed=seed).digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]
