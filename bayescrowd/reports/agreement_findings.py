"""Measures of agreement, and who agrees with whom."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescrowd.aggregation.dependence import Dependence
from bayescrowd.agreement import agreement_table
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.text import shorten
from bayescrowd.data.vocabulary import plain
from bayescrowd.reports.document import LEVEL, Cell, Column, Interval, Matrix, Table

__all__ = ["agreement_measures", "pair_matrix", "pair_table"]

MEASURES = {
    "percent_agreement": "percent agreement",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
    "krippendorff_alpha": "Krippendorff's alpha (nominal)",
}
"""Names of the measures as people know them."""

MOST_PAIRS = 30
"""Most pairs of raters that are listed."""

MOST_IN_MATRIX = 16
"""Most raters in the matrix of agreement."""

LEAST_SHARED = 5
"""Pairs with fewer shared tasks are left out: they agree or disagree by chance."""

WIDTH = 40
"""Most characters of a rater's id."""


def agreement_measures(ann: Annotations) -> Table:
    """Krippendorff's alpha and the like, each with an interval."""
    rows: list[tuple[Cell, ...]] = [
        (
            MEASURES.get(str(name), str(name)),
            Interval(float(row["value"]), float(row["lower"]), float(row["upper"])),
        )
        for name, row in agreement_table(ann, level=LEVEL).iterrows()
    ]
    columns = Column("measure", "text"), Column("value", "number")
    caption = f"Agreement of the raters, with {LEVEL:.0%} intervals"
    return Table("agreement", caption, columns, tuple(rows))


def pair_table(found: Dependence) -> Table | None:
    """The pairs that agree the most beyond what independent errors explain."""
    pairs = found.pairs[found.pairs["n_shared"] >= LEAST_SHARED]
    if pairs.empty:
        return None
    room = (1 - pairs["expected_agreement"]).clip(lower=1e-9)
    excess = (pairs["agreement"] - pairs["expected_agreement"]) / room
    first = excess.sort_values(ascending=False, kind="stable").index[:MOST_PAIRS]
    rows: list[tuple[Cell, ...]] = []
    for key in first:
        row, (one, other) = pairs.loc[key], key
        rows.append(
            (
                shorten(plain(one), WIDTH),
                shorten(plain(other), WIDTH),
                int(row["n_shared"]),
                float(row["agreement"]),
                float(row["expected_agreement"]),
                float(excess[key]),
            )
        )
    columns = (
        Column("rater", "text"),
        Column("other", "text"),
        Column("shared tasks", "count"),
        Column("agree", "share"),
        Column("expected", "share", "agreement if they erred independently"),
        Column("excess", "share", "of the agreement that independent errors leave open"),
    )
    note = ""
    if len(pairs) > len(first):
        note = (
            f"{len(first)} of {len(pairs):,} pairs with at least {LEAST_SHARED} shared tasks are "
            "listed: those whose agreement exceeds what is expected the most."
        )
    caption = "Pairs of raters who agree more than independent errors explain"
    return Table("pairs", caption, columns, tuple(rows), note)


def pair_matrix(found: Dependence) -> Matrix | None:
    """Agreement of some raters, groups side by side and then those with the most shared tasks."""
    pairs = found.pairs[found.pairs["n_shared"] >= LEAST_SHARED]
    if pairs.empty:
        return None
    one, other = (pairs.index.get_level_values(level) for level in (0, 1))
    n_shared = pairs["n_shared"].to_numpy()
    by_rater = pd.concat([pd.Series(n_shared, one), pd.Series(n_shared, other)])
    busiest = by_rater.groupby(level=0).sum().sort_values(ascending=False, kind="stable").index
    grouped = [name for cluster in found.clusters for name in cluster]
    chosen = list(dict.fromkeys([*grouped, *map(plain, busiest)]))[:MOST_IN_MATRIX]
    place = {name: i for i, name in enumerate(chosen)}
    values = np.full((len(chosen), len(chosen)), np.nan)
    rows = np.array([place.get(plain(name), -1) for name in one])
    columns = np.array([place.get(plain(name), -1) for name in other])
    both = (rows >= 0) & (columns >= 0)
    agreement = pairs["agreement"].to_numpy()[both]
    values[rows[both], columns[both]] = values[columns[both], rows[both]] = agreement
    names = tuple(shorten(name, WIDTH) for name in chosen)
    return Matrix(names, names, tuple(tuple(row) for row in values.tolist()))
