"""How good each worker is: accuracy, information and a warning flag."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.worker_rows import WorkerRows

__all__ = ["Tally", "worker_quality"]

SPAMMER_INFORMEDNESS = 0.25
"""A worker is called a spammer when even the upper bound of the informedness is below this."""

FLAG_STANDARD_ERRORS = 3.0
"""How far the bound lies above the estimate: a false accusation costs a worker their pay."""


class Tally(NamedTuple):
    """How many labels stand behind a worker's matrix."""

    right: Float[np.ndarray, "worker cls"]
    """Expected number of right labels on tasks of each class."""
    total: Float[np.ndarray, "worker cls"]
    """Expected number of labels."""


def worker_quality(
    rows: WorkerRows,
    counts: Tally,
    priors: Float[np.ndarray, " cls"],
    n_labels: Int[np.ndarray, " worker"],
    workers: pd.Index,
) -> pd.DataFrame:
    """Per worker: how often right, how much told, how many labels, and a warning flag.

    * accuracy: sum_k P(k) P(k | k), the chance that a label is right;
    * information: mutual information of label and truth, nats; an adversary can have much;
    * flag: 'adversary' if the informedness (the mean of P(k | k), scaled so that guessing is 0
      and perfection 1) is below 0 by `FLAG_STANDARD_ERRORS` standard deviations of what the
      labels leave open; 'spammer' if it is so below `SPAMMER_INFORMEDNESS`; else ''. A worker
      with few labels is therefore not accused.
    """
    n_classes = len(priors)
    # Mean and variance of each P(k | k) given its counts, from a uniform prior (a beta
    # posterior): the point estimate of a worker with two labels, both wrong, claims certainty.
    mean = (counts.right + 1) / (counts.total + 2)
    variance = mean * (1 - mean) / (counts.total + 3)
    informedness = (mean.sum(axis=1) - 1) / (n_classes - 1)
    upper = informedness + FLAG_STANDARD_ERRORS * np.sqrt(variance.sum(axis=1)) / (n_classes - 1)
    flag = np.select([upper < 0, upper < SPAMMER_INFORMEDNESS], ["adversary", "spammer"], "")
    return pd.DataFrame(
        {
            "accuracy": rows.right() @ priors,
            "information": np.maximum(rows.information(priors), 0.0),
            "n_labels": n_labels,
            "flag": np.where(n_labels > 0, flag, ""),
        },
        index=workers,
    )
