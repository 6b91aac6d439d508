"""What the estimators of `rows.py` share: memory that grows with the labels.

Their workers' matrices are known by a base and the counts of the pairs (worker, label) that occur.
Where no closed form is known for such rows, the workers' quality takes whole matrices a block of
workers at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.shrunken.rows import (
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
from bayescrowd.aggregation.votes import vote_shares, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.aggregation.worker_rows import WorkerRows, find_pairs
from bayescrowd.data.annotations import Annotations

__all__ = [
    "CompactAggregation",
    "ModelRows",
    "RowAggregator",
    "RowModelAggregator",
    "posterior_of_new",
]


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
    """Base of the estimators of `rows.py`."""

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
    """Rows by equation 1 of `rows.py`, from the base and the counts beside it."""

    def __init__(self, pairs: WorkerLabelPairs, found: Counted) -> None:
        self._keys, self.n_workers = pairs.keys, pairs.n_workers
        self._base, self._counts, self._totals = found.base, found.counts, found.totals
        label = np.arange(pairs.n_classes)
        self.stranger = found.base.rows(np.full_like(label, -1), label).T

    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """Equation 1; a stranger has the base of strangers."""
        place = find_pairs(self._keys, self.n_classes, worker, label)
        counts = np.where(place[:, None] >= 0, self._counts[place], 0.0)
        return np.exp(log_rows(self._base, counts, self._totals, worker, label))

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> WorkerRows:
        """Models with a base start from the votes, which name the classes."""
        raise ValueError("the votes have named the classes")


class RowModelAggregator(RowAggregator):
    """Base of the estimators that fit one model with a state per class."""

    prior: ClassPrior

    @abstractmethod
    def _model(self) -> RowModel:
        """The model, its parameters checked."""

    @abstractmethod
    def _keep(self, base: Any, ann: Annotations) -> None:
        """Set the attributes that are the model's own."""

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


def posterior_of_new(
    fit: Counted,
    log_prior: Float[np.ndarray, " state"],
    pairs: WorkerLabelPairs,
    new: WorkerLabelPairs,
    known: Int[np.ndarray, " worker"],
) -> Float[np.ndarray, "item cls"]:
    """P(class) of new tasks under a fit.

    Args:
        fit: the fit.
        log_prior: log P(state).
        pairs: the pairs of its labels.
        new: the pairs of the new ones.
        known: each new worker's place in the fit, -1 if unseen.
    """
    posterior = state_posterior(new, log_rows_of_new(fit, pairs, new, known), log_prior)
    return by_class(posterior, new.n_classes)
