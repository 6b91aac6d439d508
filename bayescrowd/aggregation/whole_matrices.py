"""EM with confusion matrices held as one array, [worker, true, observed]."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.em import EMEstimate, Incidence, floored_log
from bayescrowd.data.annotations import Annotations

__all__ = ["confusion_frame", "counts_by_worker", "estimate_of", "incidence"]


def incidence(ann: Annotations, fixed: Int[np.ndarray, " item"] | None = None) -> Incidence:
    """The labels as tasks x symbols, where every pair of a worker and a label is a symbol.

    It goes with `estimate_of`. `WorkerLabelPairs` has only the pairs that occur.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
    """
    n_symbols = ann.n_workers * ann.n_classes
    dtype = np.int32 if n_symbols < 2**31 else np.int64
    return Incidence(
        ann.task_offsets,
        ann.worker_codes.astype(dtype) * ann.n_classes + ann.label_codes,
        n_symbols=n_symbols,
        n_classes=ann.n_classes,
        fixed=fixed,
    )


def counts_by_worker(
    counts: Float[np.ndarray, "symbol cls"], n_classes: int
) -> Float[np.ndarray, "worker cls observed"]:
    """Counts of the symbols of `incidence`, by class, as [worker, true, observed]."""
    return counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)


def estimate_of(
    log_confusions: Float[np.ndarray, "worker cls observed"], priors: Float[np.ndarray, " cls"]
) -> EMEstimate:
    """Log confusion matrices and priors as the E-step takes them, for `incidence`."""
    log_table = log_confusions.transpose(0, 2, 1).reshape(-1, len(priors))
    return EMEstimate(np.ascontiguousarray(log_table), floored_log(priors), 0.0, None)


def confusion_frame(
    confusions: Float[np.ndarray, "worker cls observed"], ann: Annotations
) -> pd.DataFrame:
    """P(observed | true) under the user's ids, indexed (worker, true)."""
    index = pd.MultiIndex.from_product([ann.workers, ann.classes], names=["worker", "true"])
    columns = pd.Index(ann.classes, name="observed")
    return pd.DataFrame(confusions.reshape(-1, ann.n_classes), index=index, columns=columns)
