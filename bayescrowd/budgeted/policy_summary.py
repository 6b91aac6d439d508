"""What a policy has bought so far, on one line for a terminal and as a table for a notebook.

Nothing is drawn or decided for it, so that looking at a policy costs nothing and changes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pandas as pd

from bayescrowd.budgeted.purchase_summary import html_of_purchases
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.budgeted.state import State
from bayescrowd.data.text import quantity

__all__ = ["PolicySummary"]


class PolicySummary(ABC):
    """Base class that displays what a policy has spent, and on what."""

    space: FeatureSpace
    budget: float
    n_features: int

    @property
    @abstractmethod
    def state(self) -> State:
        """Everything that the next decision depends on, as a value."""

    @abstractmethod
    def _by_feature(self, numbers: Any, name: str) -> pd.Series:
        """Numbers of the core's features, in the order of the user's space."""

    def __repr__(self) -> str:
        book = self.state.book
        n_open = len(book.open_queries)
        waiting = f"; {quantity(n_open, 'open query', 'open queries')}" if n_open else ""
        aim = f"{self.n_features} of {quantity(len(self.space.features), 'feature')} to select"
        spent = f"{book.spent:g} of {self.budget:g} spent"
        n_labels = int(book.n_labels.sum())
        return f"{type(self).__name__}: {spent} on {quantity(n_labels, 'label')}; {aim}{waiting}"

    def _repr_html_(self) -> str:
        """For notebooks: the features with the most labels."""
        labels = self._by_feature(self.state.book.n_labels, "labels")
        costs = [self.space.costs[name] for name in labels.index]
        spending = pd.DataFrame({"labels": labels, "cost": labels * costs})
        return html_of_purchases(repr(self), spending, show_selected=False)
