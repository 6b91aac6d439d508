"""What every aggregator does: fit, predict, and describe its workers.

An aggregator states one thing, `_aggregate`: P(class) for each task, with the parameters behind
it. The rest stands here once: reading the input, known labels, deciding ties, the pandas objects
indexed by the user's ids, prediction for new tasks, and the description of workers.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bayescrowd.aggregation.em import Estimate, Incidence, log_floored
from bayescrowd.aggregation.smoothing import crowd_rows, log_pulled
from bayescrowd.aggregation.symbols import Symbols
from bayescrowd.aggregation.worker_rows import SparseRows, WorkerRows
from bayescrowd.annotations import Annotations, as_annotations
from bayescrowd.memory import check_fits
from bayescrowd.parameters import check_parameters

__all__ = [
    "Aggregation",
    "Aggregator",
    "Tally",
    "as_annotations",
    "decide",
    "incidence",
    "tally",
    "worker_quality",
]

TIE = 1e-9
"""Classes whose probability is this close to the largest share the first place."""

SPAMMER_INFORMEDNESS = 0.25
"""A worker is called a spammer when even the upper bound of the informedness is below this."""

FLAG_STANDARD_ERRORS = 3.0
"""How far the bound lies above the estimate: a false accusation costs a worker their pay."""

Gold = pd.Series | Mapping[Any, Any] | None

# beartype knows `typing.Self` only where it decorates whole classes.
Itself = TypeVar("Itself", bound="Aggregator")


class Aggregation(NamedTuple):
    """What a method finds out; everything else follows from it."""

    posterior: Float[np.ndarray, "item cls"]
    """P(class) of each task."""
    priors: Float[np.ndarray, " cls"]
    """P(class) before seeing labels."""
    rows: WorkerRows
    """P(observed | true) of each worker."""
    symbols: Symbols
    """The pairs of a worker and a label that occur."""
    counts: Float[np.ndarray, "symbol cls"]
    """Expected number of labels of each pair on tasks of each class."""
    log_likelihood: float
    """log P(labels) under priors and rows, nats."""
    trace: Float[np.ndarray, " iteration"]
    """Objective after each iteration; empty for methods that do not iterate."""
    converged: bool
    """Whether the iteration met its tolerance; True for methods that do not iterate."""

    @property
    def crowd_counts(self) -> Float[np.ndarray, "cls observed"]:
        """Expected number of labels of the whole crowd, [true, observed]."""
        return self.symbols.by_label(self.counts).T

    def renamed(self, hidden: Int[np.ndarray, " cls"]) -> Aggregation:
        """The same with class k standing for the class `hidden[k]` of now."""
        return self._replace(
            posterior=self.posterior[:, hidden],
            priors=self.priors[hidden],
            rows=self.rows.renamed(hidden),
            counts=self.counts[:, hidden],
        )


class Tally(NamedTuple):
    """How many labels stand behind a worker's matrix."""

    right: Float[np.ndarray, "worker cls"]
    """Expected number of right labels on tasks of each class."""
    total: Float[np.ndarray, "worker cls"]
    """Expected number of labels."""


