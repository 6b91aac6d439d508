"""Whether a measured value is the published one.

A published value is rounded, and a label error is a number of items in disguise. A measured
value *matches* if it lies within the published one's rounding, or if it is less than half an
item away. Otherwise it *differs*, by so many items or so much; and where the published value is
known to be out of reach, the verdict gives the reason instead. A reason never overrules a match.
"""

from __future__ import annotations

from bayescrowd.experiments.experiment import Cell

__all__ = [
    "MATCHES",
    "NOT_PUBLISHED",
    "difference_in_items",
    "kind_of",
    "shown_items",
    "verdict_on",
]

MATCHES = "matches"
NOT_PUBLISHED = "no published number"

ROUNDING_SLACK = 1e-9
"""Relative to the rounding unit: 49.125 was rounded to 49.13, and floating point must not mind."""


def verdict_on(cell: Cell, measured: float) -> str:
    """'matches', 'differs by n items', 'not reproducible: reason' or 'no published number'.

    Examples:
        >>> from bayescrowd.experiments.experiment import CellId
        >>> cell = Cell(CellId("Bird", "MV"), "Bird, MV", 24.07, "%", 2, 108, None)
        >>> verdict_on(cell, 100 * 26 / 108)
        'matches'
        >>> verdict_on(cell, 100 * 28 / 108)
        'differs by +2 items'
        >>> verdict_on(cell._replace(reason="a misprint"), 100 * 28 / 108)
        'not reproducible: a misprint'
    """
    if cell.published is None:
        return NOT_PUBLISHED
    difference = measured - cell.published
    items = difference_in_items(cell, measured)
    is_rounding = abs(difference) <= (0.5 + ROUNDING_SLACK) * 10.0**-cell.decimals
    if is_rounding or (items is not None and abs(items) < 0.5):
        return MATCHES
    if cell.reason is not None:
        return f"not reproducible: {cell.reason}"
    if items is not None:
        return f"differs by {shown_items(items)} items"
    return f"differs by {difference:+.{cell.decimals}f} {cell.unit}".rstrip()


def difference_in_items(cell: Cell, measured: float) -> float | None:
    """Measured minus published as a number of items; None where that has no meaning."""
    if cell.published is None or cell.n_items is None:
        return None
    return (measured - cell.published) * cell.n_items / 100


def shown_items(items: float) -> str:
    """A signed number of items, to a tenth: published values are rounded, ties count halves.

    Examples:
        >>> shown_items(2.0044), shown_items(-0.52), shown_items(0.01)
        ('+2', '-0.5', '0')
    """
    rounded = round(items, 1)
    return f"{rounded:+g}" if rounded else "0"


def kind_of(verdict: str) -> str:
    """The verdict without its particulars: 'matches', 'differs', 'not reproducible', ...

    Examples:
        >>> kind_of("differs by +2 items"), kind_of("not reproducible: a misprint")
        ('differs', 'not reproducible')
    """
    return verdict.partition(":")[0].partition(" by ")[0]
