"""The plane through the FedAvg direction and the correction, and everything that lies or ends in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedpcd_cli.rounds.certificate import Certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class Plane:
    """Coordinates along g~_0 (x) and across it towards the correction (y).

    Without a correction, y is the direction in which the constraints differ most beside g~_0.

    Attributes:
        clients: Projections of g~_j, `[c, 2]`.
        reference: g~_0, `[2]`.
        update: d~*, `[2]`; None where the round makes no step.
        thresholds: g~_j · d~ must be at least this, `[c]`.
        share: Part of the squared length of all constraints that lies in the plane, in [0, 1].
    """

    clients: np.ndarray
    reference: np.ndarray
    update: np.ndarray | None
    thresholds: np.ndarray
    share: float

    def region(self, limit: float) -> np.ndarray:
        """Return the corners `[k, 2]` of the admissible part of the square [-limit, limit]²; k = 0 if empty.

        A point of the plane is admissible in the plane exactly if it is in the whole space.
        """
        corners = limit * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
        for client, threshold in zip(self.clients, self.thresholds, strict=True):
            corners = _clip(corners, client, threshold)
        return corners


def plane(certificate: Certificate) -> Plane | None:
    """Return the plane of a round; None if its average is zero or it has no constraint."""
    r, c = certificate.reference_norm, certificate.size
    if r == 0 or c == 0:
        return None
    along = certificate.reference_products / r
    corrected = certificate.gram @ certificate.multipliers
    correction_along = float(along @ certificate.multipliers)
    across_length = math.sqrt(max(0.0, certificate.correction_length**2 - correction_along**2))
    if across_length > 1e-9 * max(certificate.correction_length, r):
        across = (corrected - along * correction_along) / across_length
        bend = across_length
    else:
        values, vectors = np.linalg.eigh(certificate.gram - np.outer(along, along))
        across = vectors[:, -1] * math.sqrt(max(0.0, float(values[-1])))
        across = across * (-1.0 if across[int(np.abs(across).argmax())] < 0 else 1.0)
        bend = 0.0
    update = None
    if certificate.direction_norm > 0:
        starts_at_average = certificate.primary or not certificate.active.any()
        update = np.array([correction_along + (r if starts_at_average else 0.0), bend])
    return Plane(
        clients=np.stack([along, across], axis=1),
        reference=np.array([r, 0.0]),
        update=update,
        thresholds=certificate.tau_used * np.diag(certificate.gram),
        share=min(1.0, float((along**2 + across**2).sum() / np.trace(certificate.gram))),
    )


def _clip(corners: np.ndarray, normal: np.ndarray, threshold: float) -> np.ndarray:
    """Return the part of a convex polygon `[k, 2]` where normal · p >= threshold (Sutherland and Hodgman)."""
    kept: list[np.ndarray] = []
    heights = corners @ normal - threshold
    for i in range(len(corners)):
        here, there = corners[i - 1], corners[i]
        if heights[i - 1] * heights[i] < 0:
            kept.append(here + (there - here) * heights[i - 1] / (heights[i - 1] - heights[i]))
        if heights[i] >= 0:
            kept.append(there)
    return np.array(kept).reshape(-1, 2)
