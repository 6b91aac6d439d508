"""A crowd's labels with their truth, whether published or simulated.

`bayescrowd.datasets` and `bayescrowd.simulate` both return a `Dataset`, so that whatever runs on
one runs on the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from bayescrowd.data.annotations import Annotations

__all__ = ["CrowdParameters", "Dataset"]


class CrowdParameters(NamedTuple):
    """The parameters that a simulated crowd was drawn from."""

    prevalence: Float[np.ndarray, " cls"]
    """Probability of each true class."""
    confusions: Float[np.ndarray, "worker cls cls"]
    """Probability [worker, true, observed] of a label; rows sum to one."""
    kinds: Shaped[np.ndarray, " worker"]
    """What kind of worker each one is, such as 'honest' or 'adversary'."""


class Dataset(NamedTuple):
    """Judgements of a crowd, with the truth where it is known."""

    annotations: Annotations
    """Who said what about which task."""
    truth: pd.Series | None
    """True class, indexed by task, for the tasks that have one; None if no truth is known."""
    description: str
    """What was judged and by whom, with known problems of the data."""
    name: str
    """The name that loads it, or the name of its simulator."""
    source: str
    """The publication to cite, and where the files come from."""
    parameters: CrowdParameters | None
    """The true parameters of a simulated crowd; None for a real one."""

    def __repr__(self) -> str:
        known = "no truth" if self.truth is None else f"truth for {len(self.truth):,} tasks"
        return f"Dataset({self.name!r}: {self.annotations!r}, {known})"
