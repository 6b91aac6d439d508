"""Dawid and Skene's estimator: worker confusion matrices and true classes by EM.

Dawid and Skene 1979, 'Maximum likelihood estimation of observer error-rates using the EM
algorithm'. A task's class k has probability p_k; worker w answers l to a task of class k with
probability pi_wkl, whatever the others answer. EM alternates

    E-step (eq. 2.5):  P(k | labels of the task)  proportional to  p_k prod pi_wkl
    M-step (eq. 2.3):  pi_wkl = expected share of label l among w's labels on tasks of class k
    M-step (eq. 2.4):  p_k = mean of P(k | labels) over tasks

The engine that runs it is `em.py`. Departures from the paper: pseudo-counts on the confusion rows
(`smoothing.py`; zero gives the paper's estimator), and restarts, since the likelihood has several
maxima: on the paper's own data the start from vote shares ends at -190.73, below the best, -189.41.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.aggregation.em import (
    LOG_FLOOR,
    EMResult,
    Estimate,
    Incidence,
    Sweep,
    log_floored,
    maximise,
)
from bayescrowd.aggregation.protocol import (
    TIE,
    Aggregation,
    Aggregator,
    counts_by_worker,
    estimate_of,
    incidence,
    vote_shares,
)
from bayescrowd.aggregation.smoothing import Smoothing, mean_rows, smoothed_rows
from bayescrowd.annotations import Annotations
from bayescrowd.parameters import Count, NonNegative, Seed, Tolerance

__all__ = ["DawidSkene", "EMAggregator"]

_SMOOTHINGS = get_args(Smoothing)


class EMAggregator(Aggregator):
    """What the EM estimators share: starts, restarts, alignment. See `DawidSkene`."""

    def __init__(
        self,
        *,
        init: Literal["majority", "random"] | pd.DataFrame | np.ndarray = "majority",
        n_init: Count = 1,
        prior: Literal["learned", "uniform"] = "learned",
        smoothing: Smoothing = "pooled",
        pseudo_counts: NonNegative = 1.0,
        zeros: Literal["floor", "skip"] = "floor",
        n_iter: Count = 200,
        tol: Tolerance = 1e-7,
        seed: Seed = 0,
    ) -> None:
        self.init = init
        self.n_init = n_init
        self.prior = prior
        self.smoothing = smoothing
        self.pseudo_counts = pseudo_counts
        self.zeros = zeros
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    @abstractmethod
    def _log_confusions(
        self,
        counts: Float[np.ndarray, "worker cls observed"],
        centre: Float[np.ndarray, "row outcome"] | None,
    ) -> tuple[Float[np.ndarray, "worker cls observed"], float, Any]:
        """Log confusion matrices from expected counts, log prior density, the crowd's mean."""

    @abstractmethod
    def _interchangeable(self, n_classes: int) -> bool:
        """Whether renaming the hidden classes leaves the objective as it is."""

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        labels = incidence(ann, fixed)
        results = (self._run(labels, ann, fixed, start) for start in range(self.n_init))
        winner, best = max(enumerate(results), key=lambda numbered: numbered[1].trace[-1])
        named_by_user = (fixed >= 0).any() or (winner == 0 and not isinstance(self.init, str))
        if self._interchangeable(ann.n_classes) and not named_by_user:
            best = _aligned(best, ann.n_classes)
        return self._aggregation(best, ann)

    def _run(
        self, labels: Incidence, ann: Annotations, fixed: Int[np.ndarray, " item"], start: int
    ) -> EMResult:
        estimate = None
        posterior = vote_shares(ann, fixed)
        if start > 0 or (isinstance(self.init, str) and self.init == "random"):
            # Start s of seed r is the same whatever n_init is.
            rng = np.random.default_rng([self.seed, start])
            posterior = rng.dirichlet(np.ones(ann.n_classes), size=ann.n_tasks)
        elif not isinstance(self.init, str):
            uniform = np.full(ann.n_classes, 1.0 / ann.n_classes)
            estimate = estimate_of(log_floored(_given_confusions(self.init, ann)), uniform)
        return maximise(
            labels, posterior, self._m_step, n_iter=self.n_iter, tol=self.tol, estimate=estimate
        )

    def _m_step(self, sweep: Sweep, previous: Estimate | None) -> Estimate:
        n_classes = len(sweep.class_counts)
        counts = counts_by_worker(sweep.counts, n_classes)
        log_confusions, penalty, centre = self._log_confusions(counts, previous and previous.centre)
        priors = sweep.class_counts / sweep.class_counts.sum()
        if self.prior == "uniform":
            priors = np.full(n_classes, 1.0 / n_classes)
        if self.zeros == "skip":
            empty = np.einsum("wko->wk", counts)[:, :, None] + self.pseudo_counts == 0
            zero = empty | (log_confusions < LOG_FLOOR + 1)
            log_confusions = np.where(zero, 0.0, log_confusions)
        return estimate_of(log_confusions, priors, penalty, centre)

    def _aggregation(self, result: EMResult, ann: Annotations) -> Aggregation:
        counts = counts_by_worker(result.counts, ann.n_classes)
        log_confusions = counts_by_worker(result.estimate.log_table, ann.n_classes)
        if self.zeros == "skip":  # the table has lost its zeros
            log_confusions = self._log_confusions(counts, result.estimate.centre)[0]
        confusions = np.exp(log_confusions)
        confusions = np.where(
            ann.labels_per_worker[:, None, None] > 0, confusions, mean_rows(counts)
        )
        priors = np.exp(result.estimate.log_prior)
        return Aggregation(
            result.posterior,
            priors / priors.sum(),
            confusions / confusions.sum(axis=2, keepdims=True),
            counts,
            result.log_likelihood,
            result.trace,
            result.converged,
        )


