"""Agreement of every two workers on the tasks that both of them labelled.

All pairs come from a few products of sparse matrices, tasks x workers: with G the labels given and
L_k those of class k, two workers compare [G'G] labels, of which sum_k [L_k'L_k] agree, and the
first of them says k in [L_k'G] of the comparisons. Nothing else is needed: chance agreement is
sum_k p_k q_k for Cohen's kappa, with the shares p and q of the two workers' labels, and follows
from the mean shares (p + q) / 2 for the other measures, as in `measures`.

A worker who labelled a task twice is compared on it twice.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Float, Int

from bayescrowd.checks.memory import check_fits
from bayescrowd.checks.parameters import Count, validate_arguments
from bayescrowd.data.annotations import Annotations, as_annotations

__all__ = ["MOST_IN_MATRIX", "pair_table", "pairwise_agreement"]

MOST_IN_MATRIX = 2_000
"""Most workers of a matrix, unless the user asks for more."""

N_MATRICES = 14
"""Matrices workers x workers that are in memory at a time, at most."""

PairMeasure = Literal[
    "percent_agreement", "cohen_kappa", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha", "n_shared"
]


@validate_arguments
def pairwise_agreement(
    data: Any, measure: PairMeasure = "percent_agreement", *, most: Count | None = None
) -> pd.DataFrame:
    """How well every two workers agree on the tasks that both labelled, workers x workers.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        measure: 'percent_agreement'; 'cohen_kappa', 'fleiss_kappa' (Scott's pi for two workers),
            'gwet_ac1' or 'krippendorff_alpha' (nominal), which correct for agreement by chance; or
            'n_shared', the number of tasks that both labelled.
        most: keep only this many workers, those with the most labels. By default, all are kept, and
            more than 2,000 are refused.

    Returns:
        Workers x workers, NaN where two workers share no task and where the measure is undefined,
        as if both of them always chose one class. The diagonal is 1, or for 'n_shared' the worker's
        number of tasks.

    Raises:
        ValueError: there are too many workers.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", None], ["b", "a", "b"], ["b", "b", None]])
        >>> bc.agreement.pairwise_agreement(ann).round(2)
        worker     0     1    2
        worker
        0       1.00  0.67  1.0
        1       0.67  1.00  0.0
        2       1.00  0.00  1.0
        >>> bc.agreement.pairwise_agreement(ann, "n_shared").loc[0].tolist()
        [3, 3, 1]
    """
    annotations = as_annotations(data)
    if most is None and annotations.n_workers > MOST_IN_MATRIX:
        raise ValueError(
            f"a matrix of {annotations.n_workers:,} workers is too large; expected at most "
            f"{MOST_IN_MATRIX:,}, or most= to keep those with the most labels"
        )
    workers = _most_active(annotations, most)
    compared = _compare(annotations, workers)
    ids = annotations.workers.take(workers).rename("worker")
    if measure == "n_shared":
        return pd.DataFrame(compared.n_shared, index=ids, columns=ids)
    matrix = compared.measure(measure)
    has_labels = annotations.labels_per_worker[workers] > 0
    np.fill_diagonal(matrix, np.where(has_labels, 1.0, np.nan))
    return pd.DataFrame(matrix, index=ids, columns=ids)


@validate_arguments
def pair_table(data: Any, *, most: Count | None = MOST_IN_MATRIX) -> pd.DataFrame:
    """The pairs of workers who share tasks, one row each, with every measure of their agreement.

    Args:
        data: `Annotations`, or a table with the columns task, worker and label.
        most: compare only this many workers, those with the most labels; None compares all.

    Returns:
        A row per pair, in the order of the workers: worker, other, n_shared, percent_agreement,
        cohen_kappa, gwet_ac1 and krippendorff_alpha. See `pairwise_agreement`.

    Raises:
        ValueError: so many workers do not fit into memory.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", None], ["b", "a", "b"], ["b", "b", None]])
        >>> bc.agreement.pair_table(ann)[["worker", "other", "n_shared", "cohen_kappa"]].round(2)
           worker  other  n_shared  cohen_kappa
        0       0      1         3          0.4
        1       0      2         1          NaN
        2       1      2         1          0.0
    """
    annotations = as_annotations(data)
    workers = _most_active(annotations, most)
    compared = _compare(annotations, workers)
    first, second = np.nonzero(np.triu(compared.n_shared, 1))
    ids = annotations.workers.take(workers)
    names: tuple[PairMeasure, ...]
    names = ("percent_agreement", "cohen_kappa", "gwet_ac1", "krippendorff_alpha")
    pairs = pd.DataFrame({"worker": ids.take(first), "other": ids.take(second)})
    pairs["n_shared"] = compared.n_shared[first, second]
    return pairs.assign(**{name: compared.measure(name)[first, second] for name in names})


class _Compared(NamedTuple):
    """What every two workers say on the tasks that they share."""

    n_shared: Int[np.ndarray, "worker other"]
    """Number of tasks that both labelled."""
    n: Float[np.ndarray, "worker other"]
    """Number of comparisons of two labels."""
    agreeing: Float[np.ndarray, "worker other"]
    """Number of those that agree."""
    products: Float[np.ndarray, "worker other"]
    """Sum over the classes of the products of the two workers' shares of the class."""
    squares: Float[np.ndarray, "worker other"]
    """Sum over the classes of the square of the first worker's share of the class."""
    n_classes: int
    """Number of classes."""

    def measure(self, name: PairMeasure) -> Float[np.ndarray, "worker other"]:
        """Agreement of every two workers, NaN where it is undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self.agreeing / self.n
            if name == "percent_agreement":
                return share
            # The sum over the classes of the squared mean share, (p + q)^2 / 4.
            pooled = (self.squares + self.squares.T + 2 * self.products) / 4
            if name == "gwet_ac1":
                chance = (1 - pooled) / np.float64(self.n_classes - 1)
            else:
                chance = self.products if name == "cohen_kappa" else pooled
            disagreement = (1 - share) / np.where(1 - chance > 1e-9, 1 - chance, np.nan)
            if name == "krippendorff_alpha":
                # Two of 2n labels are drawn without replacement: Krippendorff's n_k / (2n - 1).
                disagreement *= 1 - 1 / (2 * self.n)
            return 1 - disagreement


def _most_active(ann: Annotations, most: int | None) -> Int[np.ndarray, " kept"]:
    """Codes of the workers with the most labels, ascending; of equals, the first ones."""
    if most is None or ann.n_workers <= most:
        return np.arange(ann.n_workers)
    return np.sort(np.argsort(-ann.labels_per_worker, kind="stable")[:most])


def _compare(ann: Annotations, workers: Int[np.ndarray, " kept"]) -> _Compared:
    check_fits(
        8.0 * N_MATRICES * len(workers) ** 2,
        f"the pairs of {len(workers):,} workers",
        "most= keeps those with the most labels",
    )
    position = np.full(ann.n_workers, -1)
    position[workers] = np.arange(len(workers))
    column = position[ann.worker_codes]
    kept = column >= 0
    task, column, label = ann.task_codes[kept], column[kept], ann.label_codes[kept]
    given = _labels(task, column, (ann.n_tasks, len(workers)))
    labelled = given.sign()
    n = _gram(given, given)
    agreeing, products, squares = np.zeros((3, *n.shape))
    of_class = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=ann.n_classes))
    for rows in np.split(of_class, ends[:-1]):
        if not len(rows):
            continue
        chosen = _labels(task[rows], column[rows], given.shape)
        said = _gram(chosen, given)  # by the row's worker
        agreeing += _gram(chosen, chosen)
        products += said * said.T
        squares += said**2
    with np.errstate(invalid="ignore", divide="ignore"):
        products, squares = products / n**2, squares / n**2
    n_shared = np.rint(_gram(labelled, labelled)).astype(np.int64)
    return _Compared(n_shared, n, agreeing, products, squares, ann.n_classes)


def _labels(
    task: Int[np.ndarray, " label"], column: Int[np.ndarray, " label"], shape: tuple[int, int]
) -> Any:
    """Number of labels of each task by each worker, as a sparse matrix."""
    return scipy.sparse.csr_array((np.ones(len(task)), (task, column)), shape=shape)


def _gram(left: Any, right: Any) -> Float[np.ndarray, "worker other"]:
    return np.asarray((left.T @ right).toarray(), dtype=float)
