"""What every aggregator does: fit, predict, and describe its workers.

An aggregator states one thing, `_aggregate`: P(class) for each task, with the parameters behind
it. The rest stands here once: reading the input, known labels, deciding ties, the pandas objects
indexed by the user's ids, prediction for new tasks, and the description of workers.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bayescrowd.aggregation.em import Estimate, Incidence, log_floored
from bayescrowd.aggregation.smoothing import mean_rows
from bayescrowd.annotations import Annotations, as_annotations
from bayescrowd.parameters import check_parameters

__all__ = ["Aggregation", "Aggregator", "as_annotations", "decide", "incidence", "worker_quality"]

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
    confusions: Float[np.ndarray, "worker cls observed"]
    """P(observed | true) of each worker."""
    counts: Float[np.ndarray, "worker cls observed"]
    """Expected number of labels behind each confusion entry."""
    log_likelihood: float
    """log P(labels) under priors and confusions, nats."""
    trace: Float[np.ndarray, " iteration"]
    """Objective after each iteration; empty for methods that do not iterate."""
    converged: bool
    """Whether the iteration met its tolerance; True for methods that do not iterate."""


class Aggregator(BaseEstimator):
    """Base of all aggregators; scikit-learn's parameter protocol over annotations.

    Attributes:
        labels_: most probable class of each task; exact ties are broken by the seed.
        probas_: P(class) of each task, tasks x classes.
        priors_: P(class) before seeing labels.
        confusions_: P(observed | true), indexed (worker, true).
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
        found = self._aggregate(ann, fixed)
        if not found.converged and self.tol > 0:
            warnings.warn(
                f"{type(self).__name__} stopped after n_iter={self.n_iter} iterations before it "
                f"settled to tol={self.tol:g}; raise n_iter, or set tol=0 to ask for exactly n_iter"
                f"{self._unsettled_hint}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.classes_, self.workers_ = ann.classes, ann.workers
        self.probas_ = pd.DataFrame(found.posterior, index=ann.tasks, columns=ann.classes)
        self.labels_, self.n_ties_ = decide(self.probas_, self.seed)
        self.priors_ = pd.Series(found.priors, index=ann.classes, name="prior")
        self.confusions_ = confusion_frame(found.confusions, ann)
        self.worker_quality_ = worker_quality(
            found.confusions, found.counts, found.priors, ann.labels_per_worker, ann.workers
        )
        self.log_likelihood_ = found.log_likelihood
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace)
        self.converged_ = found.converged
        self._crowd_confusion = mean_rows(found.counts)
        self._annotations, self._has_gold = ann, bool((fixed >= 0).any())
        return self

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
        n_classes = len(self.classes_)
        fitted = self.confusions_.to_numpy().reshape(-1, n_classes, n_classes)
        confusions = np.concatenate([fitted, self._crowd_confusion[None]])[known]
        estimate = estimate_of(log_floored(confusions), self.priors_.to_numpy())
        posterior = np.empty((ann.n_tasks, n_classes))
        incidence(ann).sweep(estimate, posterior)
        return posterior

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


def incidence(ann: Annotations, fixed: Int[np.ndarray, " item"] | None = None) -> Incidence:
    """The labels as tasks x (worker, label) symbols."""
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
    """Counts per (worker, label) symbol and class as [worker, true, observed]."""
    return counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)


def estimate_of(
    log_confusions: Float[np.ndarray, "worker cls observed"],
    priors: Float[np.ndarray, " cls"],
    penalty: float = 0.0,
    centre: Float[np.ndarray, "row outcome"] | None = None,
) -> Estimate:
    """Log confusion matrices and priors in the form the E-step needs."""
    log_table = log_confusions.transpose(0, 2, 1).reshape(-1, len(priors))
    return Estimate(np.ascontiguousarray(log_table), log_floored(priors), penalty, centre)


def vote_shares(ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Float[np.ndarray, "item cls"]:
    """Share of each task's labels per class, uniform without labels, the truth where known."""
    return with_known(shares(ann.votes.astype(float)), fixed)


def shares(votes: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "item cls"]:
    """Rows scaled to sum to one, uniform where a row is empty."""
    totals = votes.sum(axis=1, keepdims=True)
    return np.where(totals > 0, votes / np.where(totals > 0, totals, 1.0), 1.0 / votes.shape[1])


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
    labels = incidence(ann)
    counts = counts_by_worker(labels.counts(posterior), ann.n_classes)
    totals = counts.sum(axis=2, keepdims=True)
    confusions = np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), mean_rows(counts))
    priors = posterior.mean(axis=0)
    sweep = labels.sweep(estimate_of(log_floored(confusions), priors), np.empty_like(posterior))
    return Aggregation(
        posterior, priors, confusions, counts, sweep.log_likelihood, np.asarray(trace), converged
    )


def worker_quality(
    confusions: Float[np.ndarray, "worker cls observed"],
    counts: Float[np.ndarray, "worker cls observed"],
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
    right = np.einsum("wkk->wk", confusions)
    joint = priors[:, None] * confusions
    observed = joint.sum(axis=1, keepdims=True)
    ratio = log_floored(confusions) - log_floored(observed)
    information = np.maximum((joint * ratio).sum(axis=(1, 2)), 0.0)
    # Mean and variance of each P(k | k) given its counts, from a uniform prior (a beta
    # posterior): the point estimate of a worker with two labels, both wrong, claims certainty.
    row_total = counts.sum(axis=2)
    mean = (np.einsum("wkk->wk", counts) + 1) / (row_total + 2)
    variance = mean * (1 - mean) / (row_total + 3)
    informedness = (mean.sum(axis=1) - 1) / (n_classes - 1)
    upper = informedness + FLAG_STANDARD_ERRORS * np.sqrt(variance.sum(axis=1)) / (n_classes - 1)
    flag = np.select([upper < 0, upper < SPAMMER_INFORMEDNESS], ["adversary", "spammer"], "")
    return pd.DataFrame(
        {
            "accuracy": right @ priors,
            "information": information,
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
