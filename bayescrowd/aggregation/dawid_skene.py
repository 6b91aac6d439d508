"""Dawid and Skene's estimator: worker confusion matrices and true classes by EM.

Dawid and Skene 1979, 'Maximum likelihood estimation of observer error-rates using the EM
algorithm'. A task's class k has probability p_k; worker w answers l to a task of class k with
probability pi_wkl, whatever the others answer. EM alternates

    E-step (eq. 2.5):  P(k | labels of the task)  proportional to  p_k prod pi_wkl
    M-step (eq. 2.3):  pi_wkl = expected share of label l among w's labels on tasks of class k
    M-step (eq. 2.4):  p_k = mean of P(k | labels) over tasks

EM runs in `em.py`. Departures from the paper: pseudo-counts on the confusion rows (`smoothing.py`;
zero gives the paper's estimator), and restarts, because the likelihood has several maxima: on the
paper's own data the start from vote shares ends at -190.73, below the best, -189.41.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayescrowd.aggregation.em import (
    LOG_FLOOR,
    EMEstimate,
    EMResult,
    Incidence,
    Sweep,
    floored_log,
    maximise,
)
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.smoothing import Smoothing, crowd_rows, smoothed_pairs
from bayescrowd.aggregation.votes import TIE, vote_shares
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import SparseRows, WorkerRows
from bayescrowd.checks.parameters import Count, NonNegative, Seed, Tolerance, as_numbers
from bayescrowd.data.annotations import Annotations

__all__ = ["DawidSkene", "EMAggregator", "MaximisedRows"]


class MaximisedRows(NamedTuple):
    """Workers' rows after an M-step."""

    log_table: Float[np.ndarray, "symbol cls"]
    """log P(label | class) of the pairs that occur."""
    others: Any
    """What the estimator needs for the pairs that do not occur."""
    penalty: float
    """log prior density of the rows up to a constant, nats."""
    centre: Any
    """The crowd's mean rows, for the next M-step."""


