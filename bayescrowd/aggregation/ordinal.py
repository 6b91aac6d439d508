"""Votes of weighted workers on ordered classes, one binary question per cut between classes.

The methods of Karger, Oh and Shah, of Ghosh, Kale and McAfee and of Dalvi et al. answer yes or no.
With K ordered classes they are asked K - 1 questions, 'is the class above c?': a label above c
counts +1, any other -1. A method gives each worker a weight and each task a score per question, and
the class of a task is the first one that it is not above. This is how Zhang, Chen, Zhou and Jordan
(2014, 'Spectral methods meet EM') compare the methods on data with more than two classes. For
classes without an order, the answer depends on the order in which they are listed.

A sign is not a probability: `probas_` is 1 for the class found. A score of zero says nothing, as
when the workers of a task share no task with the rest of the crowd. The task's own vote shares then
replace it, so that a method that says nothing at all is a majority vote.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.implied import implied_aggregation
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.votes import shares, with_known
from bayescrowd.data.annotations import Annotations

__all__ = ["CutScores", "OrdinalAggregator", "Pairs", "linear_scores", "signed_pairs"]

SILENT = 1e-12
"""A score up to this, where the largest weight is 1, is zero up to rounding."""


class Pairs(NamedTuple):
    """The pairs of a task and a worker who labelled it, in the order of tasks."""

    tasks: Int[np.ndarray, " pair"]
    """Task of each pair."""
    workers: Int[np.ndarray, " pair"]
    """Worker of each pair."""
    offsets: Int[np.ndarray, " task_plus_1"]
    """The pairs of task t are those from `offsets[t]` up to `offsets[t + 1]`."""
    n_labels: Float[np.ndarray, " pair"]
    """Number of labels that the worker gave the task, repeated labels included."""
    signs: Float[np.ndarray, "pair cut"]
    """Labels above each cut minus labels at or below it; +1 or -1 for a single label."""
    n_workers: int
    """Number of workers."""

    def matrix(self, values: Float[np.ndarray, " pair"]) -> scipy.sparse.csr_matrix:
        """One number per pair as a sparse matrix, tasks x workers."""
        shape = (len(self.offsets) - 1, self.n_workers)
        return scipy.sparse.csr_matrix((values, self.workers, self.offsets), shape=shape)


class CutScores(NamedTuple):
    """What a binary method finds out about each cut."""

    scores: Float[np.ndarray, "item cut"]
    """Positive if the class lies above the cut, negative if not, zero for no answer."""
    weights: Float[np.ndarray, "worker cut"]
    """Weight of each worker's vote; negative for workers whose votes count the other way round."""
    offsets: Float[np.ndarray, " cut"]
    """Threshold for the weighted votes on a new task."""
    trace: Float[np.ndarray, " iteration"]
    """Course of the iteration; empty for methods that do not iterate."""
    converged: bool
    """Whether the iteration met its tolerance."""


