"""A recipe's data section becomes a federation."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.data.digits import Digits
from fedpcd_cli.data.federation import build_federation
from fedpcd_cli.data.npz import Npz
from fedpcd_cli.data.plugin import fedpcd_register_datasets, fedpcd_register_partitions
from fedpcd_cli.data.schemes.dirichlet import Dirichlet
from fedpcd_cli.data.schemes.natural import Natural
from fedpcd_cli.data.synthetic import Synthetic
from fedpcd_cli.errors import DataError


def test_counts_and_sizes_agree(data_section, tmp_path):
    federation = build_federation(data_section(Digits(), Dirichlet(), 12), 3, cache_dir=tmp_path)
    targets = federation.dataset.targets
    assert federation.n_clients == 12
    for client in range(12):
        train = targets[federation.partition.train_indices[client]]
        assert federation.train_counts[client].tolist() == [int((train == k).sum()) for k in range(10)]
        test = targets[federation.partition.test_indices[client]]
        assert federation.test_counts[client].tolist() == [int((test == k).sum()) for k in range(10)]
        assert (federation.train_sizes[client], federation.test_sizes[client]) == (len(train), len(test))
    assert federation.train_sizes.sum() + federation.test_sizes.sum() == 1797


def test_equal_arguments_give_equal_federations(data_section, tmp_path):
    first, second = (
        build_federation(
            data_section(Synthetic(generated_clients=5), Natural(), 5, protocol="official"), 1, cache_dir=tmp_path
        )
        for _ in range(2)
    )
    assert first.partition.digest == second.partition.digest
    assert first.dataset.fingerprint == second.dataset.fingerprint


def test_progress_names_the_steps(data_section, tmp_path):
    said = []
    build_federation(data_section(Digits(), Dirichlet(), 12), 0, cache_dir=tmp_path, progress=said.append)
    assert said == ["loading digits", "dealing 1,797 samples to 12 clients"]


def test_missing_root_is_named(data_section, tmp_path):
    with pytest.raises(DataError, match=r"data\.root is required by dataset 'npz'; found null"):
        build_federation(data_section(Npz(), Dirichlet(), 12), 0, cache_dir=tmp_path)


def test_notes_of_data_and_partition_are_joined(data_section, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(
        path,
        train_inputs=np.zeros((4, 2)),
        train_targets=np.array([0, 2, 0, 2]),
        test_inputs=np.zeros((1, 2)),
        test_targets=np.array([2]),
    )
    section = data_section(Npz(), Dirichlet(dirichlet_alpha=1e3), 4, root=path, protocol="official")
    notes = build_federation(section, 0, cache_dir=tmp_path).notes
    assert notes[0] == "no sample of class 1"
    assert notes[-1] == "3 of 4 clients have no test samples"


def test_everything_is_registered():
    datasets, schemes = [], []
    fedpcd_register_datasets(register=datasets.append)
    fedpcd_register_partitions(register=schemes.append)
    assert [d.name for d in datasets] == ["digits", "npz", "synthetic"]
    assert [s.name for s in schemes] == ["iid", "dirichlet", "dirichlet-class", "shards", "natural"]
    assert all(component.summary for component in [*datasets, *schemes])
