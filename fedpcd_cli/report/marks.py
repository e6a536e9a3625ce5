"""Which shown numbers of a column are best and second best."""

from __future__ import annotations

from collections.abc import Sequence

BEST, SECOND = "best", "second"


def marks(shown: Sequence[str | None], *, higher_is_better: bool | None) -> list[str]:
    """Return `best`, `second` or nothing for each shown number; equal ones share their mark.

    Ties are judged by what is printed: two rows that read 71.90 are equally good to a reader.

    >>> marks(["71.90", "71.90", "70.00", None], higher_is_better=True)
    ['best', 'best', 'second', '']
    """
    values = [None if text is None or text == "–" else float(text) for text in shown]
    ranked = sorted({value for value in values if value is not None}, reverse=bool(higher_is_better))
    if higher_is_better is None or len([value for value in values if value is not None]) < 2 or len(ranked) < 2:
        return [""] * len(shown)
    names = {ranked[0]: BEST, ranked[1]: SECOND}
    return [names.get(value, "") if value is not None else "" for value in values]
