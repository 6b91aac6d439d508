"""A crowd's labels with their truth, published or simulated.

`bayescrowd.datasets` and `bayescrowd.simulate` both return a `Dataset`, so that what runs on
published data also runs on simulated data.
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
    """The judgements: who gave which task which label."""
    truth: pd.Series | None
    """True class of the tasks for which it is known, indexed by task; None if it is never known."""
    description: str
    """What was judged and by whom, and the known problems of the data."""
    name: str
    """Name under which the data set is loaded, or name of the simulator."""
    source: str
    """The publication to cite, and the origin of the files."""
    parameters: CrowdParameters | None
    """The true parameters of a simulated crowd; None for a real one."""

    def __repr__(self) -> str:
        known = "no truth" if self.truth is None else f"truth for {len(self.truth):,} tasks"
        return f"Dataset({self.name!r}: {self.annotations!r}, {known})"