class EMAggregator(Aggregator):
    """What the EM estimators share: starts, restarts and the names of classes."""

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
    def _maximise(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol cls"],
        centre: Any,
        out: Float[np.ndarray, "symbol cls"] | None = None,
    ) -> MaximisedRows:
        """Rows from expected counts.

        `centre` is the crowd's mean of the previous M-step, None at first. The table may be written
        into `out`.
        """

    @abstractmethod
    def _worker_rows(
        self,
        pairs: WorkerLabelPairs,
        log_table: Float[np.ndarray, "symbol cls"],
        others: Any,
        stranger: Float[np.ndarray, "cls observed"],
    ) -> WorkerRows:
        """The rows of all pairs of a worker and a label, from the result of an M-step."""

    @abstractmethod
    def _interchangeable(self, n_classes: int) -> bool:
        """Whether renaming the hidden classes leaves the objective unchanged."""

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = WorkerLabelPairs(ann, fixed)
        labels = pairs.labels()
        results = (self._run(pairs, labels, ann, start) for start in range(self.n_init))
        winner, best = max(enumerate(results), key=lambda numbered: numbered[1].trace[-1])
        found = self._aggregation(best, pairs)
        named_by_user = (fixed >= 0).any() or (winner == 0 and not isinstance(self.init, str))
        if self._interchangeable(ann.n_classes) and not named_by_user:
            found = _align(found)
        return found

    def _run(
        self, pairs: WorkerLabelPairs, labels: Incidence, ann: Annotations, start: int
    ) -> EMResult:
        estimate = None
        posterior = vote_shares(ann, pairs.fixed)
        if start > 0 or (isinstance(self.init, str) and self.init == "random"):
            # Start s of seed r is the same whatever n_init is.
            rng = np.random.default_rng([self.seed, start])
            posterior = rng.dirichlet(np.ones(ann.n_classes), size=ann.n_tasks)
        elif not isinstance(self.init, str):
            log_prior = np.full(ann.n_classes, -np.log(ann.n_classes))
            given = _given_confusions(self.init, ann)[pairs.worker, :, pairs.label]
            estimate = EMEstimate(floored_log(given), log_prior, 0.0, None)
        return maximise(
            labels,
            posterior,
            partial(self._m_step, pairs),
            n_iter=self.n_iter,
            tol=self.tol,
            estimate=estimate,
        )

    def _m_step(
        self, pairs: WorkerLabelPairs, sweep: Sweep, previous: EMEstimate | None
    ) -> EMEstimate:
        centre = None
        if previous is not None and previous.parameters is not None:
            centre = previous.parameters.centre
        # The previous table is not needed any more: with many classes, a third table in memory
        # would take half as much again.
        room = None if previous is None else previous.log_table
        found = self._maximise(pairs, sweep.counts, centre, out=room)
        n_classes = len(sweep.class_counts)
        priors = sweep.class_counts / sweep.class_counts.sum()
        if self.prior == "uniform":
            priors = np.full(n_classes, 1.0 / n_classes)
        log_table = found.log_table
        if self.zeros == "skip":
            empty = (pairs.by_worker(sweep.counts) + self.pseudo_counts == 0)[pairs.worker]
            log_table = np.where(empty | (log_table < LOG_FLOOR + 1), 0.0, log_table)
        known = found._replace(log_table=np.empty((0, n_classes)))
        return EMEstimate(log_table, floored_log(priors), found.penalty, known)

    def _aggregation(self, result: EMResult, pairs: WorkerLabelPairs) -> Aggregation:
        estimate = result.estimate
        found = estimate.parameters._replace(log_table=estimate.log_table)
        if self.zeros == "skip":  # the table has lost its zeros
            found = self._maximise(pairs, result.counts, found.centre)
        stranger = crowd_rows(pairs, result.counts)
        priors = np.exp(estimate.log_prior)
        return Aggregation(
            result.posterior,
            priors / priors.sum(),
            self._worker_rows(pairs, found.log_table, found.others, stranger),
            pairs,
            result.counts,
            result.log_likelihood,
            result.trace,
            result.converged,
        )


class DawidSkene(EMAggregator):
    """Dawid–Skene EM with full confusion matrices.

    Args:
        init: 'majority' starts from vote shares, 'random' from a random posterior. Confusion
            matrices to start from may be given as an array [true, observed] for everybody, as an
            array [worker, true, observed], or as a table like `confusions_`.
        n_init: number of starts: the first as `init` says, the others random. The highest
            objective wins. Hidden classes are named so that most labels agree with them, unless
            gold or given matrices determine their names.
        prior: class prior, 'learned' or 'uniform'.
        smoothing: how the pseudo-counts of a confusion row are distributed: 'flat', 'diagonal', or
            'pooled' like the crowd's mean row. They apply in every iteration.
        pseudo_counts: pseudo-counts per row; 0 is the estimator of the paper. The default, one
            pooled label, has errors of 10.2, 7.2, 29.3 and 15.7 % on bluebird, rte, trec and dog
            (without it: 10.2, 7.2, 29.8 and 15.7).
        zeros: how to treat a label that a worker never gives under some class, which happens only
            without pseudo-counts. 'floor' all but rules the class out; 'skip' leaves the label out
            of the product, and likewise under a class of which the worker saw no task, as in the
            code behind the tables of Zhang, Chen, Zhou and Jordan (2014). With 'skip' the objective
            may fall.
        n_iter: largest number of iterations.
        tol: stop when the objective rises by less than this, in nats per label; 0 runs n_iter.
        seed: seed of the random starts and of the draw that breaks ties.

    Attributes:
        trace_: log-likelihood plus log prior density after each iteration, nats; it never falls
            unless `zeros` is 'skip'.

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

    def _maximise(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol cls"],
        centre: Any,
        out: Float[np.ndarray, "symbol cls"] | None = None,
    ) -> MaximisedRows:
        found = smoothed_pairs(
            pairs,
            counts,
            base=self._base(pairs.n_classes),
            pseudo_counts=self.pseudo_counts,
            centre=centre,
            out=out,
        )
        return MaximisedRows(found.log_rows, (found.scale, found.base), found.penalty, found.centre)

    def _base(self, n_classes: int) -> Float[np.ndarray, "cls observed"] | None:
        """Distribution of the pseudo-counts of each row; None for the crowd's mean row."""
        if self.smoothing == "pooled":
            return None
        if self.smoothing == "diagonal":
            return np.eye(n_classes)
        return np.full((n_classes, n_classes), 1.0 / n_classes)

    def _worker_rows(
        self,
        pairs: WorkerLabelPairs,
        log_table: Float[np.ndarray, "symbol cls"],
        others: Any,
        stranger: Float[np.ndarray, "cls observed"],
    ) -> SparseRows:
        scale, base = others
        return SparseRows(pairs.keys, log_table, scale=scale, base=base, stranger=stranger)

    def _interchangeable(self, n_classes: int) -> bool:
        return self.smoothing != "diagonal" or self.pseudo_counts == 0