class Aggregator(BaseEstimator):
    """Base of all aggregators; scikit-learn's parameter protocol over annotations.

    Attributes:
        labels_: most probable class of each task; exact ties are broken by the seed.
        probas_: P(class) of each task, tasks x classes.
        priors_: P(class) before seeing labels.
        confusions_: P(observed | true), indexed (worker, true). It is made when it is read, since
            it has workers x classes^2 entries; `confusion_of` makes the matrix of one worker.
        worker_quality_: per worker: accuracy, information (nats), n_labels, flag.
        log_likelihood_: log P(labels) under priors_ and confusions_, nats.
        trace_, n_iter_, converged_: the course of the iteration, where there is one.
        n_ties_: number of tasks whose first place is shared.
    """

    seed: int
    n_iter: int
    tol: float
    _unsettled_hint: ClassVar[str] = ""
    """What else a method has to say when it stops before it has settled."""
    _model_name: ClassVar[str | None] = None
    """The module of `bayescrowd.models` that tells the same story of the labels, if one does."""
    _n_tables: ClassVar[int] = 3
    """Tables of pairs x classes and of tasks x classes that a fit holds at a time, at least."""

    @abstractmethod
    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        """Find the classes; `fixed` is the class of tasks whose truth is known, else -1."""

    def fit(self: Itself, data: Any, gold: Gold = None) -> Itself:
        """Learn from labels.

        Args:
            data: `Annotations`, or a table with the columns task, worker and label.
            gold: task -> label for tasks whose truth is known and may be used.
        """
        check_parameters(self)
        ann = as_annotations(data)
        fixed = np.full(ann.n_tasks, -1, dtype=np.int32) if gold is None else ann.code_truth(gold)
        self._check_memory(ann)
        found = self._aggregate(ann, fixed)
        if not found.converged and self.tol > 0:
            warnings.warn(
                f"{type(self).__name__} stopped after n_iter={self.n_iter} iterations before it "
                f"settled to tol={self.tol:g}; raise n_iter, or set tol=0 to ask for exactly n_iter"
                f"{self._unsettled_hint}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.__dict__.pop("confusions_", None)
        self.classes_, self.workers_ = ann.classes, ann.workers
        self.probas_ = pd.DataFrame(found.posterior, index=ann.tasks, columns=ann.classes)
        self.labels_, self.n_ties_ = decide(self.probas_, self.seed)
        self.priors_ = pd.Series(found.priors, index=ann.classes, name="prior")
        self.worker_quality_ = worker_quality(
            found.rows,
            tally(found.symbols, found.counts),
            found.priors,
            ann.labels_per_worker,
            ann.workers,
        )
        self.log_likelihood_ = found.log_likelihood
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace)
        self.converged_ = found.converged
        self._rows = found.rows
        self._annotations, self._has_gold = ann, bool((fixed >= 0).any())
        return self

    @cached_property
    def confusions_(self) -> pd.DataFrame:
        """P(observed | true), indexed (worker, true).

        Raises:
            ValueError: the matrices of all workers do not fit into memory.
        """
        if "_rows" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted yet: no confusions_")
        n_workers, n_classes = len(self.workers_), len(self.classes_)
        check_fits(
            8.0 * n_workers * n_classes**2,
            f"confusion matrices of {n_workers:,} workers and {n_classes:,} classes",
            "confusion_of(worker) makes the matrix of one worker",
        )
        matrices = self._rows.matrices(np.arange(n_workers))
        return confusion_frame(matrices, self._annotations)

    def confusion_of(self, worker: Any) -> pd.DataFrame:
        """P(observed | true) of one worker, true classes x observed ones.

        Args:
            worker: the worker's id.

        Raises:
            ValueError: the fit did not see this worker.

        Examples:
            >>> import bayescrowd as bc
            >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aab")])
            >>> bc.MajorityVote().fit(ann).confusion_of(2).loc["a", "b"].item()
            1.0
        """
        check_is_fitted(self)
        if worker not in self.workers_:
            raise ValueError(
                f"worker {worker!r} is not among the {len(self.workers_):,} of the fit"
            )
        place = np.array([self.workers_.get_loc(worker)])
        return pd.DataFrame(
            self._rows.matrices(place)[0],
            index=pd.Index(self.classes_, name="true"),
            columns=pd.Index(self.classes_, name="observed"),
        )

    def fit_predict(self, data: Any, gold: Gold = None) -> pd.Series:
        """Fit and return `labels_`."""
        return self.fit(data, gold).labels_

    def fit_predict_proba(self, data: Any, gold: Gold = None) -> pd.DataFrame:
        """Fit and return `probas_`."""
        return self.fit(data, gold).probas_

    def predict(self, data: Any) -> pd.Series:
        """Most probable class of new tasks; see `predict_proba`."""
        return decide(self.predict_proba(data), self.seed)[0]

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """P(class) of new tasks labelled by the workers of the fit, tasks x classes.

        A worker whom the fit did not see has the crowd's mean confusion matrix.
        """
        check_is_fitted(self)
        ann = self._recoded(data)
        known = self.workers_.get_indexer(ann.workers)
        return pd.DataFrame(
            self._posterior_of_new(ann, known), index=ann.tasks, columns=self.classes_
        )

    def posterior(self, **options: Any) -> Any:
        """Draw from the posterior of the method's model given the labels of the fit.

        The point estimate says which answer is the most probable, the draws how far to believe
        it. The model has priors of its own (`prior=`), not the pseudo-counts of the estimator.

        Args:
            **options: those of `bayescrowd.sample_posterior`. Without `method` it is Gibbs where
                the model has it, else NUTS. Gibbs chains start from `probas_` unless `init` says
                otherwise, and so look around where the point estimate is; `init="random"` finds
                out whether there are other places. Without `seed` it is that of the estimator.

        Returns:
            ArviZ's container, see `bayescrowd.sample_posterior`.

        Raises:
            TypeError: the method has no generative model.
            ValueError: the fit knew the truth of some tasks, which the samplers do not take.
        """
        if self._model_name is None:
            raise TypeError(
                f"{type(self).__name__} has no generative model to draw from; expected an "
                "estimator such as DawidSkene, OneCoinDawidSkene, MACE or GLAD"
            )
        check_is_fitted(self)
        if self._has_gold:
            raise ValueError(
                "the fit was told the truth of some tasks (gold), which the samplers do not take: "
                "fit without gold for a posterior"
            )
        from bayescrowd import models
        from bayescrowd.posterior.gibbs import conjugate_models
        from bayescrowd.posterior.sample import sample_posterior

        method = "gibbs" if self._model_name in conjugate_models() else "nuts"
        defaults: dict[str, Any] = {"method": method, "init": self.probas_, "seed": self.seed}
        model = getattr(models, self._model_name)
        return sample_posterior(model, self._annotations, **(defaults | options))

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        """P(class) of new tasks; `known` is each worker's place in the fit, -1 if unseen."""
        return posterior_under(self._rows, self.priors_.to_numpy(), ann, known)

    def _check_memory(self, ann: Annotations) -> None:
        """Refuse labels whose tables do not fit."""
        n_pairs = min(ann.n_labels, ann.n_workers * ann.n_classes)
        check_fits(
            8.0 * ann.n_classes * self._n_tables * (n_pairs + ann.n_tasks),
            f"{type(self).__name__} on {ann.n_labels:,} labels of {ann.n_tasks:,} tasks in "
            f"{ann.n_classes:,} classes",
            "fit fewer tasks or classes at a time",
        )

    def _recoded(self, data: Any) -> Annotations:
        """New labels with the classes of the fit."""
        ann = as_annotations(data, classes=self.classes_)
        if ann.classes.equals(self.classes_):
            return ann
        codes = self.classes_.get_indexer(ann.classes)
        used = codes[ann.label_codes]
        if (used < 0).any():
            unknown = ann.classes[ann.label_codes[np.flatnonzero(used < 0)[0]]]
            raise ValueError(f"label {unknown!r} is not one of the fitted classes")
        return Annotations.from_codes(
            ann.task_codes,
            ann.worker_codes,
            used,
            tasks=ann.tasks,
            workers=ann.workers,
            classes=self.classes_,
        )


