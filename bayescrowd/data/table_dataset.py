"""A table of instances, each with its features and its class or the number to predict."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

__all__ = ["TableDataset"]


class TableDataset(NamedTuple):
    """Instances with their features and class; `features` and `target` share one index."""

    features: pd.DataFrame
    """One row per instance, one column per feature."""
    target: pd.Series
    """Class of each instance."""
    description: str
    """What the columns mean, and known problems of the data."""
    name: str
    """The name by which the table is loaded."""
    source: str
    """The publication to cite, and the origin of the file."""

    def __repr__(self) -> str:
        n_rows, n_features = self.features.shape
        return (
            f"TableDataset({self.name!r}: {n_rows:,} rows, {n_features} features, "
            f"{self.target.nunique()} classes)"
        )
