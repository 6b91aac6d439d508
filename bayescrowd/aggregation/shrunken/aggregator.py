"""What the estimators with a base share: memory that grows with the labels only.

A base and the counts of the pairs (worker, label) that occur determine the workers' matrices. Where
no closed form is known for such rows, the quality of workers is computed from whole matrices, one
block of workers at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.shrunken.base import Base, Counted, log_rows_at
from bayescrowd.aggregation.shrunken.rows import ClassPrior, RowModel, fit_rows
from bayescrowd.aggregation.votes import vote_shares, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import WorkerRows, find_pairs
from bayescrowd.data.annotations import Annotations

__all__ = ["CompactAggregation", "ModelRows", "RowAggregator", "RowModelAggregator"]


class CompactAggregation(NamedTuple):
    """What a method finds out, with the workers' matrices in compact form."""

    posterior: Float[np.ndarray, "item cls"]
    """P(class) of each task."""
    priors: Float[np.ndarray, " cls"]
    """P(class) before seeing labels."""
    base: Base
    """What the workers' rows are pulled toward, with one state per class."""
    counts: Float[np.ndarray, "symbol cls"]
    """Expected counts of the pairs that occur."""
    totals: Float[np.ndarray, "worker cls"]
    """Sums of the counts by worker."""
    log_likelihood: float
    """log P(labels) under priors and rows, nats."""
    trace: Float[np.ndarray, " iteration"]
    """Log-likelihood after each iteration, nats."""
    converged: bool
    """Whether the iteration met its tolerance."""


class RowAggregator(Aggregator):
    """Base class of the estimators whose rows are pulled toward a base."""

    @abstractmethod
    def _compact(self, pairs: WorkerLabelPairs, ann: Annotations) -> CompactAggregation:
        """Find the classes."""

    def _worker_rows(self, pairs: WorkerLabelPairs, found: CompactAggregation) -> WorkerRows:
        """The rows of all pairs of a worker and a label."""
        return ModelRows(pairs, found)

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = WorkerLabelPairs(ann, fixed)
        found = self._compact(pairs, ann)
        return Aggregation(
            found.posterior,
            found.priors,
            self._worker_rows(pairs, found),
            pairs,
            found.counts,
            found.log_likelihood,
            found.trace,
            found.converged,
        )


class ModelRows(WorkerRows):
    """Rows by equation 1 of `base.py`, from a base and counts."""

    def __init__(self, pairs: WorkerLabelPairs, found: Counted) -> None:
        self._keys, self.n_workers, self._found = pairs.keys, pairs.n_workers, found
        label = np.arange(pairs.n_classes)
        self.stranger = found.base.rows(np.full_like(label, -1), label).T

    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """Equation 1; a new worker has the base of new workers."""
        place = find_pairs(self._keys, self.n_classes, worker, label)
        return np.exp(log_rows_at(self._found, place, worker, label))

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> WorkerRows:
        """Not possible: EM starts from the votes, which name the classes."""
        raise ValueError("the classes are named by the votes and cannot be renamed")


class RowModelAggregator(RowAggregator):
    """Base class of the estimators that fit one model with one state per class."""

    prior: ClassPrior
    _state_classes = (*RowAggregator._state_classes, CompactAggregation, ModelRows)

    @abstractmethod
    def _model(self) -> RowModel:
        """The model to fit."""

    @abstractmethod
    def _keep(self, base: Any, ann: Annotations) -> None:
        """Set the fitted attributes that only this model has."""

    def _compact(self, pairs: WorkerLabelPairs, ann: Annotations) -> CompactAggregation:
        model = self._model()
        fit = fit_rows(
            model,
            pairs,
            pairs.incidence(ann.n_classes),
            vote_shares(ann, pairs.fixed),
            prior=self.prior,
            n_iter=self.n_iter,
            tol=self.tol,
        )
        self._keep(fit.base, ann)
        priors = np.exp(fit.log_prior)
        found = CompactAggregation(
            posterior=with_known(fit.posterior, pairs.fixed),
            priors=priors / priors.sum(),
            base=fit.base,
            counts=fit.counts,
            totals=fit.totals,
            log_likelihood=float(fit.trace[-1]),
            trace=fit.trace,
            converged=fit.converged,
        )
        self._found = found._replace(posterior=found.posterior[:0].copy())
        return found
