"""A prior for the confusion rows of workers with few labels, learned from the crowd.

Nine labels do not determine a confusion matrix, and EM overstates how much workers with few labels
differ: the more freely their rows move, the more certain the classes that moved them. How far a row
may move is a property of the crowd, which can be learned from its labels.

*Where* a row is pulled. If every worker is right with probability p and errs evenly, two labels of
a task agree with probability

    A = p^2 + (1 - p)^2 / (K - 1),    so that    p = (1 + sqrt((K - 1) (K A - 1))) / K,        (1)

where A is the share of agreeing pairs of labels, for which no class needs to be known. The base of
every row is the mean of two matrices, that of accuracy p and the identity. The identity keeps the
classes apart where there are two labels per task; with the matrix of accuracy p alone, the class
prior would drift there.

*How strongly*. Given the expected counts n of a fit, s is the best of a grid under the
Dirichlet-multinomial density of all workers' rows,

    sum_wk log DM(n_wk; s B_k),    B_k: right with the share of right labels in n,             (2)

and a log-normal prior around 6, which decides where there are too few labels to say anything. The
counts are those of a fit with s = 4, and (2) is evaluated once: further rounds were no better.

EM gets s - 1 pseudo-labels per row. It takes rows at their mode, which is closer to the counts than
their mean (`smoothing.py`: a Dirichlet prior with parameters 1 + pseudo). That argument does not
say by how much, and one label is a choice: on simulated crowds s and s - 1 were equally good, s / 2
was worse than a vote with two classes, and on rte s had one more error in 800.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.dawid_skene import DawidSkene
from bayescrowd.aggregation.shrunken.ability import USUAL_STRENGTH, row_evidence
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = [
    "FIRST_PSEUDO_COUNTS",
    "PulledDawidSkene",
    "accuracy_rows",
    "crowd_accuracy",
    "learned_pseudo_counts",
    "prior_rows",
]

STRENGTHS = (2.0, 4.0, 8.0, 16.0)
"""Values of s to choose from. With the last, workers with ten labels vote with equal weights."""

FIRST_PSEUDO_COUNTS = 3.0
"""Pseudo-labels per row of the fit whose counts determine s."""


class PulledDawidSkene(DawidSkene):
    """`DawidSkene` with rows that are pulled toward a given base.

    Args:
        base: distribution of the pseudo-counts of each row, one row per class.
        parameters: parameters of `DawidSkene`; `smoothing` has no effect.
    """

    def __init__(self, base: Float[np.ndarray, "cls observed"], **parameters: Any) -> None:
        super().__init__(**parameters)
        self.base = base

    def _base(self, n_classes: int) -> Float[np.ndarray, "cls observed"]:
        return self.base

    def _interchangeable(self, n_classes: int) -> bool:
        return self.pseudo_counts == 0


def prior_rows(ann: Annotations) -> Float[np.ndarray, "cls observed"]:
    """The base of all rows: half the right answer, half the matrix of the crowd's accuracy.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aaa"), list("bbb"), list("aab"), list("bba")])
        >>> prior_rows(ann).round(3)
        array([[0.894, 0.106],
               [0.106, 0.894]])
    """
    n_classes = ann.n_classes
    return (np.eye(n_classes) + accuracy_rows(crowd_accuracy(ann), n_classes)) / 2


def crowd_accuracy(ann: Annotations) -> float:
    """Equation 1; one if no task has two labels, so that nobody is contradicted.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aaa"), list("bbb"), list("aab"), list("bba")])
        >>> round(crowd_accuracy(ann), 3)  # 8 of 12 pairs agree: 1/2 + sqrt(1/3) / 2
        0.789
    """
    votes, n_labels, n_classes = ann.votes, ann.labels_per_task, ann.n_classes
    n_pairs = int((n_labels * (n_labels - 1)).sum())
    if n_pairs == 0:
        return 1.0
    agreement = int((votes * (votes - 1)).sum()) / n_pairs
    excess = max((n_classes - 1) * (n_classes * agreement - 1), 0.0)  # below chance: guessing
    return float((1 + np.sqrt(excess)) / n_classes)


def accuracy_rows(accuracy: float, n_classes: int) -> Float[np.ndarray, "cls observed"]:
    """The confusion matrix of a worker who errs evenly.

    Examples:
        >>> accuracy_rows(0.8, 3).round(2)
        array([[0.8, 0.1, 0.1],
               [0.1, 0.8, 0.1],
               [0.1, 0.1, 0.8]])
    """
    wrong = (1 - accuracy) / (n_classes - 1)
    rows = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(rows, accuracy)
    return rows


def learned_pseudo_counts(
    pairs: WorkerLabelPairs, counts: Float[np.ndarray, "symbol cls"]
) -> float:
    """Pseudo-labels per row: s - 1, with s by equation 2.

    Args:
        pairs: the pairs of a worker and a label that occur.
        counts: expected number of labels of each pair on tasks of each class.

    Examples:
        >>> import numpy as np
        >>> import bayescrowd as bc
        >>> matrix = [list("aab")] * 9 + [list("bba")] * 9  # two always right, one always wrong
        >>> pairs = WorkerLabelPairs(bc.Annotations.from_matrix(matrix))
        >>> learned_pseudo_counts(pairs, 9.0 * np.array([[1, 0], [0, 1]] * 2 + [[0, 1], [1, 0]]))
        1.0
    """
    right = counts[np.arange(len(pairs)), pairs.label].sum()
    rows = accuracy_rows(float(right / counts.sum()), pairs.n_classes).T[pairs.label]
    totals = pairs.by_worker(counts)
    scores = [
        row_evidence(counts, totals, rows, strength) - 0.5 * np.log(strength / USUAL_STRENGTH) ** 2
        for strength in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax(scores))] - 1
