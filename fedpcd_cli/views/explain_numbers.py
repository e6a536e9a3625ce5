"""Numbers of a round as people read them."""

from __future__ import annotations

ROUNDING = 1e-9  # below this a progress, slack or multiplier is shown as 0


def number(value: float | None) -> str:
    """Return two decimals; one significant digit where these would hide a small number, no more where huge."""
    if value is None:
        return "–"
    size = abs(value)
    if size < ROUNDING:
        return "0"
    if size < 0.005:
        return f"{value:.0e}".replace("e-0", "e-") if size < 0.0005 else f"{value:.1g}"
    return f"{value:.2f}" if size < 1e4 else f"{value:.1e}".replace("e+0", "e")


def degrees(value: float | None) -> str:
    """Return an angle with one decimal."""
    return "–" if value is None else f"{value:.1f}°"


def residual(value: float) -> str:
    """Return a residual as a power of ten with two digits, or 0."""
    return "0" if value == 0 else f"{value:.1e}"


def milliseconds(seconds: float) -> str:
    """Return a duration in milliseconds."""
    value = 1000 * seconds
    return f"{value:.2g} ms" if value < 10 else f"{value:.0f} ms"


def rounds_ago(age: int) -> str:
    """Return `this round`, `1 round ago`, `4 rounds ago`."""
    return "this round" if age == 0 else f"{age} round{'s' if age > 1 else ''} ago"


def counted(count: int, noun: str) -> str:
    """Return `1 constraint`, `2 constraints`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
