"""Who pulls with whom: cosines among a round's constraints, ordered so that camps show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcd_cli.rounds.certificate import Certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class Conflicts:
    """Cosines among constraints.

    Attributes:
        client_ids: Clients in the order of the matrix, int64 `[c]`.
        ages: Rounds since each one's update, int64 `[c]`.
        cosines: `[c, c]`, in that order.
        conflicting_pairs: Pairs with a negative cosine.
        pairs: All pairs.
        most_opposed: The two clients with the lowest cosine, and it; None with fewer than two.
    """

    client_ids: np.ndarray
    ages: np.ndarray
    cosines: np.ndarray
    conflicting_pairs: int
    pairs: int
    most_opposed: tuple[int, int, float] | None


def conflicts(certificate: Certificate) -> Conflicts:
    """Return the cosines among a round's constraints in the order of their camps."""
    norms = np.sqrt(np.diag(certificate.gram))
    cosines = np.clip(certificate.gram / norms[:, None] / norms[None, :], -1.0, 1.0)
    order = camp_order(cosines)
    ids, cosines = certificate.client_ids[order], cosines[np.ix_(order, order)]
    upper = np.triu_indices(ids.size, 1)
    opposed = None
    if upper[0].size:
        k = int(cosines[upper].argmin())
        i, j = int(upper[0][k]), int(upper[1][k])
        low, high = sorted((int(ids[i]), int(ids[j])))
        opposed = (low, high, float(cosines[i, j]))
    return Conflicts(
        client_ids=ids,
        ages=certificate.ages[order],
        cosines=cosines,
        conflicting_pairs=int((cosines[upper] < 0).sum()),
        pairs=int(upper[0].size),
        most_opposed=opposed,
    )


def camp_order(cosines: np.ndarray) -> np.ndarray:
    """Return the order of the rows by their angle in the plane of the two leading eigenvectors, int64 `[c]`.

    As proposed in Friendly, "Corrgrams" (The American Statistician, 2002). The circle is cut at its widest gap;
    of the two directions the one that starts with the smaller row is taken.
    """
    c = cosines.shape[0]
    if c < 3:
        return np.arange(c)
    values, vectors = np.linalg.eigh((cosines + cosines.T) / 2)
    plane = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    # Which sign an eigenvector has is chance; fix it, so that equal rounds give equal pictures.
    plane = plane * np.where(plane[np.abs(plane).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    # Rounded, so that rows that coincide keep their order whatever the last bit is.
    angles = np.round(np.arctan2(plane[:, 0], plane[:, 1]), 9)
    order = np.argsort(angles, kind="stable")
    gaps = np.diff(np.append(angles[order], angles[order[0]] + 2 * np.pi))
    order = np.roll(order, -(int(gaps.argmax()) + 1))
    return np.asarray(order if order[0] <= order[-1] else order[::-1])