class DawidSkene(EMAggregator):
    """Dawid–Skene EM with full confusion matrices.

    Args:
        init: 'majority' starts from vote shares; 'random' from a random posterior; confusion
            matrices start from themselves: an array [true, observed] for everybody, an array
            [worker, true, observed], or a table like `confusions_`.
        n_init: number of starts; the first as `init` says, the others random. The highest
            objective wins, and hidden classes are named so that most labels agree with them,
            unless gold or given matrices have named them.
        prior: class prior 'learned' or 'uniform'.
        smoothing: where the pseudo-counts of a confusion row go: 'flat', 'diagonal', or 'pooled'
            toward the crowd's mean matrix. They hold on every iteration.
        pseudo_counts: how many per row; 0 is the estimator of the paper. The default, one label
            pooled, has errors of 10.2, 7.2, 29.3 and 15.7 % on bluebird, rte, trec and dog
            (without: 10.2, 7.2, 29.8, 15.7).
        zeros: what a label costs a class under which the worker never gives it, which happens
            without pseudo-counts only: 'floor' all but rules the class out; 'skip' leaves the
            label out of the product, as in the code behind the tables of Zhang, Chen, Zhou and
            Jordan (2014), and likewise under a class of which the worker saw no task. The
            objective may then fall.
        n_iter: most iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: random starts and ties.

    Attributes:
        trace_: log-likelihood plus log prior density after each iteration, nats; never falls.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aaa"), list("bba")])
        >>> est = bc.DawidSkene().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'a', 'b']
        >>> est.worker_quality_["accuracy"].round(1).to_list()
        [1.0, 1.0, 0.6]
    """

    _model_name = "dawid_skene"

    def _log_confusions(
        self,
        counts: Float[np.ndarray, "worker cls observed"],
        centre: Float[np.ndarray, "row outcome"] | None,
    ) -> tuple[Float[np.ndarray, "worker cls observed"], float, Any]:
        n_classes = counts.shape[1]
        base = {
            "flat": np.full((n_classes, n_classes), 1.0 / n_classes),
            "diagonal": np.eye(n_classes),
            "pooled": None,
        }[self.smoothing]
        smoothed = smoothed_rows(counts, base=base, pseudo_counts=self.pseudo_counts, centre=centre)
        return smoothed.log_rows, smoothed.penalty, smoothed.centre

    def _interchangeable(self, n_classes: int) -> bool:
        return self.smoothing != "diagonal" or self.pseudo_counts == 0


def _aligned(result: EMResult, n_classes: int) -> EMResult:
    """Name the hidden classes so that most labels agree with them, crowd-wide."""
    crowd = counts_by_worker(result.counts, n_classes).sum(axis=0)
    named = linear_sum_assignment(crowd, maximize=True)[1]
    gain = crowd[np.arange(n_classes), named].sum() - crowd.trace()
    if gain <= TIE * crowd.sum():  # as good as it is: rounding must not swap names
        return result
    hidden = np.argsort(named)  # class k is the hidden class hidden[k]
    estimate = result.estimate._replace(
        log_table=result.estimate.log_table[:, hidden],
        log_prior=result.estimate.log_prior[hidden],
        centre=None,
    )
    return result._replace(
        estimate=estimate, posterior=result.posterior[:, hidden], counts=result.counts[:, hidden]
    )


def _given_confusions(
    init: pd.DataFrame | np.ndarray, ann: Annotations
) -> Float[np.ndarray, "worker cls observed"]:
    """Starting matrices of all workers, checked."""
    n_workers, n_classes = ann.n_workers, ann.n_classes
    matrices: np.ndarray
    if isinstance(init, pd.DataFrame):
        index = pd.MultiIndex.from_product([ann.workers, ann.classes])
        unknown = ann.classes.difference(init.columns)
        if len(unknown) or init.index.nlevels != 2:
            raise ValueError(
                "init: expected a table indexed (worker, true) with a column per class"
            )
        matrices = init.reindex(index=index, columns=ann.classes).to_numpy(float, copy=True)
        matrices = matrices.reshape(n_workers, n_classes, n_classes)
        absent = np.isnan(matrices).any(axis=(1, 2))
        if absent.all():
            raise ValueError("init: no worker of the labels has all rows in the table")
        matrices[absent] = matrices[~absent].mean(axis=0)
    else:
        matrices = np.asarray(init, dtype=float)
        if matrices.shape not in ((n_classes, n_classes), (n_workers, n_classes, n_classes)):
            raise ValueError(
                f"init has shape {matrices.shape}; expected ({n_classes}, {n_classes}) or "
                f"({n_workers}, {n_classes}, {n_classes})"
            )
        matrices = np.broadcast_to(matrices, (n_workers, n_classes, n_classes))
    sums = matrices.sum(axis=2)
    bad = np.argwhere(~((matrices >= 0).all(axis=2) & (np.abs(sums - 1) < 1e-6)))
    if len(bad):
        worker, true = bad[0]
        raise ValueError(
            f"init: row of worker {ann.workers[worker]!r}, true class {ann.classes[true]!r} sums "
            f"to {sums[worker, true]:g}; expected probabilities that sum to 1"
        )
    return matrices
