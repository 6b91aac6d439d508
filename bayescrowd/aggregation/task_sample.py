"""Samples and folds of the tasks that do not depend on ids or on the order of rows.

Tasks are ordered by a fingerprint of their labels, and every n-th task is taken. A fingerprint is a
hash of what does not change when ids do: that of a class depends on its number of labels, that of a
worker on the numbers of labels per class, and that of a task on its answers, each of which is a
class with the workers who gave it. Each further round updates the fingerprints of classes and
workers by those of their labels, and then those of tasks, which tells apart what differs only a few
steps away (colour refinement, Weisfeiler and Leman 1968). Except by coincidence, tasks with the
same fingerprint have the same labels by the same workers, so that either may be taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt64

from bayescrowd.data.annotations import Annotations

__all__ = [
    "Fingerprints",
    "fingerprints",
    "mix_bits",
    "sampled_tasks",
    "task_fingerprints",
    "task_folds",
    "worker_contents",
]

FOLD_ROUNDS = 3
"""Rounds of refinement for folds, because small crowds have many tasks that look alike."""


class Fingerprints(NamedTuple):
    """Numbers that do not depend on ids."""

    task: UInt64[np.ndarray, " task"]
    """Fingerprint of each task."""
    worker: UInt64[np.ndarray, " worker"]
    """Fingerprint of each worker."""
    cls: UInt64[np.ndarray, " cls"]
    """Fingerprint of each class."""


def sampled_tasks(ann: Annotations, n_labels: int) -> Int[np.ndarray, " task"]:
    """Codes of a sample of tasks with about `n_labels` labels in all, ascending.

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
    """Codes of the tasks with labels, ascending, in folds of about the same size.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_folds: number of folds; there are fewer if there are fewer tasks.

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
    """Fingerprint of each task; the arguments are those of `fingerprints`."""
    return fingerprints(ann, fixed, n_rounds).task


def fingerprints(
    ann: Annotations, fixed: Int[np.ndarray, " task"] | None = None, n_rounds: int = 0
) -> Fingerprints:
    """Fingerprints of tasks, workers and classes, which do not depend on ids.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_rounds: number of rounds of refinement.
    """
    of_class = mix_bits(np.bincount(ann.label_codes, minlength=ann.n_classes).astype(np.uint64))
    pair = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    n_given = np.bincount(pair, minlength=ann.n_workers * ann.n_classes)
    used = np.flatnonzero(n_given)
    worker, label = np.divmod(used, ann.n_classes)
    habit = mix_bits(n_given[used].astype(np.uint64) ^ of_class[label])
    of_worker = mix_bits(_sums(habit, worker, ann.n_workers))
    # An answer to a task is a class together with the workers who gave it.
    key = ann.task_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    keys, answer = np.unique(key, return_inverse=True)
    task_of_answer, class_of_answer = np.divmod(keys, ann.n_classes)
    for n_done in range(n_rounds + 1):
        givers = _sums(mix_bits(of_worker)[ann.worker_codes], answer, len(keys))
        of_answer = mix_bits(givers + of_class[class_of_answer])
        of_task = _sums(of_answer, task_of_answer, ann.n_tasks)
        if fixed is not None:
            of_task = of_task + np.where(fixed >= 0, mix_bits(~of_class)[fixed], np.uint64(0))
        of_task = mix_bits(of_task)
        if n_done < n_rounds:
            of_label = mix_bits(of_task[ann.task_codes] + of_answer[answer])
            of_worker = mix_bits(_sums(of_label, ann.worker_codes, ann.n_workers))
            of_class = mix_bits(_sums(of_label, ann.label_codes, ann.n_classes))
    return Fingerprints(of_task, of_worker, of_class)


def worker_contents(ann: Annotations) -> UInt64[np.ndarray, " worker"]:
    """A number per worker, equal for workers who gave the same labels to the same tasks.

    Unlike fingerprints, these numbers depend on ids: only their equality has a meaning.
    """
    pair = ann.task_codes.astype(np.uint64) * np.uint64(ann.n_classes)
    pair += ann.label_codes.astype(np.uint64)
    return _sums(mix_bits(pair), ann.worker_codes, ann.n_workers)


def _order_labelled(
    ann: Annotations, of_task: UInt64[np.ndarray, " task"]
) -> Int[np.ndarray, " labelled"]:
    # Where symmetric tasks have the same fingerprint, those with the same labels stay together.
    pair = ann.worker_codes.astype(np.uint64) * np.uint64(ann.n_classes)
    pair += ann.label_codes.astype(np.uint64)
    order = np.lexsort((_sums(mix_bits(pair), ann.task_codes, ann.n_tasks), of_task))
    return order[ann.labels_per_task[order] > 0]


def _sums(
    values: UInt64[np.ndarray, " value"], group: Int[np.ndarray, " value"], n_groups: int
) -> UInt64[np.ndarray, " group"]:
    """Sums by group modulo 2^64, which do not depend on the order of the values."""
    order = np.argsort(group, kind="stable")
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values[order], dtype=np.uint64)])
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    return running[ends[1:]] - running[ends[:-1]]


def mix_bits(values: UInt64[np.ndarray, " value"]) -> UInt64[np.ndarray, " value"]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
