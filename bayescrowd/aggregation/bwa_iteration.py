"""The iteration of BWA: precisions of workers and weighted averages of votes in turn.

The equations are those of `bwa`, which has the estimator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.votes import shares, with_known
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import Course, Step, settle

__all__ = ["BWAState", "Judgements", "Precision", "weighted_average"]

LEAST_VARIANCE = 1e-6
"""Least variance of a judgement in the prior of precisions: one in a million differs."""

SMALL = 1e-5
"""Changes are relative to z plus this, so that a z near 0 may settle."""


class BWAState(NamedTuple):
    """Where the iteration stands."""

    z: Float[np.ndarray, "item cls"]
    """How far each task belongs to each class."""
    mu: Float[np.ndarray, " cls"]
    """Mean of z over tasks with labels."""
    precision: Float[np.ndarray, "worker cls"]
    """Weight of each worker's vote on each class (v)."""
    errors: Float[np.ndarray, "worker cls"]
    """Sum of squared differences between z and the worker's votes."""
    settled: Bool[np.ndarray, " cls"]
    """Classes whose z has settled, and is kept."""


class Judgements:
    """Who judged which task, and which classes they named.

    Args:
        ann: the labels. Repeated labels of one task by one worker are one judgement.

    Attributes:
        made: 1 where a worker judged a task, tasks x workers.
        per_worker: number of each worker's judgements.
        per_task: number of each task's judgements.
    """

    def __init__(self, ann: Annotations) -> None:
        n_classes = ann.n_classes
        self._shape = ann.n_tasks, ann.n_workers, n_classes
        self._task, self._worker = (
            ann.task_codes.astype(np.int64),
            ann.worker_codes.astype(np.int64),
        )
        self._label = ann.label_codes
        place = judgement = self._task * ann.n_workers + self._worker
        # Rows are mostly in the order of tasks and workers already, without repeated labels.
        if not (np.diff(judgement) > 0).all():
            named, self._label = np.divmod(
                np.unique(judgement * n_classes + self._label), n_classes
            )
            self._task, self._worker = np.divmod(named, ann.n_workers)
            place = np.unique(named)
        rows, columns = np.divmod(place, ann.n_workers)
        ones = np.ones(len(place))
        self.made = scipy.sparse.csr_matrix((ones, (rows, columns)), shape=self._shape[:2])
        self.per_worker = np.bincount(columns, minlength=ann.n_workers).astype(float)
        self.per_task = np.bincount(rows, minlength=ann.n_tasks).astype(float)

    def shares(self) -> Float[np.ndarray, "item cls"]:
        """Share of each task's judgements that name each class; 0 for a task without."""
        named = self._by_task(np.ones(len(self._task)))
        return named / np.maximum(self.per_task, 1.0)[:, None]

    def errors(self, z: Float[np.ndarray, "item cls"]) -> Float[np.ndarray, "worker cls"]:
        """Sum of squared differences between z and each worker's votes."""
        n_workers, n_classes = self._shape[1:]
        # (z - y)^2 = z^2 + y (1 - 2 z) for y = 0 or 1: the second part is there for named classes.
        parts = 1.0 - 2.0 * z[self._task, self._label]
        cell = self._worker * n_classes + self._label
        named = np.bincount(cell, parts, minlength=n_workers * n_classes)
        squares = self.made.T @ z**2 + named.reshape(n_workers, n_classes)
        return np.maximum(squares, 0.0)  # no -1e-17 from rounding

    def average(
        self,
        precision: Float[np.ndarray, "worker cls"],
        mu: Float[np.ndarray, " cls"],
        task_strength: float,
    ) -> Float[np.ndarray, "item cls"]:
        """Weighted average of mu and the votes on each task."""
        named = self._by_task(precision[self._worker, self._label])
        return (task_strength * mu + named) / (task_strength + self.made @ precision)

    def _by_task(self, weights: Float[np.ndarray, " named"]) -> Float[np.ndarray, "item cls"]:
        n_tasks, _, n_classes = self._shape
        cell = self._task * n_classes + self._label
        return np.bincount(cell, weights, minlength=n_tasks * n_classes).reshape(n_tasks, n_classes)


class Precision(NamedTuple):
    """What a fit says about the votes on new tasks."""

    table: Float[np.ndarray, "worker_plus_1 cls"]
    """Weight of each worker's vote on each class; last, the mean over judgements for strangers."""
    mu: Float[np.ndarray, " cls"]
    """Mean of z over tasks."""

    @classmethod
    def of(cls, state: BWAState, votes: Judgements) -> Precision:
        """The precisions of a state; a worker without judgements has the mean over all."""
        given = votes.per_worker
        mean = (given @ state.precision) / given.sum()
        table = np.where(given[:, None] > 0, state.precision, mean)
        return cls(np.concatenate([table, mean[None]]), state.mu)

    def average(
        self, votes: Judgements, known: Int[np.ndarray, " worker"], *, task_strength: float = 1.0
    ) -> Float[np.ndarray, "item cls"]:
        """P(class) of new tasks; `known` has the code of each worker in the fit, or -1."""
        return shares(votes.average(self.table[known], self.mu, task_strength))


def weighted_average(
    votes: Judgements,
    fixed: Int[np.ndarray, " item"],
    *,
    strength: float = 15.0,
    task_strength: float = 1.0,
    n_iter: int = 500,
    tol: float = 1e-3,
) -> Course[BWAState]:
    """Iterate from vote shares until every class has settled; the arguments are those of `BWA`.

    Args:
        votes: the judgements.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        strength: number of judgements that the prior of a worker's precision is worth.
        task_strength: precision of the prior of a task.
        n_iter: largest number of iterations.
        tol: largest relative change of z in a class that has settled; 0 runs n_iter.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("aaa")])
        >>> course = weighted_average(Judgements(ann), np.full(3, -1))
        >>> course.state.z.round(2)[1:]
        array([[0.02, 0.98],
               [0.98, 0.02]])
    """
    plain = votes.shares()
    start = with_known(plain, fixed)
    labelled = votes.per_task > 0
    rate = _prior_rate(votes, plain, strength)

    def step(state: BWAState) -> Step[BWAState]:
        mu = state.z[labelled].mean(axis=0)
        precision = (strength + votes.per_worker)[:, None] / (rate + state.errors)
        z = with_known(votes.average(precision, mu, task_strength), fixed)
        z = np.where(state.settled, state.z, z)
        errors = votes.errors(z)
        change = (np.abs(z - state.z) / (SMALL + np.abs(z))).max(axis=0)
        objective = (strength + votes.per_worker)[:, None] * np.log(precision) / 2
        objective -= precision * (rate + errors) / 2
        spread = task_strength * ((z[labelled] - mu) ** 2).sum() / 2
        settled = change < tol
        after = BWAState(z, mu, precision, errors, settled)
        return Step(after, float(objective.sum() - spread), float(change.max()))

    n_classes = start.shape[1]
    nothing = np.zeros(n_classes, dtype=bool)
    errors = votes.errors(start)
    before = BWAState(start, np.zeros(n_classes), np.zeros_like(errors), errors, nothing)
    return settle(step, before, n_iter=n_iter, tol=tol)


def _prior_rate(
    votes: Judgements, plain: Float[np.ndarray, "item cls"], strength: float
) -> Float[np.ndarray, " cls"]:
    """Second parameter of the prior of precisions (b), per class."""
    variance = votes.per_task @ (plain * (1.0 - plain)) / votes.per_task.sum()
    correction = 4.0 * (1.0 - 1.0 / plain.shape[1])
    return strength * np.maximum(variance * correction, LEAST_VARIANCE)
