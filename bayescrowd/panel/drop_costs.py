"""What dropping a judge costs: the table, and the change of paired shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtri

__all__ = ["Dropping", "paired_share_change"]


@dataclass(frozen=True, eq=False)
class Dropping:
    """What it would cost to drop each judge.

    Attributes:
        table: a row per judge, the one whose absence changes the most labels first: cluster (number
            of its cluster, missing if it is alone), changed (share of tasks whose label changes),
            n_unjudged (tasks that nobody else judged), effective_low and effective_high (bracket
            of the effective votes without it). With gold also accuracy and log_loss (changes on the
            gold tasks: without the judge minus with it) and the ends of their intervals
            (accuracy_lower, ...).
        effective_votes: bracket of the effective votes of all judges.
        by_chance: share of tasks whose label changes under another seed, with all judges.
        n_tasks: number of tasks on which judges are compared.
        n_sampled_from: number of tasks of the panel.
        n_gold: number of gold tasks among them.
        n_left_out: number of judges that were not tried.
        summary: the same in words.
    """

    table: pd.DataFrame
    effective_votes: tuple[float, float]
    by_chance: float
    n_tasks: int
    n_sampled_from: int
    n_gold: int
    n_left_out: int
    summary: str


def paired_share_change(
    change: Float[np.ndarray, " case"], level: float
) -> tuple[float, float, float]:
    """Mean of changes between -1 and 1 of paired cases, with the interval of Agresti and Min.

    Examples:
        >>> mean, lower, upper = paired_share_change(np.zeros(20), 0.9)
        >>> mean, round(lower, 3), round(upper, 3)
        (0.0, -0.075, 0.075)
    """
    gained = np.maximum(change, 0).sum() + 0.5
    lost = np.maximum(-change, 0).sum() + 0.5
    n = len(change) + 2
    centre = (gained - lost) / n
    spread = np.sqrt(max(gained + lost - (gained - lost) ** 2 / n, 0.0)) / n
    half = ndtri((1 + level) / 2) * spread
    mean = float(change.mean())
    lower, upper = max(centre - half, -1.0), min(centre + half, 1.0)
    return mean, float(min(mean, lower)), float(max(mean, upper))