class OrdinalAggregator(Aggregator):
    """Base class of the methods that vote on cuts; `weights_` holds the workers' weights per cut.

    New tasks are decided by the workers' weights; a worker whom the fit did not see has the mean
    weight over the labels of the fit.
    """

    @abstractmethod
    def _score(self, pairs: Pairs) -> CutScores:
        """Scores and weights for cuts that all have labels on both sides."""

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        pairs = signed_pairs(ann)
        above = np.arange(ann.n_classes - 1) < ann.label_codes.max()
        below = np.arange(ann.n_classes - 1) >= ann.label_codes.min()
        found = _scale(self._score_crossed(pairs, above & below))
        self.weights_ = pd.DataFrame(
            found.weights, index=ann.workers, columns=pd.Index(ann.classes[:-1], name="above")
        )
        self._offsets = found.offsets
        self._mean_weight = ann.labels_per_worker @ found.weights / ann.n_labels
        posterior = with_known(_first_not_above(found.scores, ann.votes), fixed)
        return implied_aggregation(ann, posterior, trace=found.trace, converged=found.converged)

    def _score_crossed(self, pairs: Pairs, crossed: Bool[np.ndarray, " cut"]) -> CutScores:
        """Ask the method about the cuts with labels on both sides; the others need no method."""
        weights = np.ones((pairs.n_workers, len(crossed)))
        offsets = np.zeros(len(crossed))
        scores = linear_scores(pairs, weights, offsets)
        if not crossed.any():
            return CutScores(scores, weights, offsets, np.empty(0), True)
        found = self._score(pairs._replace(signs=np.ascontiguousarray(pairs.signs[:, crossed])))
        scores[:, crossed] = found.scores
        weights[:, crossed] = found.weights
        offsets[crossed] = found.offsets
        return CutScores(scores, weights, offsets, found.trace, found.converged)

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        weights = np.vstack([self.weights_.to_numpy(), self._mean_weight])[known]
        return _first_not_above(linear_scores(signed_pairs(ann), weights, self._offsets), ann.votes)


def signed_pairs(ann: Annotations) -> Pairs:
    """The labels as signed pairs.

    Examples:
        >>> import bayescrowd as bc
        >>> pairs = signed_pairs(bc.Annotations.from_matrix([["a", "c"], [None, "b"]]))
        >>> pairs.signs
        array([[-1., -1.],
               [ 1.,  1.],
               [ 1., -1.]])
    """
    key = ann.task_codes.astype(np.int64) * ann.n_workers + ann.worker_codes
    first = np.flatnonzero(np.diff(key, prepend=-1))
    sides = np.where(ann.label_codes[:, None] > np.arange(ann.n_classes - 1), 1.0, -1.0)
    tasks = ann.task_codes[first]
    counts = np.bincount(tasks, minlength=ann.n_tasks)
    return Pairs(
        tasks,
        ann.worker_codes[first],
        np.concatenate([[0], np.cumsum(counts)]),
        np.diff(first, append=ann.n_labels).astype(float),
        np.add.reduceat(sides, first, axis=0),
        ann.n_workers,
    )


def linear_scores(
    pairs: Pairs, weights: Float[np.ndarray, "worker cut"], offsets: Float[np.ndarray, " cut"]
) -> Float[np.ndarray, "item cut"]:
    """Weighted votes minus the offset; zero for tasks without labels."""
    cuts = range(pairs.signs.shape[1])
    votes = [pairs.matrix(pairs.signs[:, cut]) @ weights[:, cut] for cut in cuts]
    labelled = np.diff(pairs.offsets) > 0
    return np.where(labelled[:, None], np.stack(votes, axis=1) - offsets, 0.0)


def _scale(found: CutScores) -> CutScores:
    """The result with all numbers scaled so that the largest weight is one."""
    largest = np.abs(found.weights).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    return found._replace(
        scores=found.scores / scale, weights=found.weights / scale, offsets=found.offsets / scale
    )


def _first_not_above(
    scores: Float[np.ndarray, "item cut"], votes: Int[np.ndarray, "item cls"]
) -> Float[np.ndarray, "item cls"]:
    """One for the first class that the task is not above; votes decide where a score is zero."""
    vote_shares = shares(votes.astype(float))
    left = vote_shares[:, ::-1].cumsum(axis=1)[:, :0:-1]  # votes for a class or those above it
    by_votes = np.where(left > 0, vote_shares[:, :-1] / np.where(left > 0, left, 1.0), 1.0)
    stops = np.where(np.abs(scores) <= SILENT, by_votes, scores < 0)
    passes = np.cumprod(1 - stops, axis=1)
    posterior = np.empty(votes.shape)
    posterior[:, 0] = stops[:, 0]
    posterior[:, 1:-1] = passes[:, :-1] * stops[:, 1:]
    posterior[:, -1] = passes[:, -1]
    return posterior
