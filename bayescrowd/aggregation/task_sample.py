"""Samples and parts of the tasks that do not depend on names or on the order of rows.

Tasks are put in order by a fingerprint of their labels; every so-many-th is taken. The fingerprint
is made of what does not change when ids do: a class has that of its number of labels, a worker that
of the numbers of labels per class, a task the sum of hashes of its answers, each of a class and of
those who give it. Each further round gives classes and workers the sum over their labels of a hash
of the fingerprints so far, and tasks that of both again, which tells apart what differs only a few
steps away (colour refinement, Weisfeiler and Leman 1968). Tasks of the same fingerprint have, but
for accidents, the same labels by the same workers, so that it does not matter which is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt64

from bayescrowd.data.annotations import Annotations

__all__ = [
    "Fingerprints",
    "fingerprints",
    "sampled_tasks",
    "task_fingerprints",
    "task_folds",
    "worker_contents",
]

FOLD_ROUNDS = 3
"""Of refinement: small crowds have many tasks that look alike at first sight."""


class Fingerprints(NamedTuple):
    """Numbers that are the same under any ids."""

    task: UInt64[np.ndarray, " task"]
    """Of each task."""
    worker: UInt64[np.ndarray, " worker"]
    """Of each worker."""
    cls: UInt64[np.ndarray, " cls"]
    """Of each class."""


def sampled_tasks(ann: Annotations, n_labels: int) -> Int[np.ndarray, " task"]:
    """Codes of tasks that have about so many labels together, ascending.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.simulate.crowd(1000, 20, labels_per_task=5).annotations
        >>> len(sampled_tasks(ann, 500))
        100
    """
    every = max(1, round(ann.n_labels / n_labels))
    return np.sort(_order_labelled(ann, task_fingerprints(ann))[every // 2 :: every])


def task_folds(
    ann: Annotations, fixed: Int[np.ndarray, " task"], n_folds: int
) -> list[Int[np.ndarray, " _part"]]:
    """The tasks with labels in parts of about the same size, their codes ascending.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_folds: number of parts; there are fewer if there are fewer tasks.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.simulate.crowd(100, 20, labels_per_task=5).annotations
        >>> [len(fold) for fold in task_folds(ann, np.full(100, -1), 3)]
        [34, 33, 33]
    """
    order = _order_labelled(ann, task_fingerprints(ann, fixed, FOLD_ROUNDS))
    return [np.sort(order[i::n_folds]) for i in range(min(n_folds, len(order)))]


def task_fingerprints(
    ann: Annotations, fixed: Int[np.ndarray, " task"] | None = None, n_rounds: int = 0
) -> UInt64[np.ndarray, " task"]:
    """A number per task, the same under any ids; the arguments are those of `fingerprints`."""
    return fingerprints(ann, fixed, n_rounds).task


def fingerprints(
    ann: Annotations, fixed: Int[np.ndarray, " task"] | None = None, n_rounds: int = 0
) -> Fingerprints:
    """A number per task, per worker and per class, the same under any ids.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_rounds: rounds of refinement.
    """
    of_class = _mix(np.bincount(ann.label_codes, minlength=ann.n_classes).astype(np.uint64))
    pair = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    n_given = np.bincount(pair, minlength=ann.n_workers * ann.n_classes)
    used = np.flatnonzero(n_given)
    worker, label = np.divmod(used, ann.n_classes)
    habit = _mix(n_given[used].astype(np.uint64) ^ of_class[label])
    of_worker = _mix(_sums(habit, worker, ann.n_workers))
    # A task's answers: the classes that it is given, each with those who give it.
    key = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    keys, answer = np.unique(key, return_inverse=True)
    task_of_answer, class_of_answer = np.divmod(keys, ann.n_classes)
    for n_done in range(n_rounds + 1):
        givers = _sums(_mix(of_worker)[ann.worker_codes], answer, len(keys))
        of_answer = _mix(givers + of_class[class_of_answer])
        of_task = _sums(of_answer, task_of_answer, ann.n_tasks)
        if fixed is not None:
            of_task = of_task + np.where(fixed >= 0, _mix(~of_class)[fixed], np.uint64(0))
        of_task = _mix(of_task)
        if n_done < n_rounds:
            of_label = _mix(of_task[ann.task_codes] + of_answer[answer])
            of_worker = _mix(_sums(of_label, ann.worker_codes, ann.n_workers))
            of_class = _mix(_sums(of_label, ann.label_codes, ann.n_classes))
    return Fingerprints(of_task, of_worker, of_class)


def worker_contents(ann: Annotations) -> UInt64[np.ndarray, " worker"]:
    """A number per worker, equal where workers gave the same labels to the same tasks.

    Unlike a fingerprint it depends on ids: only whether two are equal means something.
    """
    pair = ann.task_codes.astype(np.uint64) * np.uint64(ann.n_classes)
    pair += ann.label_codes.astype(np.uint64)
    return _sums(_mix(pair), ann.worker_codes, ann.n_workers)


def _order_labelled(
    ann: Annotations, of_task: UInt64[np.ndarray, " task"]
) -> Int[np.ndarray, " labelled"]:
    # Where symmetry leaves different tasks alike, those with the same labels stay together.
    pair = ann.worker_codes.astype(np.uint64) * np.uint64(ann.n_classes)
    pair += ann.label_codes.astype(np.uint64)
    order = np.lexsort((_sums(_mix(pair), ann.task_codes, ann.n_tasks), of_task))
    return order[ann.labels_per_task[order] > 0]


def _sums(
    values: UInt64[np.ndarray, " value"], group: Int[np.ndarray, " value"], n_groups: int
) -> UInt64[np.ndarray, " group"]:
    """Sums by group modulo 2^64, in which order does not matter."""
    order = np.argsort(group, kind="stable")
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values[order], dtype=np.uint64)])
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    return running[ends[1:]] - running[ends[:-1]]


def _mix(values: UInt64[np.ndarray, " value"]) -> UInt64[np.ndarray, " value"]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
