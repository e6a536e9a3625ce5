"""How test samples reach clients: `matched` or `official`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedpcd_cli.data.dataset import Dataset
from fedpcd_cli.data.partition import Dealing, Partition, PartitionScheme, Pool
from fedpcd_cli.data.records import make_partition
from fedpcd_cli.data.schemes.dealing import apportion, deal_counts, split_by_owner
from fedpcd_cli.data.schemes.natural import Natural
from fedpcd_cli.errors import PluginError
from fedpcd_cli.seeds import numpy_generator

Protocol = Literal["matched", "official"]


def deal_federation(
    dataset: Dataset,
    scheme: PartitionScheme,
    n_clients: int,
    *,
    protocol: Protocol,
    test_fraction: float,
    data_seed: int,
) -> Partition:
    """Deal a dataset's samples to clients and set their test samples aside.

    Args:
        protocol: `matched`: train and test pools merged, dealt by the scheme, then split within each client, as
            the papers on fair federated learning do. `official`: the train pool is dealt by the scheme, the test
            pool after each client's own class mixture.
        test_fraction: Share of test samples of each client, for `matched`.

    Raises:
        DataError: The scheme can't carry out the request.
        PluginError: The scheme broke its contract.
    """
    if protocol == "matched":
        return matched(dataset, scheme, n_clients, test_fraction=test_fraction, data_seed=data_seed)
    return official(dataset, scheme, n_clients, data_seed=data_seed)


def matched(
    dataset: Dataset, scheme: PartitionScheme, n_clients: int, *, test_fraction: float, data_seed: int
) -> Partition:
    """Deal the merged pool, then split each client's shuffled samples.

    Over the whole federation the test samples are the rounded `test_fraction`, except that each client with two
    samples or more keeps at least one of each kind; a client with a single sample trains on it.
    """
    pool = Pool(targets=dataset.targets, n_classes=dataset.n_classes, owners=dataset.client_ids)
    dealing = _deal(scheme, pool, n_clients, data_seed)
    sizes = np.array([len(indices) for indices in dealing.indices], dtype=np.int64)
    rng = numpy_generator(data_seed, "partition", "split")
    n_test = apportion(round(test_fraction * int(sizes.sum())), sizes, rng.permutation(n_clients))
    n_test = np.where(sizes >= 2, np.clip(n_test, 1, np.maximum(sizes - 1, 1)), 0)
    train, test = [], []
    for indices, count in zip(dealing.indices, n_test, strict=True):
        shuffled = rng.permutation(indices)
        test.append(np.sort(shuffled[:count]))
        train.append(np.sort(shuffled[count:]))
    return make_partition(scheme.name, "matched", train, test, (*dealing.notes, *_gaps(train, test)))


def official(dataset: Dataset, scheme: PartitionScheme, n_clients: int, *, data_seed: int) -> Partition:
    """Deal the train pool by the scheme and the test pool after the clients' training mixtures.

    Client i gets the share n_ik / Σ_j n_jk of the test samples of class k, by largest remainder: each test sample
    whose class somebody holds is dealt exactly once, and the others are reported. With natural owners of test
    samples those are used instead.
    """
    n_train = dataset.n_train
    owners = dataset.client_ids
    pool = Pool(
        targets=dataset.targets[:n_train],
        n_classes=dataset.n_classes,
        owners=None if owners is None else owners[:n_train],
    )
    dealing = _deal(scheme, pool, n_clients, data_seed)
    if isinstance(scheme, Natural) and owners is not None and (owners[n_train:] >= 0).any():
        tested = _by_test_owner(owners[:n_train], owners[n_train:], n_clients)
    else:
        tested = _by_mixture(dataset, dealing, numpy_generator(data_seed, "partition", "test"))
    test = [indices + n_train for indices in tested.indices]
    notes = (*dealing.notes, *tested.notes, *_gaps(dealing.indices, test))
    return make_partition(scheme.name, "official", dealing.indices, test, notes)


def _deal(scheme: PartitionScheme, pool: Pool, n_clients: int, data_seed: int) -> Dealing:
    """Let the scheme deal, and hold it to its contract: schemes come from plug-ins, too.

    Raises:
        PluginError: Samples are missing, repeated or made up, or there are more or fewer clients.
    """
    dealing = scheme.deal(pool, n_clients, numpy_generator(data_seed, "partition", "deal"))
    n = len(pool.targets)
    dealt = np.concatenate([np.empty(0, dtype=np.int64), *dealing.indices])
    inside = dealt[(dealt >= 0) & (dealt < n)]
    n_missing = n - len(np.unique(inside))
    if len(dealing.indices) != n_clients or n_missing or len(dealt) != n:
        raise PluginError(
            f"partition '{scheme.name}' must deal each of {n} samples to exactly one of {n_clients} clients; "
            f"found {len(dealing.indices)} clients, {n_missing} samples missing, {len(dealt)} dealt."
        )
    return Dealing(indices=tuple(np.sort(part) for part in dealing.indices), notes=dealing.notes)


def _by_test_owner(train_owners: np.ndarray, test_owners: np.ndarray, n_clients: int) -> Dealing:
    known = np.unique(train_owners)
    places = np.searchsorted(known, test_owners).clip(max=len(known) - 1)
    clients = np.where(known[places] == test_owners, places, -1)
    n_left = int(np.count_nonzero(clients < 0))
    notes = (f"official: {n_left} test samples belong to no owner with training samples",) if n_left else ()
    return Dealing(indices=split_by_owner(clients, n_clients), notes=notes)


def _by_mixture(dataset: Dataset, dealing: Dealing, rng: np.random.Generator) -> Dealing:
    targets = dataset.targets[dataset.n_train :]
    held = count_classes(dataset.targets, dealing.indices, dataset.n_classes)
    supply = np.bincount(targets, minlength=dataset.n_classes)
    counts = np.zeros_like(held)
    unheld = []
    for k in range(dataset.n_classes):
        if held[:, k].any():
            counts[:, k] = apportion(int(supply[k]), held[:, k], rng.permutation(len(held)))
        elif supply[k]:
            unheld.append(k)
    notes: tuple[str, ...] = ()
    if unheld:
        names = ", ".join(dataset.class_names[k] for k in unheld[:5]) + (", ..." if len(unheld) > 5 else "")
        notes = (f"official: {int(supply[unheld].sum())} test samples of classes that no client holds ({names})",)
    return Dealing(indices=deal_counts(targets, counts, rng), notes=notes)


def _gaps(train: list[np.ndarray] | tuple[np.ndarray, ...], test: list[np.ndarray]) -> list[str]:
    """Tell how many clients lack training or test samples."""
    notes = []
    for kind, parts in (("training", train), ("test", test)):
        n_without = sum(len(part) == 0 for part in parts)
        if n_without:
            notes.append(f"{n_without} of {len(parts)} clients have no {kind} samples")
    return notes


def count_classes(targets: np.ndarray, indices: tuple[np.ndarray, ...], n_classes: int) -> np.ndarray:
    """Return samples per client and class, int64 `[N, K]`."""
    sizes = [len(part) for part in indices]
    clients = np.repeat(np.arange(len(indices)), sizes)
    flat = clients * n_classes + targets[np.concatenate(indices)]
    return np.bincount(flat, minlength=len(indices) * n_classes).reshape(len(indices), n_classes).astype(np.int64)
