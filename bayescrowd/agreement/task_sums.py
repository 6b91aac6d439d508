"""Sums over tasks, of which every measure of agreement is a function.

A measure needs a few sums over the tasks (`TaskSums`). To resample tasks is to sum them with other
weights, one matrix product for all resamples. Tasks with equally many labels of every class are
interchangeable and make up one unit, with their number as its weight; if there are many kinds of
tasks even so, tasks are put together at random into `MOST_UNITS` units of equal size, which are
resampled instead ("random groups", Wolter, Introduction to Variance Estimation, 2007, chapter 2):
the cost of resampling is bounded, and the standard error that it finds is off by no more than
1 / sqrt(2 MOST_UNITS) = 2 %.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.agreement.class_scale import ClassScale
from bayescrowd.data.annotations import Annotations

__all__ = ["MOST_UNITS", "TaskSums", "TaskUnits", "task_units"]

MOST_UNITS = 2_000
"""Tasks are put together at random if they are of more kinds than this."""

MOST_DENSE = 4_000_000
"""Most entries of a matrix of features that is held without leaving out zeros."""


class TaskSums(NamedTuple):
    """Sums over tasks, for any number of draws of tasks."""

    n_labelled: Float[np.ndarray, "*draw"]
    """Number of tasks with a label."""
    n_compared: Float[np.ndarray, "*draw"]
    """Number of tasks with two labels or more."""
    agreement: Float[np.ndarray, "*draw"]
    """Share of a task's pairs of labels that agree."""
    labels: Float[np.ndarray, "*draw cls"]
    """Number of labels of each class on the compared tasks."""
    shares: Float[np.ndarray, "*draw cls"]
    """Share of each class among a task's labels, on all labelled tasks."""
    disagreement: Float[np.ndarray, "*draw pair"]
    """Squared distances of a task's ordered pairs of labels, over its number of labels less one;
    if distances depend on the draw, as ordinal ones do, the number of pairs of each two classes in
    their place."""
    pairs: Int[np.ndarray, "two pair"]
    """The two classes of each column of `disagreement`; empty unless distances are ordinal."""


class TaskUnits(NamedTuple):
    """Tasks, or several put together, with what they contribute to the sums."""

    features: Any
    """Matrix units x columns, dense or sparse: the fields of `TaskSums` side by side."""
    sizes: Float[np.ndarray, " unit"]
    """Number of interchangeable tasks that each unit stands for."""
    n_classes: int
    """Number of classes."""
    pairs: Int[np.ndarray, "two pair"]
    """As in `TaskSums`."""

    def sums(self, weights: Float[np.ndarray, "draw unit"]) -> TaskSums:
        """Sums over the units with these weights."""
        found = weights @ self.features
        ends = np.cumsum([3, self.n_classes, self.n_classes])
        counts, labels, shares, disagreement = np.split(found, ends, axis=1)
        n_labelled, n_compared, agreement = counts.T
        return TaskSums(n_labelled, n_compared, agreement, labels, shares, disagreement, self.pairs)

    def total(self) -> TaskSums:
        """Sums over all tasks, with one draw."""
        return self.sums(self.sizes[None, :])


def task_units(ann: Annotations, scale: ClassScale, rng: np.random.Generator) -> TaskUnits:
    """The labelled tasks as units that can be resampled.

    Args:
        ann: the labels.
        scale: distances between the classes.
        rng: decides which tasks are put together if they are of very many kinds.
    """
    kind, votes = _kinds_of_tasks(ann)
    per_task = np.asarray(votes.sum(axis=1)).ravel()
    squares = np.asarray(votes.multiply(votes).sum(axis=1)).ravel()
    compared = (per_task >= 2).astype(float)
    agreement = (squares - per_task) / np.maximum(per_task * (per_task - 1), 1.0)
    disagreement, pairs = _disagreement(votes, per_task, squares, scale)
    features = scipy.sparse.hstack(
        [
            np.column_stack([np.ones(len(per_task)), compared, agreement]),
            scipy.sparse.diags_array(compared) @ votes,
            scipy.sparse.diags_array(1 / per_task) @ votes,
            disagreement,
        ]
    ).tocsr()
    sizes = np.bincount(kind).astype(float)
    if len(sizes) > MOST_UNITS:
        group = rng.permutation(len(kind)) % MOST_UNITS
        # Sorted: which tasks come together must not depend on how they are called.
        shape = MOST_UNITS, len(sizes)
        features = (
            scipy.sparse.csr_array((np.ones(len(kind)), (group, np.sort(kind))), shape=shape)
            @ features
        )
        sizes = np.ones(MOST_UNITS)
    if features.shape[0] * features.shape[1] <= MOST_DENSE:
        features = features.toarray()
    return TaskUnits(features, sizes, ann.n_classes, pairs)


