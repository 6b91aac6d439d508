"""Whether a measured value agrees with the published one.

A published value is rounded, and a label error is a number of items in disguise. A measured value
*matches* if it rounds to the published one, or if it is less than half an item away from it.
Otherwise it *differs*, by a number of items or an amount, whatever the reason: what is known about
a difference is shown beside the verdict and never replaces it. So is whether the published value
lies within the range of the runs, so that "the paper shows one run" is believed only where one of
our runs could have been the published one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayescrowd.experiments.engine.cells import Cell

__all__ = [
    "DIFFERS",
    "MATCHES",
    "NOT_PUBLISHED",
    "difference_in_items",
    "explanation_of",
    "format_items",
    "is_within_runs",
    "kind_of",
    "verdict_on",
]

MATCHES = "matches"
DIFFERS = "differs"
NOT_PUBLISHED = "no published number"

ROUNDING_SLACK = 1e-9
"""Tolerance for floating-point error in units of the last published digit: 49.125 must count as a
value that rounds to 49.13."""


def verdict_on(cell: Cell, measured: float) -> str:
    """'matches', 'differs by n items' (or by an amount), or 'no published number'.

    Examples:
        >>> from bayescrowd.experiments.engine.cells import CellId
        >>> cell = Cell(CellId("Bird", "MV"), "Bird, MV", 24.07, "%", 2, 108, None)
        >>> verdict_on(cell, 100 * 26 / 108)
        'matches'
        >>> verdict_on(cell, 100 * 28 / 108)
        'differs by +2 items'
    """
    if cell.published is None:
        return NOT_PUBLISHED
    difference = measured - cell.published
    items = difference_in_items(cell, measured)
    if abs(difference) <= _rounding(cell) or (items is not None and abs(items) < 0.5):
        return MATCHES
    if items is not None:
        return f"{DIFFERS} by {format_items(items)} items"
    return f"{DIFFERS} by {difference:+.{cell.decimals}f} {cell.unit}".rstrip()


def explanation_of(cell: Cell, values: Sequence[float], verdict: str) -> str | None:
    """What is shown beside 'differs': the published value's place among the runs, and the reason.

    None if the value does not differ, or if there is only one run and no recorded reason.

    Examples:
        >>> from bayescrowd.experiments.engine.cells import CellId
        >>> cell = Cell(CellId("B-LEAFS", "spent"), "B-LEAFS", 99, "labels", 0, None, "one run")
        >>> explanation_of(cell, [45, 60, 81], "differs by -37 labels")
        'outside the 3 runs; one run'
        >>> explanation_of(cell, [45, 60, 100], "differs by -31 labels")
        'within the 3 runs; one run'
    """
    if kind_of(verdict) != DIFFERS:
        return None
    is_within = is_within_runs(cell, values)
    remarks = []
    if is_within is not None:
        remarks.append(f"{'within' if is_within else 'outside'} the {len(values)} runs")
    if cell.reason is not None:
        remarks.append(cell.reason)
    return "; ".join(remarks) or None


def is_within_runs(cell: Cell, values: Sequence[float]) -> bool | None:
    """Whether the published value lies within the range of the runs, up to rounding.

    None if there is nothing to compare: no published value, or only one run.
    """
    if cell.published is None or len(values) < 2:
        return None
    slack = _rounding(cell)
    return bool(min(values) - slack <= cell.published <= max(values) + slack)


def _rounding(cell: Cell) -> float:
    """How far the published value may be from the number that was rounded to it."""
    return float((0.5 + ROUNDING_SLACK) * 10.0**-cell.decimals)


def difference_in_items(cell: Cell, measured: float) -> float | None:
    """Measured minus published value in items; None if the cell does not count items."""
    if cell.published is None or cell.n_items is None:
        return None
    return (measured - cell.published) * cell.n_items / 100


def format_items(items: float) -> str:
    """A signed number of items, rounded to a tenth.

    It need not be whole: published values are rounded, and a tie counts as half an item.

    Examples:
        >>> format_items(2.0044), format_items(-0.52), format_items(0.01)
        ('+2', '-0.5', '0')
    """
    rounded = round(items, 1)
    return f"{rounded:+g}" if rounded else "0"


def kind_of(verdict: str) -> str:
    """The verdict without the amount: 'matches', 'differs' or 'no published number'.

    Examples:
        >>> kind_of("differs by +2 items"), kind_of("matches")
        ('differs', 'matches')
    """
    return verdict.partition(" by ")[0]
