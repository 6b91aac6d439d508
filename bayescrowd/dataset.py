"""What a data set is, whether it was published or simulated.

`bayescrowd.datasets` and `bayescrowd.simulate` both return these types, so that whatever runs
on one runs on the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from bayescrowd.annotations import Annotations

__all__ = ["CrowdParameters", "Dataset", "TableDataset"]


class CrowdParameters(NamedTuple):
    """What a simulated crowd was drawn from."""

    prevalence: Float[np.ndarray, " cls"]
    """Probability of each true class."""
    confusions: Float[np.ndarray, "worker cls cls"]
    """Probability [worker, true, observed] of a label; rows sum to one."""
    kinds: Shaped[np.ndarray, " worker"]
    """What sort of worker each one is, in words."""


class Dataset(NamedTuple):
    """Judgements of a crowd, with the truth where it is known."""

    annotations: Annotations
    """Who said what about which task."""
    truth: pd.Series | None
    """True class, indexed by task, for the tasks that have one; None if no truth is known."""
    description: str
    """What was judged, by whom, and what to beware of."""
    name: str
    """The name it is loaded by, or the simulator's."""
    source: str
    """Where the data come from, to cite."""
    parameters: CrowdParameters | None
    """The true parameters of a simulated crowd; None for a real one."""

    def __repr__(self) -> str:
        known = "no truth" if self.truth is None else f"truth for {len(self.truth):,} tasks"
        return f"Dataset({self.name!r}: {self.annotations!r}, {known})"


class TableDataset(NamedTuple):
    """Instances with their features and class; `features` and `target` share one index."""

    features: pd.DataFrame
    """One row per instance, one column per feature."""
    target: pd.Series
    """Class of each instance."""
    description: str
    """What the columns mean, and what to beware of."""
    name: str
    """The name it is loaded by."""
    source: str
    """Where the data come from, to cite."""

    def __repr__(self) -> str:
        n_rows, n_features = self.features.shape
        return (
            f"TableDataset({self.name!r}: {n_rows:,} rows, {n_features} features, "
            f"{self.target.nunique()} classes)"
        )
