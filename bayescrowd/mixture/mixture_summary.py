"""A fitted mixture on one line for a terminal, and as a small table for a notebook."""

from __future__ import annotations

import pandas as pd

from bayescrowd.data.notebook_table import MOST_ROWS, Bar, first_rows, notebook_table
from bayescrowd.data.text import quantity
from bayescrowd.estimator import ParameterMixin

__all__ = ["MixtureSummary"]


class MixtureSummary(ParameterMixin):
    """Base class that displays the weights of a mixture's components."""

    weights_: pd.Series
    responsibilities_: pd.DataFrame
    features_: pd.Index
    log_likelihood_: float
    converged_: bool

    def _summary(self) -> str:
        if "responsibilities_" not in vars(self):
            return ""
        size = (
            f"{quantity(len(self.responsibilities_), 'item')} with "
            f"{quantity(len(self.features_), 'feature')}"
        )
        shown = [f"{weight:.2f}" for weight in self.weights_.iloc[:MOST_ROWS]]
        more = ", ..." if len(self.weights_) > len(shown) else ""
        state = "" if self.converged_ else "; NOT converged"
        return (
            f"{size}; weights {', '.join(shown)}{more}; log-likelihood "
            f"{self.log_likelihood_:,.1f} nats{state}"
        )

    def _summary_html(self) -> str:
        if "responsibilities_" not in vars(self):
            return ""
        rows = [
            [name, Bar(weight, f"{weight:.1%}")]
            for name, weight in self.weights_.iloc[:MOST_ROWS].items()
        ]
        note = first_rows(len(self.weights_), "component")
        return notebook_table(repr(self), ["component", "weight"], rows, note=note)
