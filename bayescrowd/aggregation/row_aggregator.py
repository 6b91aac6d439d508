"""What the estimators of `row_models.py` share: memory that grows with the labels.

Their workers' matrices are known by a base and the counts of the pairs (worker, label) that occur.
The full matrices, workers x classes^2 numbers, are made when `confusions_` is read; the workers'
quality needs them a block of workers at a time.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning

from bayescrowd.aggregation.em import log_floored
from bayescrowd.aggregation.protocol import (
    Aggregation,
    Aggregator,
    Gold,
    as_annotations,
    confusion_frame,
    decide,
    vote_shares,
    with_known,
    worker_quality,
)
from bayescrowd.aggregation.row_models import (
    Base,
    ClassPrior,
    Counted,
    RowModel,
    by_class,
    fit_rows,
    log_rows,
    log_rows_of_new,
    state_posterior,
)
from bayescrowd.aggregation.symbols import Symbols
from bayescrowd.annotations import Annotations
from bayescrowd.parameters import check_parameters

__all__ = ["CompactAggregation", "RowAggregator", "RowModelAggregator", "posterior_of_new"]

BLOCK_ENTRIES = 1 << 18
"""Entries of confusion matrices that are made at a time."""

Itself = TypeVar("Itself", bound="RowAggregator")


class CompactAggregation(NamedTuple):
    """What a method finds out, the workers' matrices in compact form."""

    posterior: Float[np.ndarray, "item cls"]
    """P(class) of each task."""
    priors: Float[np.ndarray, " cls"]
    """P(class) before seeing labels."""
    base: Base
    """What the workers' rows are pulled toward, a state per class."""
    counts: Float[np.ndarray, "symbol cls"]
    """Expected counts of the pairs that occur."""
    totals: Float[np.ndarray, "worker cls"]
    """Their sums by worker."""
    log_likelihood: float
    """log P(labels) under priors and rows, nats."""
    trace: Float[np.ndarray, " iteration"]
    """Log-likelihood after each iteration, nats."""
    converged: bool
    """Whether the iteration met its tolerance."""


class RowAggregator(Aggregator):
    """Base of the estimators whose workers' matrices stay compact until they are read."""

    @abstractmethod
    def _compact(self, symbols: Symbols, ann: Annotations) -> CompactAggregation:
        """Find the classes."""

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        symbols = Symbols(ann, fixed)
        found = self._compact(symbols, ann)
        workers = np.arange(ann.n_workers)
        return Aggregation(
            found.posterior,
            found.priors,
            _matrices(symbols, found, workers),
            _dense_counts(symbols, found, workers),
            found.log_likelihood,
            found.trace,
            found.converged,
        )

    def fit(self: Itself, data: Any, gold: Gold = None) -> Itself:
        """Learn from labels.

        Args:
            data: `Annotations`, or a table with the columns task, worker and label.
            gold: task -> label for tasks whose truth is known and may be used.
        """
        check_parameters(self)
        ann = as_annotations(data)
        fixed = np.full(ann.n_tasks, -1, dtype=np.int32) if gold is None else ann.code_truth(gold)
        symbols = Symbols(ann, fixed)
        found = self._compact(symbols, ann)
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
        self.worker_quality_ = _quality(symbols, found, ann)
        self.log_likelihood_ = found.log_likelihood
        self.trace_ = found.trace
        self.n_iter_ = len(found.trace)
        self.converged_ = found.converged
        self._found = found._replace(posterior=found.posterior[:0])
        self._annotations, self._has_gold = ann, bool((fixed >= 0).any())
        return self

    @cached_property
    def confusions_(self) -> pd.DataFrame:  # type: ignore[override]
        """P(observed | true), indexed (worker, true)."""
        if "_found" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted yet: no confusions_")
        ann = self._annotations
        workers = np.arange(ann.n_workers)
        return confusion_frame(_matrices(Symbols(ann), self._found, workers), ann)


class RowModelAggregator(RowAggregator):
    """Base of the estimators that fit one model with a state per class."""

    prior: ClassPrior

    @abstractmethod
    def _model(self) -> RowModel:
        """The model, its parameters checked."""

    @abstractmethod
    def _keep(self, base: Any, ann: Annotations) -> None:
        """Set the attributes that are the model's own."""

    def _compact(self, symbols: Symbols, ann: Annotations) -> CompactAggregation:
        model = self._model()
        fit = fit_rows(
            model,
            symbols,
            symbols.incidence(ann.n_classes),
            vote_shares(ann, symbols.fixed),
            prior=self.prior,
            n_iter=self.n_iter,
            tol=self.tol,
        )
        self._keep(fit.base, ann)
        priors = np.exp(fit.log_prior)
        return CompactAggregation(
            posterior=with_known(fit.posterior, symbols.fixed),
            priors=priors / priors.sum(),
            base=fit.base,
            counts=fit.counts,
            totals=fit.totals,
            log_likelihood=float(fit.trace[-1]),
            trace=fit.trace,
            converged=fit.converged,
        )

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        log_prior = log_floored(self._found.priors)
        symbols = Symbols(self._annotations)
        return posterior_of_new(self._found, log_prior, symbols, Symbols(ann), known)


def posterior_of_new(
    fit: Counted,
    log_prior: Float[np.ndarray, " state"],
    symbols: Symbols,
    new: Symbols,
    known: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, "item cls"]:
    """P(class) of new tasks under a fit.

    Args:
        fit: the fit.
        log_prior: log P(state).
        symbols: the pairs of its labels.
        new: the pairs of the new ones.
        known: each new worker's place in the fit, -1 if unseen.
    """
    posterior = state_posterior(new, log_rows_of_new(fit, symbols, new, known), log_prior)
    return by_class(posterior, new.n_classes)


def _matrices(
    symbols: Symbols, found: CompactAggregation, workers: Int[np.ndarray, " w"]
) -> Float[np.ndarray, "w cls observed"]:
    """Confusion matrices of some workers."""
    n_classes = symbols.n_classes
    worker = np.repeat(workers, n_classes)
    label = np.tile(np.arange(n_classes), len(workers))
    place = symbols.find(worker, label)
    counts = np.where(place[:, None] >= 0, found.counts[place], 0.0)
    rows = np.exp(log_rows(found.base, counts, found.totals, worker, label))
    matrices = rows.reshape(len(workers), n_classes, n_classes).transpose(0, 2, 1)
    return matrices / matrices.sum(axis=2, keepdims=True)


def _dense_counts(
    symbols: Symbols, found: CompactAggregation, workers: Int[np.ndarray, " w"]
) -> Float[np.ndarray, "w cls observed"]:
    n_classes = symbols.n_classes
    first, last = np.searchsorted(symbols.worker, [workers[0], workers[-1] + 1])
    dense = np.zeros((len(workers), n_classes, n_classes))
    of_block = slice(int(first), int(last))
    dense[symbols.worker[of_block] - workers[0], :, symbols.label[of_block]] = found.counts[
        of_block
    ]
    return dense


def _quality(symbols: Symbols, found: CompactAggregation, ann: Annotations) -> pd.DataFrame:
    size = max(1, BLOCK_ENTRIES // ann.n_classes**2)
    blocks = []
    for first in range(0, ann.n_workers, size):
        workers = np.arange(first, min(first + size, ann.n_workers))
        blocks.append(
            worker_quality(
                _matrices(symbols, found, workers),
                _dense_counts(symbols, found, workers),
                found.priors,
                ann.labels_per_worker[workers],
                ann.workers[workers],
            )
        )
    return pd.concat(blocks) if len(blocks) > 1 else blocks[0]
