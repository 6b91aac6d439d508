"""How often to ask for what, on one line for a terminal and as a small table for a notebook."""

from __future__ import annotations

import pandas as pd

from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.text import quantity, shorten
from bayescrowd.estimator import ParameterMixin

__all__ = ["RepeatSummary"]


class RepeatSummary(ParameterMixin):
    """Base class that displays the repeats which a selector of repeats has chosen."""

    repeats_: pd.DataFrame
    selected_: pd.Series

    def _summary(self) -> str:
        if "selected_" not in vars(self):
            return ""
        times = self.selected_.sort_values(ascending=False, kind="stable")
        named = [f"{shorten(name, 24)} x {n:g}" for name, n in times.iloc[:MOST_ROWS].items()]
        more = ", ..." if len(times) > len(named) else ""
        asked = quantity(int(times.sum()), "judgement")
        of = quantity(self.repeats_.shape[1], "attribute")
        return f"{asked} of {len(times):,} of {of}: {', '.join(named) or 'none'}{more}"

    def _summary_html(self) -> str:
        if "selected_" not in vars(self):
            return ""
        times = self.selected_.sort_values(ascending=False, kind="stable")
        rows = [
            [name, Bar(n / times.iloc[0], f"{n:g}")] for name, n in times.iloc[:MOST_ROWS].items()
        ]
        note = first_rows(len(times), "attribute")
        return notebook_table(repr(self), ["attribute", "times"], rows, note=note)
