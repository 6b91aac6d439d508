"""Whether a measured value is the published one.

A published value is rounded, and a label error is a number of items in disguise. A measured
value *matches* if it lies within the published one's rounding, or if it is less than half an
item away. Otherwise it *differs*, by so many items or so much, whatever the reason: why a published
value is out of reach stands beside the verdict and never in its place. Beside it, too, stands
whether any of the single runs reaches the published value, so that "the paper shows one run" is
believed only where a run could have been the published one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayescrowd.experiments.experiment import Cell

__all__ = [
    "DIFFERS",
    "MATCHES",
    "NOT_PUBLISHED",
    "difference_in_items",
    "explanation_of",
    "is_within_runs",
    "kind_of",
    "shown_items",
    "verdict_on",
]

MATCHES = "matches"
DIFFERS = "differs"
NOT_PUBLISHED = "no published number"

ROUNDING_SLACK = 1e-9
"""Relative to the rounding unit: 49.125 was rounded to 49.13, and floating point must not mind."""


def verdict_on(cell: Cell, measured: float) -> str:
    """'matches', 'differs by n items' (or by so much), or 'no published number'.

    Examples:
        >>> from bayescrowd.experiments.experiment import CellId
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
        return f"{DIFFERS} by {shown_items(items)} items"
    return f"{DIFFERS} by {difference:+.{cell.decimals}f} {cell.unit}".rstrip()


def explanation_of(cell: Cell, values: Sequence[float], verdict: str) -> str | None:
    """What stands beside 'differs': where the published value lies among the runs, and the reason.

    None if the verdict is another one, or if there is a single run and no recorded reason.

    Examples:
        >>> from bayescrowd.experiments.experiment import CellId
        >>> cell = Cell(CellId("B-LEAFS", "spent"), "B-LEAFS", 99, "labels", 0, None, "one run")
        >>> explanation_of(cell, [45, 60, 81], "differs by -37 labels")
        'outside the 3 runs; one run'
        >>> explanation_of(cell, [45, 60, 100], "differs by -31 labels")
        'within the 3 runs; one run'
    """
    if kind_of(verdict) != DIFFERS:
        return None
    is_within = is_within_runs(cell, values)
    told = []
    if is_within is not None:
        told.append(f"{'within' if is_within else 'outside'} the {len(values)} runs")
    if cell.reason is not None:
        told.append(cell.reason)
    return "; ".join(told) or None


def is_within_runs(cell: Cell, values: Sequence[float]) -> bool | None:
    """Whether the published value lies between the least and the largest run, up to rounding.

    None where there is nothing to compare: no published value, or a single run.
    """
    if cell.published is None or len(values) < 2:
        return None
    slack = _rounding(cell)
    return bool(min(values) - slack <= cell.published <= max(values) + slack)


def _rounding(cell: Cell) -> float:
    """How far the published value may be from the number that was rounded to it."""
    return float((0.5 + ROUNDING_SLACK) * 10.0**-cell.decimals)


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
    """The verdict without its particulars: 'matches', 'differs' or 'no published number'.

    Examples:
        >>> kind_of("differs by +2 items"), kind_of("matches")
        ('differs', 'matches')
    """
    return verdict.partition(" by ")[0]