def posterior_under(
    rows: WorkerRows,
    priors: Float[np.ndarray, " cls"],
    ann: Annotations,
    known: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, "item cls"]:
    """P(class) of tasks given the rows of their workers.

    Args:
        rows: of the workers of a fit.
        priors: P(class).
        ann: the labels of the tasks.
        known: each of their workers' place in the fit, -1 if unseen.
    """
    symbols = Symbols(ann)
    table = log_floored(rows.at(known[symbols.worker], symbols.label))
    posterior = np.empty((ann.n_tasks, len(priors)))
    symbols.labels().sweep(Estimate(table, log_floored(priors), 0.0, None), posterior)
    return posterior


def incidence(ann: Annotations, fixed: Int[np.ndarray, " item"] | None = None) -> Incidence:
    """The labels as tasks x (worker, label) symbols, every pair a symbol.

    For matrices that are given whole, see `estimate_of`; `Symbols` has the pairs that occur.
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
    """Counts of `incidence`'s symbols and classes as [worker, true, observed]."""
    return counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)


def estimate_of(
    log_confusions: Float[np.ndarray, "worker cls observed"], priors: Float[np.ndarray, " cls"]
) -> Estimate:
    """Log confusion matrices and priors in the form the E-step needs, for `incidence`."""
    log_table = log_confusions.transpose(0, 2, 1).reshape(-1, len(priors))
    return Estimate(np.ascontiguousarray(log_table), log_floored(priors), 0.0, None)


