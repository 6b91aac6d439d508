"""A sample of tasks that does not depend on names or on the order of rows.

Tasks are put in order by a fingerprint of their labels and every so-many-th is taken. The
fingerprint is made of what does not change when ids do: a class has that of its number of labels, a
worker that of the numbers of labels per class, a task the sum over its labels of a hash of both.
Tasks of the same fingerprint have, but for accidents, the same labels by the same workers, so that
it does not matter which of them is taken.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt64

from bayescrowd.annotations import Annotations

__all__ = ["sampled_tasks", "task_fingerprints"]


def sampled_tasks(ann: Annotations, n_labels: int) -> Int[np.ndarray, " task"]:
    """Codes of tasks that have about so many labels together, ascending.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.simulate.crowd(1000, 20, labels_per_task=5).annotations
        >>> len(sampled_tasks(ann, 500))
        100
    """
    every = max(1, round(ann.n_labels / n_labels))
    order = np.argsort(task_fingerprints(ann), kind="stable")
    labelled = order[ann.labels_per_task[order] > 0]
    return np.sort(labelled[every // 2 :: every])


def task_fingerprints(ann: Annotations) -> UInt64[np.ndarray, " task"]:
    """A number per task, the same under any ids."""
    of_class = _mixed(np.bincount(ann.label_codes, minlength=ann.n_classes).astype(np.uint64))
    pair = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    n_given = np.bincount(pair, minlength=ann.n_workers * ann.n_classes)
    used = np.flatnonzero(n_given)
    worker, label = np.divmod(used, ann.n_classes)
    habit = _mixed(n_given[used].astype(np.uint64) ^ of_class[label])
    ends = np.searchsorted(worker, np.arange(ann.n_workers + 1))
    of_worker = _mixed(_segment_sums(habit, ends))
    of_label = _mixed(of_worker[ann.worker_codes] + of_class[ann.label_codes])
    return _mixed(_segment_sums(of_label, ann.task_offsets))


def _segment_sums(
    values: UInt64[np.ndarray, " value"], ends: Int[np.ndarray, " segment_plus_1"]
) -> UInt64[np.ndarray, " segment"]:
    """Sums between the ends modulo 2^64, in which order does not matter."""
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return running[ends[1:]] - running[ends[:-1]]


def _mixed(values: UInt64[np.ndarray, " value"]) -> UInt64[np.ndarray, " value"]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
