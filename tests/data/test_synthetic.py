"""Synthetic(α, β): the generator's definition, checked on its moments."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcd_cli.components import ParameterError
from fedpcd_cli.data.synthetic import Synthetic


def owner_rows(dataset, owner):
    return dataset.inputs[dataset.client_ids == owner]


def test_shapes_owners_and_split(context):
    dataset = Synthetic(generated_clients=20).load(context())
    assert dataset.inputs.shape[1] == 60
    assert dataset.inputs.dtype == np.float32
    assert dataset.n_classes == 10
    sizes = np.bincount(dataset.client_ids)
    train_sizes = np.bincount(dataset.client_ids[: dataset.n_train])
    assert len(sizes) == 20
    assert sizes.min() >= 50
    assert np.abs(sizes - train_sizes - 0.1 * sizes).max() <= 0.5


def test_a_client_depends_on_seed_and_its_id_only(context):
    small = Synthetic(generated_clients=3).load(context())
    large = Synthetic(generated_clients=8).load(context())
    other = Synthetic(generated_clients=3).load(context(data_seed=1))
    assert np.array_equal(owner_rows(small, 2), owner_rows(large, 2))
    assert small.fingerprint == Synthetic(generated_clients=3).load(context()).fingerprint
    assert small.fingerprint != other.fingerprint


def test_input_variances_fall_as_j_to_minus_1_2(context):
    dataset = Synthetic(generated_clients=40, identical=True).load(context())
    variances = dataset.inputs.astype(np.float64).var(axis=0)
    expected = np.arange(1, 61) ** -1.2
    n = len(dataset.targets)
    assert np.abs(variances / expected - 1).max() < 6 * np.sqrt(2 / n)


def test_identical_means_one_model_for_all(context):
    """With one model the labels of all clients are linear in one W: a joint fit of it must explain them."""
    from sklearn.linear_model import LogisticRegression

    def accuracy(**params):
        data = Synthetic(generated_clients=30, max_client_samples=200, **params).load(context())
        model = LogisticRegression(C=1e3, max_iter=5000, tol=1e-3)
        return model.fit(data.inputs, data.targets).score(data.inputs, data.targets)

    assert accuracy(identical=True) > 0.97
    assert accuracy(synthetic_alpha=1.0, synthetic_beta=1.0) < 0.93


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_beta_moves_the_clients_inputs(context, beta):
    data = Synthetic(generated_clients=300, synthetic_beta=beta, max_client_samples=60).load(context())
    centers = np.array([owner_rows(data, k).mean() for k in range(300)])
    # The mean over 60 features of v_k has variance β² + 1/60 (and sampling noise well below it).
    assert np.var(centers) == pytest.approx(beta**2 + 1 / 60, rel=0.35)


def test_cap_on_sizes(context):
    data = Synthetic(generated_clients=50, max_client_samples=70).load(context())
    assert np.bincount(data.client_ids).max() == 70


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match=r"synthetic.synthetic_alpha must be at least 0; found -1.0"):
        Synthetic.from_params({"synthetic_alpha": -1.0})
    with pytest.raises(ParameterError, match=r"synthetic.max_client_samples must be at least 50"):
        Synthetic.from_params({"max_client_samples": 3})
