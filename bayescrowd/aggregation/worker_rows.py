"""Workers' confusion matrices in compact form.

All matrices together have workers x classes^2 entries, most of them for answers that the worker
never gave. What an estimator knows about those follows from a few numbers:

* `SparseRows`: a row of the crowd's matrix, scaled by a factor of the worker;
* `CoinRows`: only whether the label is right;
* `DenseRows`: the matrices themselves, where there is nothing simpler.

Each returns rows for given pairs of a worker and a label, whole matrices for a few workers at a
time, and the information of a worker's labels about the truth. The first two take time and memory
in proportion to pairs x classes, where pairs are the (worker, label) that occur, at most one per
label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import xlogy

from bayescrowd.aggregation.em import LOG_FLOOR

__all__ = [
    "CoinRows",
    "DenseRows",
    "SparseRows",
    "WorkerRows",
    "blocks",
    "find_pairs",
    "silent_workers",
]

BLOCK_ENTRIES = 1 << 18
"""Number of entries of tables and matrices that are computed at a time."""


def blocks(n_rows: int, row_entries: int) -> Iterator[slice]:
    """Consecutive rows of a table in blocks of about `BLOCK_ENTRIES` entries.

    Examples:
        >>> [(part.start, part.stop) for part in blocks(5, BLOCK_ENTRIES // 2)]
        [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK_ENTRIES // row_entries)
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


class WorkerRows(ABC):
    """P(label | class) of every worker.

    Attributes:
        stranger: the matrix of a worker about whom nothing is known, [true, observed].
        n_workers: number of workers.
    """

    stranger: Float[np.ndarray, "cls observed"]
    n_workers: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.stranger)

    @abstractmethod
    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """P(label | class) of pairs of a worker and a label; worker -1 is a stranger."""

    @abstractmethod
    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> WorkerRows:
        """The same rows with class `hidden[k]` renamed to class k."""

    def matrices(self, workers: Int[np.ndarray, " some"]) -> Float[np.ndarray, "some cls observed"]:
        """Confusion matrices of some workers, [worker, true, observed]."""
        n_classes = self.n_classes
        worker = np.repeat(workers, n_classes)
        label = np.tile(np.arange(n_classes), len(workers))
        rows = self.at(worker, label).reshape(len(workers), n_classes, n_classes)
        matrices = rows.transpose(0, 2, 1)
        return matrices / matrices.sum(axis=2, keepdims=True)

    def right(self) -> Float[np.ndarray, "worker cls"]:
        """P(k | k) of each worker."""
        n_classes = self.n_classes
        right = np.empty((self.n_workers, n_classes))
        for part in blocks(self.n_workers, n_classes**2):
            right[part] = np.einsum("wkk->wk", self.matrices(np.arange(part.start, part.stop)))
        return right

    def information(self, priors: Float[np.ndarray, " cls"]) -> Float[np.ndarray, " worker"]:
        """Mutual information between each worker's label and the truth, nats."""
        parts = [
            matrix_information(self.matrices(np.arange(part.start, part.stop)), priors)
            for part in blocks(self.n_workers, self.n_classes**2)
        ]
        return np.concatenate(parts)


class DenseRows(WorkerRows):
    """Whole matrices, for methods that need workers x classes^2 numbers anyway."""

    def __init__(
        self,
        matrices: Float[np.ndarray, "worker cls observed"],
        stranger: Float[np.ndarray, "cls observed"],
    ) -> None:
        self._matrices, self.stranger = matrices, stranger
        self.n_workers = len(matrices)

    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """Entries of the matrices."""
        known = self._matrices[worker, :, label]
        return np.where(worker[:, None] >= 0, known, self.stranger[:, label].T)

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> DenseRows:
        """Rows in another order."""
        return DenseRows(self._matrices[:, hidden], self.stranger[hidden])


class SparseRows(WorkerRows):
    """Rows that differ from the crowd's only at the labels that the worker gave.

    A worker w who has given label l has their own entries for it; otherwise

        P(l | k) = scale_wk base_kl,    or diagonal_wk where l = k, if there is a diagonal.

    Args:
        keys: worker x n_classes + label of the pairs that occur, ascending.
        log_seen: log P(label | class) of these pairs.
        scale: factor of the base's row k for each worker.
        base: the crowd's rows.
        stranger: the matrix of strangers, and of workers without labels.
        diagonal: P(k | k) of labels that the worker has not given; None takes it from the base.
    """

    def __init__(
        self,
        keys: Int[np.ndarray, " symbol"],
        log_seen: Float[np.ndarray, "symbol cls"],
        *,
        scale: Float[np.ndarray, "worker cls"],
        base: Float[np.ndarray, "cls observed"],
        stranger: Float[np.ndarray, "cls observed"],
        diagonal: Float[np.ndarray, "worker cls"] | None = None,
    ) -> None:
        self.stranger, self.n_workers = stranger, len(scale)
        self._keys, self._log_seen = keys, log_seen
        self._scale, self._base, self._diagonal = scale, base, diagonal

    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """The worker's own entries where the pair occurs, those of the base elsewhere."""
        rows = self._unseen_rows(worker, label)
        place = find_pairs(self._keys, self.n_classes, worker, label)
        seen = np.flatnonzero(place >= 0)
        log_seen = self._log_seen[place[seen]]
        rows[seen] = np.where(log_seen > LOG_FLOOR + 1e-6, np.exp(log_seen), 0.0)
        unknown = np.flatnonzero((worker < 0) | self._silent[worker])
        rows[unknown] = self.stranger[:, label[unknown]].T
        return rows

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> SparseRows:
        """The rows with their classes in another order; the labels keep their names."""
        if self._diagonal is not None:
            raise ValueError("rows with a diagonal cannot be renamed: it names their classes")
        copy = SparseRows.__new__(SparseRows)
        copy.__dict__ = self.__dict__ | {
            "stranger": self.stranger[hidden],
            "_log_seen": self._log_seen[:, hidden],
            "_scale": self._scale[:, hidden],
            "_base": self._base[hidden],
        }
        return copy

    def right(self) -> Float[np.ndarray, "worker cls"]:
        """P(k | k) of each worker."""
        n_classes = self.n_classes
        right = self._scale * np.diagonal(self._base)
        if self._diagonal is not None:
            right = self._diagonal.copy()
        worker, label = np.divmod(self._keys, n_classes)
        right[worker, label] = np.exp(self._log_seen[np.arange(len(label)), label])
        right[self._silent] = np.diagonal(self.stranger)
        return right

    def information(self, priors: Float[np.ndarray, " cls"]) -> Float[np.ndarray, " worker"]:
        """Sum of P(k) P(l | k) log P(l | k) minus the sum of P(l) log P(l).

        Both sums are first computed as if the worker had given no label, for which the base has a
        closed form, and then corrected at the labels that the worker gave.
        """
        n_classes = self.n_classes
        base, scale = self._base, self._scale
        if self._diagonal is not None:
            base = base * (1 - np.eye(n_classes))
        # sum_l s b_l log(s b_l) = s log s sum_l b_l + s sum_l b_l log b_l
        total = xlogy(scale, scale) @ (priors * base.sum(axis=1))
        total += scale @ (priors * xlogy(base, base).sum(axis=1))
        observed = (scale * priors) @ base
        if self._diagonal is not None:
            total += xlogy(self._diagonal, self._diagonal) @ priors
            observed += self._diagonal * priors
        worker, label = np.divmod(self._keys, n_classes)
        correction = np.empty(len(self._keys))
        for part in blocks(len(self._keys), n_classes):
            log_seen = self._log_seen[part]
            seen = np.exp(log_seen)
            unseen = self._unseen_rows(worker[part], label[part])
            correction[part] = (seen * log_seen - xlogy(unseen, unseen)) @ priors
            observed[worker[part], label[part]] = seen @ priors
        total += np.bincount(worker, correction, minlength=self.n_workers)
        total -= xlogy(observed, observed).sum(axis=1)
        total[self._silent] = matrix_information(self.stranger[None], priors)[0]
        return total

    @property
    def _silent(self) -> Bool[np.ndarray, " worker"]:
        """Whether the worker has no labels."""
        return silent_workers(self._keys, self.n_workers, self.n_classes)

    def _unseen_rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """Entries of labels that the worker has not given."""
        rows = self._scale[worker] * self._base.T[label]
        if self._diagonal is not None:
            rows[np.arange(len(label)), label] = self._diagonal[worker, label]
        return rows


class CoinRows(WorkerRows):
    """Rows in which a label's probability depends only on whether it is right.

    Args:
        right: P(l | l) of each label l; one column if it is the same for all labels.
        wrong: P(l | k) of each label l under any other class k; one column likewise.
        stranger: the matrix of strangers, and of workers without labels.
        silent: whether a worker has no labels.
    """

    def __init__(
        self,
        right: Float[np.ndarray, "worker _label"],
        wrong: Float[np.ndarray, "worker _label"],
        *,
        stranger: Float[np.ndarray, "cls observed"],
        silent: Bool[np.ndarray, " worker"],
    ) -> None:
        self._right, self._wrong = right, wrong
        self.stranger, self._silent = stranger, silent
        self.n_workers = len(right)

    def at(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair cls"]:
        """The probability of a right label under its class, of a wrong one under the others."""
        column = np.minimum(label, self._right.shape[1] - 1)
        rows = np.repeat(self._wrong[worker, column][:, None], self.n_classes, axis=1)
        rows[np.arange(len(label)), label] = self._right[worker, column]
        unknown = np.flatnonzero((worker < 0) | self._silent[worker])
        rows[unknown] = self.stranger[:, label[unknown]].T
        return rows

    def rename_classes(self, hidden: Int[np.ndarray, " cls"]) -> CoinRows:
        """Swap two classes: right answers become wrong, and wrong ones right."""
        if (hidden == np.arange(len(hidden))).all():
            return self
        if self.n_classes != 2:
            raise ValueError("coins name their classes: only two classes can be swapped")
        return CoinRows(
            self._wrong, self._right, stranger=self.stranger[hidden], silent=self._silent
        )

    def right(self) -> Float[np.ndarray, "worker cls"]:
        """P(k | k) of each worker."""
        right = np.tile(self._right, (1, self.n_classes // self._right.shape[1]))
        right[self._silent] = np.diagonal(self.stranger)
        return right

    def information(self, priors: Float[np.ndarray, " cls"]) -> Float[np.ndarray, " worker"]:
        """Sum over labels, each of which is right under one class and wrong under the others."""
        right, wrong = self._right, self._wrong
        observed = right * priors + wrong * (1 - priors)
        total = (xlogy(right, right) * priors + xlogy(wrong, wrong) * (1 - priors)).sum(axis=1)
        total -= xlogy(observed, observed).sum(axis=1)
        total[self._silent] = matrix_information(self.stranger[None], priors)[0]
        return total


def matrix_information(
    matrices: Float[np.ndarray, "worker cls observed"], priors: Float[np.ndarray, " cls"]
) -> Float[np.ndarray, " worker"]:
    """Mutual information between label and truth under each matrix, nats.

    Examples:
        >>> import numpy as np
        >>> matrix_information(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([0.5, 0.5]))
        array([0.69314718])
    """
    observed = np.einsum("k,wko->wo", priors, matrices)
    terms = np.einsum("k,wko->w", priors, xlogy(matrices, matrices))
    return terms - xlogy(observed, observed).sum(axis=1)


def find_pairs(
    keys: Int[np.ndarray, " symbol"],
    n_classes: int,
    worker: Int[np.ndarray, " pair"],
    label: Int[np.ndarray, " pair"],
) -> Int[np.ndarray, " pair"]:
    """Position of each pair among ascending keys, -1 if it does not occur; worker -1 is nobody."""
    key = worker.astype(np.int64) * n_classes + label
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where((worker >= 0) & (keys[place] == key), place, -1)


def silent_workers(
    keys: Int[np.ndarray, " symbol"], n_workers: int, n_classes: int
) -> Bool[np.ndarray, " worker"]:
    """Whether each worker has none of the keys."""
    silent = np.ones(n_workers, dtype=bool)
    silent[keys // n_classes] = False
    return silent
