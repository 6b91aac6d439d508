"""What was bought, on one line for a terminal and as a small table for a notebook."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.text import quantity, shorten

__all__ = ["html_of_purchases", "named_features"]


def named_features(features: Sequence[Hashable]) -> str:
    """The first few features, for one line of text.

    Examples:
        >>> named_features(["size", "colour"])
        '2 features (size, colour)'
    """
    named = [shorten(name, 24) for name in features[:MOST_ROWS]]
    more = ", ..." if len(features) > len(named) else ""
    return f"{quantity(len(features), 'feature')} ({', '.join(named)}{more})"


def html_of_purchases(caption: str, spending: pd.DataFrame, *, show_selected: bool) -> str:
    """The features with the most labels, as HTML.

    Args:
        caption: what stands above the table.
        spending: by feature: labels, cost and, if it is to be shown, selected.
        show_selected: whether to say which features are selected; those come first.
    """
    order = ["selected", "labels"] if show_selected else ["labels"]
    ranked = spending.sort_values(order, ascending=False, kind="stable")
    shown, most = ranked.head(MOST_ROWS), max(int(spending["labels"].max()), 1)
    labels, cost = shown["labels"].to_numpy(), shown["cost"].to_numpy()
    is_selected = shown["selected"].to_numpy() if show_selected else labels
    rows = []
    for feature, n, price, chosen in zip(shown.index, labels, cost, is_selected, strict=True):
        selected = ["yes" if chosen else ""] if show_selected else []
        rows.append([feature, Bar(float(n) / most, f"{n:,}"), f"{price:g}", *selected])
    header = ["feature", "labels bought", "cost", *(["selected"] if show_selected else [])]
    return notebook_table(caption, header, rows, note=first_rows(len(spending), "feature"))
