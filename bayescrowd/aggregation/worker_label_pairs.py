"""The pairs of a worker and a label that occur, which are all that a fit has to keep.

The confusion matrices of all workers have workers x classes^2 entries, most of them for answers
that the worker never gave. The pairs (worker, label) that occur in the data are at most as many as
the labels, and what a model knows about the others follows from the crowd. Each pair is a symbol of
`em.py`: its counts under each hidden state are one sparse product, and sums of these counts by
worker or by label are two more.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int

from bayescrowd.aggregation.em import LOG_FLOOR, EMEstimate, Incidence
from bayescrowd.aggregation.worker_rows import find_pairs, silent_workers
from bayescrowd.data.annotations import Annotations

__all__ = ["WorkerLabelPairs"]

_DENSE_KEYS_PER_LABEL = 16
"""Up to this many possible pairs per label, a table of all of them is faster than sorting."""


class WorkerLabelPairs:
    """The pairs (worker, label) that occur, and where they occur.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.

    Attributes:
        worker: worker of each pair, ascending.
        label: class that each pair names.
        keys: worker x n_classes + label of each pair, ascending.
        of_label: position of the pair of each label of `ann`.
        task_of_label: task of each label.
        fixed: class of tasks whose truth is known, -1 elsewhere.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a"], ["b", "a"], ["b", "a"]])
        >>> pairs = WorkerLabelPairs(ann)
        >>> pairs.worker.tolist(), pairs.label.tolist(), pairs.of_label.tolist()
        ([0, 0, 1], [0, 1, 0], [0, 2, 1, 2, 1, 2])
    """

    def __init__(self, ann: Annotations, fixed: Int[np.ndarray, " item"] | None = None) -> None:
        self.fixed = np.full(ann.n_tasks, -1, dtype=np.int32) if fixed is None else fixed
        self.n_workers, self.n_classes, self.n_tasks = ann.n_workers, ann.n_classes, ann.n_tasks
        self.task_of_label, self._offsets = ann.task_codes, ann.task_offsets
        key = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
        n_keys = ann.n_workers * ann.n_classes
        if n_keys <= _DENSE_KEYS_PER_LABEL * ann.n_labels:
            occurs = np.zeros(n_keys, dtype=bool)
            occurs[key] = True
            self.keys = np.flatnonzero(occurs)
            self.of_label = (np.cumsum(occurs, dtype=np.int32) - 1)[key]
        else:
            self.keys, of_label = np.unique(key, return_inverse=True)
            self.of_label = of_label.astype(np.int32)
        self.worker, self.label = np.divmod(self.keys, ann.n_classes)

    def __len__(self) -> int:
        return len(self.keys)

    def labels(self) -> Incidence:
        """The labels as tasks x pairs; where the truth is known, other classes are ruled out."""
        return Incidence(
            self._offsets,
            self.of_label,
            n_symbols=len(self),
            n_classes=self.n_classes,
            fixed=self.fixed,
        )

    def incidence(self, n_states: int) -> Incidence:
        """The labels as tasks x symbols, for models with several states per class.

        State z belongs to class `z % n_classes`. A known truth is one more symbol of its task;
        these symbols, one per class, come after the pairs, and `with_truth` makes their rows.
        """
        task, symbol = self.task_of_label, self.of_label
        if (self.fixed >= 0).any():
            known = np.flatnonzero(self.fixed >= 0).astype(task.dtype)
            task = np.concatenate([task, known])
            symbol = np.concatenate([symbol, len(self) + self.fixed[known]])
            order = np.argsort(task, kind="stable")
            task, symbol = task[order], symbol[order].astype(np.int32)
        counts = np.bincount(task, minlength=self.n_tasks)
        return Incidence(
            np.concatenate([[0], np.cumsum(counts)]),
            symbol,
            n_symbols=len(self) + self.n_classes,
            n_classes=n_states,
        )

    def with_truth(
        self, table: Float[np.ndarray, "symbol state"]
    ) -> Float[np.ndarray, "all_symbols state"]:
        """A table of log P(label | state) with the rows of known truths, for `incidence`.

        A known truth gives states of other classes no probability.
        """
        n_classes = self.n_classes
        same = np.arange(n_classes)[:, None] == np.arange(table.shape[1]) % n_classes
        return np.concatenate([table, np.where(same, 0.0, LOG_FLOOR)])

    def state_posterior(
        self, table: Float[np.ndarray, "symbol state"], log_prior: Float[np.ndarray, " state"]
    ) -> Float[np.ndarray, "item state"]:
        """P(state | labels) of each task, given log P(label | state) of the pairs."""
        posterior = np.empty((self.n_tasks, len(log_prior)))
        estimate = EMEstimate(self.with_truth(table), log_prior, 0.0, None)
        self.incidence(len(log_prior)).sweep(estimate, posterior)
        return posterior

    def find(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Int[np.ndarray, " pair"]:
        """Position of each given pair, -1 where it does not occur; worker -1 stands for nobody."""
        return find_pairs(self.keys, self.n_classes, worker, label)

    def by_worker(self, counts: Float[np.ndarray, "symbol s"]) -> Float[np.ndarray, "worker s"]:
        """Sums over the pairs of each worker."""
        return self._worker_sums @ counts

    def by_label(self, counts: Float[np.ndarray, "symbol s"]) -> Float[np.ndarray, "cls s"]:
        """Sums over the pairs that name each class."""
        return self._label_sums @ counts

    def by_label_of_workers(
        self, values: Float[np.ndarray, "worker s"]
    ) -> Float[np.ndarray, "cls s"]:
        """Sums over the workers who have given each label."""
        return self._givers @ values

    @cached_property
    def labels_per_worker(self) -> Int[np.ndarray, " worker"]:
        """Number of each worker's labels."""
        return np.bincount(self.worker[self.of_label], minlength=self.n_workers)

    @cached_property
    def silent(self) -> Bool[np.ndarray, " worker"]:
        """Whether a worker has no labels."""
        return silent_workers(self.keys, self.n_workers, self.n_classes)

    @cached_property
    def _givers(self) -> scipy.sparse.csr_matrix:
        pairs = (np.ones(len(self)), (self.label, self.worker))
        return scipy.sparse.csr_matrix(pairs, shape=(self.n_classes, self.n_workers))

    @cached_property
    def _worker_sums(self) -> scipy.sparse.csr_matrix:
        return _group_sums(self.worker, self.n_workers)

    @cached_property
    def _label_sums(self) -> scipy.sparse.csr_matrix:
        return _group_sums(self.label, self.n_classes)


def _group_sums(group: Int[np.ndarray, " symbol"], n_groups: int) -> scipy.sparse.csr_matrix:
    ones, place = np.ones(len(group)), np.arange(len(group))
    return scipy.sparse.csr_matrix((ones, (group, place)), shape=(n_groups, len(group)))
