"""The label model that the answers of a method without one imply."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.em import EMEstimate, floored_log
from bayescrowd.aggregation.protocol import Aggregation
from bayescrowd.aggregation.smoothing import crowd_rows, pulled_log_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows
from bayescrowd.data.annotations import Annotations

__all__ = ["implied_aggregation"]


def implied_aggregation(
    ann: Annotations,
    posterior: Float[np.ndarray, "item cls"],
    *,
    trace: Any = (),
    converged: bool = True,
) -> Aggregation:
    """The answers of a method without a label model, described by Dawid and Skene's.

    Priors and confusion matrices are those that the answers imply (one M-step), and the
    log-likelihood is theirs, so that methods can be compared.

    Args:
        ann: the labels.
        posterior: the answers, as P(class) of each task.
        trace: the course of the method's iteration, if there is one.
        converged: whether the method met its tolerance.
    """
    pairs = WorkerLabelPairs(ann)
    labels = pairs.labels()
    counts = labels.counts(posterior)
    crowd = crowd_rows(pairs, counts)
    totals = pairs.by_worker(counts)
    log_rows, scale = pulled_log_rows(pairs, counts, totals, base=crowd, strength=0.0)
    priors = posterior.mean(axis=0)
    estimate = EMEstimate(log_rows, floored_log(priors), 0.0, None)
    return Aggregation(
        posterior,
        priors,
        SparseRows(pairs.keys, log_rows, scale=scale, base=crowd, stranger=crowd),
        pairs,
        counts,
        labels.sweep(estimate, np.empty_like(posterior)).log_likelihood,
        np.asarray(trace),
        converged,
    )
