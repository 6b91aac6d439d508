"""Measures of agreement and the effective number of votes, for people and for machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayescrowd.cli.sampling import number_or_none
from bayescrowd.cli.text import align

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.aggregation.dependence import Dependence

__all__ = [
    "UNDEFINED",
    "agreement_document",
    "agreement_line",
    "agreement_rows",
    "votes_document",
    "votes_line",
]

UNDEFINED = "-"
"""What stands for a number that is not defined."""

NAMES = {
    "percent_agreement": "percent agreement",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
    "krippendorff_alpha": "Krippendorff's alpha",
}
"""Names of the measures as people know them."""


def agreement_rows(table: pd.DataFrame, metric: str) -> str:
    """A line per measure.

    Args:
        table: the result of `agreement_table`.
        metric: distances between classes, which matter for Krippendorff's alpha.
    """
    rows = [["measure", "value", "lower", "upper"]]
    for name, numbers in _by_measure(table).items():
        title = f"{NAMES[name]} ({metric})" if name == "krippendorff_alpha" else NAMES[name]
        rows.append([title, *map(_number, numbers.values())])
    return align(rows)


def agreement_line(table: pd.DataFrame) -> str:
    """Percent agreement and Krippendorff's alpha in one line."""
    measures = _by_measure(table)
    pairs, alpha = measures["percent_agreement"], measures["krippendorff_alpha"]
    if math.isnan(pairs["value"]):
        return f"agreement: {UNDEFINED} (no task has two labels)"
    shares = [UNDEFINED if math.isnan(share) else f"{share:.1%}" for share in pairs.values()]
    return (
        f"agreement: {_with_interval(shares)} of all pairs, Krippendorff's alpha "
        f"{_with_interval([_number(number) for number in alpha.values()])}"
    )


def agreement_document(table: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Value, lower and upper of each measure, None where undefined."""
    return {
        name: {end: number_or_none(number) for end, number in numbers.items()}
        for name, numbers in _by_measure(table).items()
    }


def votes_line(dependence: Dependence) -> str:
    """How many independent votes the labels of a task amount to."""
    if dependence.n_votes <= 1:
        return f"effective votes: {UNDEFINED} (tasks have one label each)"
    low, high = (f"{end:.1f}" for end in dependence.effective_votes)
    bracket = low if low == high else f"{low} to {high}"
    return f"effective votes: {bracket} independent ones among {dependence.n_votes:.3g} per task"


def votes_document(dependence: Dependence) -> dict[str, Any]:
    """The effective number of votes per task."""
    low, high = dependence.effective_votes
    return {
        "n_votes": number_or_none(dependence.n_votes),
        "lower": number_or_none(low),
        "upper": number_or_none(high),
    }


def _by_measure(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Value, lower and upper of each measure."""
    rows = table.to_dict("index").items()
    return {str(name): {str(end): value for end, value in row.items()} for name, row in rows}


def _with_interval(texts: list[str]) -> str:
    value, lower, upper = texts
    return value if UNDEFINED in (lower, upper) else f"{value} ({lower} to {upper})"


def _number(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.3f}"
