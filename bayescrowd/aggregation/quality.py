"""How good each worker is: accuracy, information and a warning flag."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.worker_rows import WorkerRows

__all__ = ["Tally", "worker_quality"]

SPAMMER_INFORMEDNESS = 0.25
"""A worker is flagged as a spammer if even the upper bound of the informedness is below this."""

FLAG_STANDARD_ERRORS = 3.0
"""Standard errors between estimate and bound; a false accusation costs a worker their pay."""


class Tally(NamedTuple):
    """The numbers of labels behind a worker's matrix."""

    right: Float[np.ndarray, "worker cls"]
    """Expected number of right labels on tasks of each class."""
    total: Float[np.ndarray, "worker cls"]
    """Expected number of labels on tasks of each class."""


def worker_quality(
    rows: WorkerRows,
    counts: Tally,
    priors: Float[np.ndarray, " cls"],
    n_labels: Int[np.ndarray, " worker"],
    workers: pd.Index,
) -> pd.DataFrame:
    """Accuracy, information, number of labels and a warning flag of each worker.

    * accuracy: sum_k P(k) P(k | k), the probability that a label is right;
    * information: mutual information between label and truth, nats; an adversary can have much;
    * flag: 'adversary' if the informedness (the mean of P(k | k), scaled so that guessing is 0
      and perfection is 1) is below 0 by at least `FLAG_STANDARD_ERRORS` of its posterior standard
      deviations; 'spammer' if it is below `SPAMMER_INFORMEDNESS` by as much; else ''. A worker
      with few labels is therefore not accused.

    Args:
        rows: the workers' confusion rows.
        counts: the numbers of labels behind them.
        priors: P(class).
        n_labels: number of labels of each worker.
        workers: ids of the workers.
    """
    n_classes = len(priors)
    # Mean and variance of each P(k | k) under the beta posterior from a uniform prior. The point
    # estimate of a worker with two labels, both wrong, would claim certainty.
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