def vote_shares(ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Float[np.ndarray, "item cls"]:
    """Share of each task's labels per class, uniform without labels, the truth where known."""
    return with_known(shares(weighted_votes(ann, np.ones(ann.n_labels))), fixed)


def weighted_votes(
    ann: Annotations, weights: Float[np.ndarray, " label"]
) -> Float[np.ndarray, "item cls"]:
    """Sum of the weights of each task's labels, by class."""
    cell = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    votes = np.bincount(cell, weights, minlength=ann.n_tasks * ann.n_classes)
    return votes.reshape(ann.n_tasks, ann.n_classes)


def shares(votes: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """Rows scaled to sum to one, uniform where a row is empty."""
    totals = votes.sum(axis=1)
    scaled = votes / np.where(totals > 0, totals, 1.0)[:, None]
    scaled[totals == 0] = 1.0 / votes.shape[1]
    return scaled


def with_known(
    posterior: Float[np.ndarray, "item cls"], fixed: Int[np.ndarray, " item"]
) -> Float[np.ndarray, "item cls"]:
    """The posterior with certainty where the truth is known."""
    known = np.flatnonzero(fixed >= 0)
    if len(known) == 0:
        return posterior
    posterior = posterior.copy()
    posterior[known] = np.eye(posterior.shape[1])[fixed[known]]
    return posterior


def described(
    ann: Annotations,
    posterior: Float[np.ndarray, "item cls"],
    *,
    trace: Any = (),
    converged: bool = True,
) -> Aggregation:
    """The aggregation of a method without a label model, seen through Dawid and Skene's.

    Priors and confusion matrices are the ones its answers imply (one M-step), and the
    log-likelihood is theirs, so that methods can be compared.
    """
    symbols = Symbols(ann)
    labels = symbols.labels()
    counts = labels.counts(posterior)
    crowd = crowd_rows(symbols, counts)
    totals = symbols.by_worker(counts)
    log_rows, scale = log_pulled(symbols, counts, totals, base=crowd, strength=0.0)
    priors = posterior.mean(axis=0)
    estimate = Estimate(log_rows, log_floored(priors), 0.0, None)
    return Aggregation(
        posterior,
        priors,
        SparseRows(symbols, log_rows, scale=scale, base=crowd, stranger=crowd),
        symbols,
        counts,
        labels.sweep(estimate, np.empty_like(posterior)).log_likelihood,
        np.asarray(trace),
        converged,
    )


def tally(symbols: Symbols, counts: Float[np.ndarray, "symbol cls"]) -> Tally:
    """Right labels and labels of each worker, from the counts of pairs."""
    right = np.zeros((symbols.n_workers, symbols.n_classes))
    right[symbols.worker, symbols.label] = counts[np.arange(len(symbols)), symbols.label]
    return Tally(right, symbols.by_worker(counts))


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


def decide(probas: pd.DataFrame, seed: int) -> tuple[pd.Series, int]:
    """Most probable class of each task, ties drawn by the seed, and how many ties there were."""
    values = probas.to_numpy()
    largest = values.max(axis=1, keepdims=True)
    first: Bool[np.ndarray, "item cls"] = values >= largest - TIE
    codes = values.argmax(axis=1)
    tied = np.flatnonzero(first.sum(axis=1) > 1)
    if len(tied):
        draw = np.random.default_rng(seed).random((len(tied), values.shape[1]))
        codes[tied] = np.where(first[tied], draw, -1.0).argmax(axis=1)
    labels = pd.Series(probas.columns.take(codes), index=probas.index, name="label")
    return labels, len(tied)


def confusion_frame(
    confusions: Float[np.ndarray, "worker cls observed"], ann: Annotations
) -> pd.DataFrame:
    """P(observed | true) under the user's ids, indexed (worker, true)."""
    index = pd.MultiIndex.from_product([ann.workers, ann.classes], names=["worker", "true"])
    columns = pd.Index(ann.classes, name="observed")
    return pd.DataFrame(confusions.reshape(-1, ann.n_classes), index=index, columns=columns)