def _align(found: Aggregation) -> Aggregation:
    """Name the hidden classes so that most labels of the crowd agree with them."""
    crowd = found.crowd_counts
    named = linear_sum_assignment(crowd, maximize=True)[1]
    gain = crowd[np.arange(len(crowd)), named].sum() - crowd.trace()
    if gain <= TIE * crowd.sum():  # no better: rounding must not swap names
        return found
    return found.rename_classes(np.argsort(named))


def _given_confusions(
    init: pd.DataFrame | np.ndarray, ann: Annotations
) -> Float[np.ndarray, "worker cls observed"]:
    """The given starting matrices as an array of all workers.

    Raises:
        ValueError: they have the wrong shape, or rows that are not distributions.
    """
    n_workers, n_classes = ann.n_workers, ann.n_classes
    matrices: np.ndarray
    if isinstance(init, pd.DataFrame):
        index = pd.MultiIndex.from_product([ann.workers, ann.classes])
        unknown = ann.classes.difference(init.columns)
        if len(unknown) or init.index.nlevels != 2:
            raise ValueError(
                "init: expected a table indexed (worker, true) with one column per class"
            )
        matrices = as_numbers("init", init.reindex(index=index, columns=ann.classes)).copy()
        matrices = matrices.reshape(n_workers, n_classes, n_classes)
        absent = np.isnan(matrices).any(axis=(1, 2))
        if absent.all():
            raise ValueError("init: the table has a complete matrix for none of the workers")
        matrices[absent] = matrices[~absent].mean(axis=0)
    else:
        matrices = as_numbers("init", init)
        if matrices.shape not in ((n_classes, n_classes), (n_workers, n_classes, n_classes)):
            raise ValueError(
                f"init has shape {matrices.shape}; expected ({n_classes}, {n_classes}) or "
                f"({n_workers}, {n_classes}, {n_classes})"
            )
        if matrices.ndim == 2:
            _check_distributions(matrices[None], ann)
            return np.broadcast_to(matrices, (n_workers, n_classes, n_classes))
    _check_distributions(matrices, ann)
    return matrices


def _check_distributions(
    matrices: Float[np.ndarray, "worker cls observed"], ann: Annotations
) -> None:
    sums = matrices.sum(axis=2)
    bad = np.argwhere(~((matrices >= 0).all(axis=2) & (np.abs(sums - 1) < 1e-6)))
    if len(bad):
        worker, true = bad[0]
        raise ValueError(
            f"init: row of worker {ann.workers[worker]!r}, true class {ann.classes[true]!r} sums "
            f"to {sums[worker, true]:g}; expected probabilities that sum to 1"
        )
