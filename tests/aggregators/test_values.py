"""Golden values of all eleven rules on one two-round example, none of them taken from the code.

Two clients with 1 and 3 examples, local rate 0.1, losses (2, 1) then (1.5, 1.2), two layer groups of two parameters:

    round 1   D1 = (.3, -.1 | .2, .1)    D2 = (-.1, .2 | .1, -.2)   |D1|² = .15  |D2|² = .10  D1·D2 = -.05
    round 2   D1 = (.2, .1 | -.1, .3)    D2 = (.1, -.3 | .2, .1)    |D1|² = .15  |D2|² = .15  D1·D2 = 0

`u` is the step: w_{t+1} = w_t - u. The derivation stands above each row.
"""

from __future__ import annotations

import pytest

from fedpcd_cli.registry import get_registry
from fedpcd_cli.testing.cohorts import aggregate_all, example_rounds

VALUES = [
    # .25 D1 + .75 D2
    ("fedavg", {}, (0, 0.125, 0.125, -0.125), (0.125, -0.2, 0.125, 0.15)),
    # Mean g = .25 D1 + .75 D2 with |g|² = .046875 and g·D1 = 0: client 1 makes no progress, client 2 .9129 of its own.
    # One active row, mu = .1: d~ = g/|g| + .1 D1/|D1|, |d~|² = 1.01, so u = (g + .1 |g|/|D1| D1)/sqrt(1.01) with
    # .1 sqrt(.046875/.15) = .0559017. Round 2: |g|² = .09375, progress (.316228, .948683): nobody is short, u = g.
    ("fedpcd", {"tau": 0.1}, (0.0166873, 0.1188172, 0.1355045, -0.1188172), (0.125, -0.2, 0.125, 0.15)),
    # tau = .5: mu = (.5 - a1 - mu2 c)/1 with c = D1·D2/(|D1||D2|) = -.408248; client 2 keeps .912871 - .5 * .408248 =
    # .708747 > .5, so mu = (.5, 0): u = (g + .5 |g|/|D1| D1)/sqrt(1.25) with .5 sqrt(.3125) = .2795085. Round 2 (rows
    # orthogonal): mu1 = .5 - .316228 = .183772, |d~|² = 1 - .1 + .25 = 1.15, u = (g + .183772 sqrt(.625) D1)/sqrt(1.15).
    (
        "fedpcd",
        {"tau": 0.5},
        (0.0750000, 0.0868034, 0.1618034, -0.0868034),
        (0.1436588, -0.1729531, 0.1030152, 0.1805193),
    ),
    # lambda = (.5, .5): the mean. Ascent (.5 + .1 * 2, .5 + .1 * 1) = (.7, .6), projected (.55, .45): .55 D1 + .45 D2.
    ("afl", {"gamma_lambda": 0.1}, (0.1, 0.05, 0.15, -0.05), (0.155, -0.08, 0.035, 0.21)),
    # |g1|² = 15, |g2|² = 10: (2 g1 + 1 g2)/(15 + 10 + (2 + 1)/.1) = (5, 0, 5, 0)/55; then (1.5 g1 + 1.2 g2)/(30 + 27).
    ("qffl", {"q": 1.0}, (0.090909, 0, 0.090909, 0), (0.073684, -0.036842, 0.015789, 0.1)),
    # The uniform mean.
    ("ditto", {}, (0.1, 0.05, 0.15, -0.05), (0.15, -0.1, 0.05, 0.2)),
    # Two unit vectors: by symmetry the shortest mixture is half and half, (D1/|D1| + D2/|D2|)/2.
    (
        "fedmgda-plus",
        {"epsilon": 0.1, "eta_g": 1.0},
        (0.229184, 0.187128, 0.416313, -0.187128),
        (0.387298, -0.258199, 0.129099, 0.516398),
    ),
    # D1 + .5 D2 = (.25, 0, .25, 0) and D2 + D1/3 = (0, 1, 1, -1)/6; their mean, of length sqrt(.0729167), is brought to
    # that of the plain mean, sqrt(.0375). Round 2 has no conflict, and nobody is left of round 1.
    ("fedfv", {"alpha": 0.0}, (0.089642, 0.059761, 0.149404, -0.059761), (0.15, -0.1, 0.05, 0.2)),
    # alpha = .1 keeps client 1, of the largest loss, as it is: mean of (.3, -.1, .2, .1) and (0, 1, 1, -1)/6 =
    # (.15, .033333, .183333, -.033333), of length sqrt(.0583333), brought to sqrt(.0375).
    ("fedfv", {"alpha": 0.1}, (0.120268, 0.026726, 0.146994, -0.026726), (0.15, -0.1, 0.05, 0.2)),
    # Per layer, rows at the mean length (.269917 and .223607 in round 1) beside the fairness row h1 g1 + h2 g2 with
    # h = (.2, -.4)/sqrt(10); shortest point of their hulls, joined and brought to sqrt(.0375).
    ("fedlf", {}, (0.089422, 0.060054, 0.156621, 0.036973), (0.177794, 0.002233, -0.020625, 0.207265)),
    # Moves (.316228 + .223607, .223607 + .223607), shares (.546917, .453083), w = .5 + .4 share, a = w/1.4 =
    # (.513405, .486595): a1 D1 + a2 D2. Round 2: where a sign is new its entry is masked and drops out of the average.
    (
        "fedheal",
        {"tau": 0.3, "beta": 0.4},
        (0.105362, 0.045978, 0.151341, -0.045978),
        (0.2, 0, 0.2, 0.3),
    ),
    # Loss shares (2, 1)/3; consensus shares D·(D1 + D2) = (.10, .05), also (2, 1)/3: two thirds D1 and one third D2.
    (
        "fedpw",
        {"beta": 0.3, "avg_drop_rate": 0.5},
        (0.166667, 0, 0.166667, 0),
        (0.126071, -0.047859, 0.010894, 0.189106),
    ),
    # x with u_i·x = n_i/4 in each layer. Layer 1: rows (3, -1)/sqrt(10) and (-1, 2)/sqrt(5). Layer 2: orthonormal rows,
    # x = .25 (2, 1)/sqrt(5) + .75 (1, -2)/sqrt(5).
    (
        "craft",
        {"server_lr": 1.0},
        (0.651638, 1.164344, 0.559017, -0.559017),
        (0.578394, -0.597771, 0.605798, 0.465456),
    ),
]


@pytest.mark.parametrize(
    ("name", "params", "first", "second"), VALUES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_steps_of_both_rounds(name, params, first, second):
    rule = get_registry().get("aggregator", name)(**params)
    rounds = aggregate_all(rule, example_rounds(), n_clients=2, cohort_size=2)
    for (aggregation, _), expected in zip(rounds, (first, second), strict=True):
        step = (0.1 * aggregation.direction).tolist()
        assert step == pytest.approx(expected, abs=2e-6)


def test_every_rule_is_in_the_table():
    assert {name for name, *_ in VALUES} == set(get_registry().names("aggregator"))