def _kinds_of_tasks(ann: Annotations) -> tuple[Int[np.ndarray, " task"], Any]:
    """Kind of each labelled task, and the votes of each kind as a matrix kinds x classes.

    The order of the kinds does not depend on the names of tasks, workers and classes.
    """
    per_task = ann.labels_per_task
    labelled = np.flatnonzero(per_task)
    # Sums of random 64-bit numbers, one per class, are equal for equal votes and, but for a chance
    # of about n^2 / 2^64, for no others. Classes get their numbers by how often they were chosen.
    totals = np.bincount(ann.label_codes, minlength=ann.n_classes)
    squares = np.bincount(
        ann.label_codes, per_task[ann.task_codes].astype(float), minlength=ann.n_classes
    )
    number = np.empty(ann.n_classes, dtype=np.uint64)
    number[np.lexsort((squares, totals))] = np.random.default_rng(0).integers(
        np.iinfo(np.uint64).max, size=ann.n_classes, dtype=np.uint64
    )
    key = np.add.reduceat(number[ann.label_codes], ann.task_offsets[labelled])
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    unit = np.full(ann.n_tasks, -1)
    unit[labelled[first]] = np.arange(len(first))
    row = unit[ann.task_codes]
    kept = row >= 0
    votes = scipy.sparse.csr_array(
        (np.ones(kept.sum()), (row[kept], ann.label_codes[kept])), shape=(len(first), ann.n_classes)
    )
    votes.sum_duplicates()
    return kind, votes


def _disagreement(
    votes: Any,
    per_task: Float[np.ndarray, " unit"],
    squares: Float[np.ndarray, " unit"],
    scale: ClassScale,
) -> tuple[Any, Int[np.ndarray, "two pair"]]:
    """The columns of `TaskSums.disagreement`, and the classes that they compare."""
    others = np.maximum(per_task - 1, 1.0)
    no_pairs = np.zeros((2, 0), dtype=int)
    if scale.metric == "nominal":
        return ((per_task**2 - squares) / others)[:, None], no_pairs
    row = np.repeat(np.arange(len(per_task)), np.diff(votes.indptr))
    if scale.metric == "interval":
        mean = (votes @ scale.numbers) / per_task
        gaps = votes.data * (scale.numbers[votes.indices] - mean[row]) ** 2
        within = np.bincount(row, gaps, minlength=len(per_task))
        return (2 * per_task * within / others)[:, None], no_pairs
    return _pairs_of_classes(votes, row, others)


def _pairs_of_classes(
    votes: Any, row: Int[np.ndarray, " entry"], others: Float[np.ndarray, " unit"]
) -> tuple[Any, Int[np.ndarray, "two pair"]]:
    """Ordered pairs of labels of each two classes, over the number of labels less one."""
    rows, codes, values = [row[:0]], [row[:0].astype(np.int64)], [others[:0]]
    n_classes = votes.shape[1]
    # Entries of a row lie side by side: those `step` apart are compared in one go.
    for step in range(1, int(np.diff(votes.indptr).max(initial=1))):
        here = np.flatnonzero(row[step:] == row[:-step])
        rows.append(row[here])
        low, high = np.sort([votes.indices[here], votes.indices[here + step]], axis=0)
        codes.append(low.astype(np.int64) * n_classes + high)
        values.append(2 * votes.data[here] * votes.data[here + step] / others[row[here]])
    found, column = np.unique(np.concatenate(codes), return_inverse=True)
    counts = scipy.sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), column)), shape=(len(others), len(found))
    )
    return counts, np.stack([found // n_classes, found % n_classes])
