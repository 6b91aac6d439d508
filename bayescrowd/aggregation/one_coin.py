"""One-coin Dawid–Skene: a single accuracy per worker.

Worker w answers correctly with probability a_w and otherwise picks one of the K - 1 wrong classes
with equal probability, whatever the true class: Dawid and Skene's model with pi_wkk = a_w and
pi_wkl = (1 - a_w) / (K - 1). One number per worker can be learned from few labels, but says nothing
about systematic confusions. The E-step is Dawid and Skene's (eq. 2.5); in the M-step, the accuracy
is the expected share of right labels.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayescrowd.aggregation.dawid_skene import EMAggregator, MaximisedRows
from bayescrowd.aggregation.smoothing import Smoothing, smoothed_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import CoinRows
from bayescrowd.checks.parameters import Count, NonNegative, Seed, Tolerance

__all__ = ["OneCoinDawidSkene"]


class OneCoinDawidSkene(EMAggregator):
    """Dawid–Skene EM with one accuracy per worker.

    Args:
        init: as for `DawidSkene`.
        n_init: as for `DawidSkene`.
        prior: class prior, 'uniform' or 'learned'. With a learned prior, a model with one number
            per worker tends to put everything into the more common class: 41.7 % errors on
            bluebird against 27.8 %.
        smoothing: how the pseudo-counts of a worker's accuracy are distributed: 'flat' as if the
            worker guessed among the classes, 'diagonal' on right answers, 'pooled' at the crowd's
            accuracy.
        pseudo_counts: pseudo-counts per worker.
        zeros: as for `DawidSkene`.
        n_iter: largest number of iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the random starts and of the draw that breaks ties.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("ccb"), list("bbb"), list("aac")])
        >>> bc.OneCoinDawidSkene().fit(ann).labels_.to_list()
        ['a', 'c', 'b', 'a']
    """

    _model_name = "one_coin"

    def __init__(
        self,
        *,
        init: Literal["majority", "random"] | pd.DataFrame | np.ndarray = "majority",
        n_init: Count = 1,
        prior: Literal["learned", "uniform"] = "uniform",
        smoothing: Smoothing = "pooled",
        pseudo_counts: NonNegative = 1.0,
        zeros: Literal["floor", "skip"] = "floor",
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        super().__init__(
            init=init,
            n_init=n_init,
            prior=prior,
            smoothing=smoothing,
            pseudo_counts=pseudo_counts,
            zeros=zeros,
            n_iter=n_iter,
            tol=tol,
            seed=seed,
        )

    def _maximise(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol cls"],
        centre: Any,
        out: Float[np.ndarray, "symbol cls"] | None = None,
    ) -> MaximisedRows:
        n_classes, n_workers = pairs.n_classes, pairs.n_workers
        at_label = np.arange(len(pairs)), pairs.label
        right = np.bincount(pairs.worker, counts[at_label], minlength=n_workers)
        given = np.bincount(pairs.worker, counts.sum(axis=1), minlength=n_workers)
        wrong = given - right
        base = {
            "flat": np.array([[1.0 / n_classes, 1.0 - 1.0 / n_classes]]),
            "diagonal": np.array([[1.0, 0.0]]),
            "pooled": None,
        }[self.smoothing]
        outcomes = np.stack([right, np.maximum(wrong, 0.0)], axis=1)[:, None, :]
        smoothed = smoothed_rows(
            outcomes, base=base, pseudo_counts=self.pseudo_counts, centre=centre
        )
        log_right, log_wrong = smoothed.log_rows[:, 0].T
        log_wrong = log_wrong - np.log(n_classes - 1)
        log_table = np.empty(counts.shape) if out is None else out
        log_table[:] = log_wrong[pairs.worker][:, None]
        log_table[at_label] = log_right[pairs.worker]
        return MaximisedRows(log_table, (log_right, log_wrong), smoothed.penalty, smoothed.centre)

    def _worker_rows(
        self,
        pairs: WorkerLabelPairs,
        log_table: Float[np.ndarray, "symbol cls"],
        others: Any,
        stranger: Float[np.ndarray, "cls observed"],
    ) -> CoinRows:
        right, wrong = (np.exp(log_chance)[:, None] for log_chance in others)
        return CoinRows(right, wrong, stranger=stranger, silent=pairs.silent)

    def _interchangeable(self, n_classes: int) -> bool:
        # With two classes, swapping them and every accuracy for its complement changes nothing.
        return n_classes == 2 and (self.smoothing != "diagonal" or self.pseudo_counts == 0)
