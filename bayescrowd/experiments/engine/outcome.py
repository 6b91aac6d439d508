"""The outcome of a cell: its measured values, their spread over the seeds, and the verdict."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescrowd.experiments.engine.cells import Cell
from bayescrowd.experiments.engine.verdict import explanation_of

__all__ = ["Outcome"]


class Outcome(NamedTuple):
    """A measured cell."""

    cell: Cell
    """The cell."""
    settings: str
    """Settings of the part that measured it."""
    values: tuple[float, ...]
    """Measured values with seeds 0, 1, ...; a single one if nothing is random."""
    measured: float
    """Mean or median of the values, whichever the experiment uses."""
    difference_items: float | None
    """Measured minus published value in items; None if the cell does not count items."""
    verdict: str
    """The verdict, as `bayescrowd.experiments.engine.verdict` words it."""

    @property
    def explanation(self) -> str | None:
        """What is known about a difference; see `bayescrowd.experiments.engine.verdict`."""
        return explanation_of(self.cell, self.values, self.verdict)

    @property
    def spread(self) -> tuple[float, float, float, float]:
        """Minimum, first quartile, third quartile and maximum over the seeds."""
        least, first, third, largest = np.quantile(self.values, [0, 0.25, 0.75, 1]).tolist()
        return least, first, third, largest

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the seeds; NaN if there is only one."""
        if len(self.values) < 2:
            return math.nan
        return float(np.std(self.values, ddof=1) / math.sqrt(len(self.values)))
