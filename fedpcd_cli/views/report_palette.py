"""One look per rule, in every figure: color, dash and marker each tell the rules apart.

The colors are Okabe and Ito's and Paul Tol's "muted" ones, which stay distinct under the common color
blindnesses; two rules of similar lightness never share dash and marker.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

Dash = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """How a rule is drawn."""

    color: str
    dash: Dash
    marker: str


_DASHED: Dash = (0, (5.0, 1.5))
_DOTTED: Dash = (0, (1.2, 1.2))
_CHAIN: Dash = (0, (6.0, 1.5, 1.2, 1.5))
_TWO_DOTS: Dash = (0, (5.0, 1.2, 1.2, 1.2, 1.2, 1.2))
_LONG: Dash = (0, (9.0, 2.0))
LOOKS: dict[str, Look] = {
    "fedpcd": Look("#D55E00", "-", "o"),
    "fedavg": Look("#000000", "-", "s"),
    "fedlf": Look("#0072B2", _DASHED, "^"),
    "craft": Look("#009E73", _CHAIN, "D"),
    "fedfv": Look("#CC79A7", _DASHED, "v"),
    "fedmgda-plus": Look("#56B4E9", _CHAIN, "P"),
    "fedheal": Look("#E69F00", _DOTTED, "X"),
    "fedpw": Look("#332288", _DOTTED, "<"),
    "afl": Look("#882255", _LONG, ">"),
    "qffl": Look("#999933", _LONG, "h"),
    "ditto": Look("#44AA99", _TWO_DOTS, "*"),
}
_SPARE = tuple(
    Look(color, dash, marker)
    for color, marker in (("#AA4499", "p"), ("#117733", "d"), ("#661100", "8"), ("#6699CC", "H"), ("#888888", "o"))
    for dash in ("-", _DOTTED, _CHAIN)
)
_VARIANTS: tuple[Dash, ...] = ("-", _DASHED, _DOTTED, _CHAIN, _LONG)


def look_of(rule: str) -> Look:
    """Return a rule's look; a rule from elsewhere has one that depends on its name only."""
    if rule in LOOKS:
        return LOOKS[rule]
    return _SPARE[int.from_bytes(hashlib.blake2b(rule.encode(), digest_size=4).digest(), "big") % len(_SPARE)]


def line_style(rule: str, variant: int = 0) -> dict[str, Any]:
    """Return matplotlib's arguments for a line; variants of one rule keep its color and change the dash."""
    look = look_of(rule)
    dash = look.dash if variant == 0 else _VARIANTS[variant % len(_VARIANTS)]
    return {"color": look.color, "linestyle": dash, "linewidth": 1.6 if rule == "fedpcd" else 1.1}
