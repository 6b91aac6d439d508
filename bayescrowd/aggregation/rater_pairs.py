"""Pairs of raters: how often they agree, and how often they would if they erred independently.

For two raters a and b and the tasks that both labelled, given P(class) of each task, (1) is the
observed agreement and (2) the agreement that independent errors predict:

    A = mean_i [y_ia = y_ib],                                                                    (1)
    E = mean_i sum_k P_i(k) sum_l theta_a(l | k) theta_b(l | k),                                 (2)

theta_w(l | k) being rater w's confusion matrix. If the two raters name a shared verdict with
probability c and form verdicts of their own otherwise, all by the same matrix, then A = c + (1 - c)
E: the excess (A - E) / (1 - E) is the share of labels that one rater repeats after the other.
Raters who agree because they are right have no excess.

Raters are clustered by average linkage of the excess that remains at the lower confidence limit of
A (Clopper and Pearson 1934), at a level that is divided by the number of pairs, so that neither few
shared tasks nor many pairs make clusters by chance.

Only the raters with the most labels are paired, on a sample of the tasks if there are many, by
sparse products: the cost is bounded however large the crowd is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from scipy.special import betaincinv

from bayescrowd.aggregation.task_sample import fingerprints, sampled_tasks
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = ["PairTable", "cluster_raters", "label_habits", "pair_raters"]

MOST_RATERS = 200
"""At most this many raters are paired: those with the most labels."""

MOST_LABELS = 200_000
"""Pairs are counted on a sample of tasks if the paired raters have more labels than this."""

MOST_CELLS = 4_000_000
"""Most entries of all confusion matrices of the paired raters, which limits them with K^2."""

LEAST_PROBABILITY = 1e-3
"""Classes less probable than this on a task are left out of equation 2."""

ERROR_LEVEL = 0.05
"""Chance that a pair of independent raters somewhere in the crowd exceeds the limit."""

LEAST_EXCESS = 0.3
"""Raters form a cluster if, on average, at least this share of their labels is repeated."""

PSEUDO_LABELS = 2.0
"""Labels by the crowd's habits that are added to those of each rater."""


class PairTable(NamedTuple):
    """Statistics of all pairs of some raters, as matrices raters x raters."""

    raters: Int[np.ndarray, " rater"]
    """Codes of the raters, ascending."""
    n_shared: Float[np.ndarray, "rater rater"]
    """Number of tasks that both labelled."""
    agreement: Float[np.ndarray, "rater rater"]
    """Equation 1; NaN without shared tasks, as in the other tables."""
    expected: Float[np.ndarray, "rater rater"]
    """Equation 2."""
    label_correlation: Float[np.ndarray, "rater rater"]
    """Agreement beyond the habits of the two raters, over its largest value."""
    error_correlation: Float[np.ndarray, "rater rater"]
    """Correlation of their errors, expected under P."""


def pair_raters(
    ann: Annotations,
    posterior: Float[np.ndarray, "item cls"],
    pairs: WorkerLabelPairs,
    rows: Float[np.ndarray, "pair cls"],
    crowd: Float[np.ndarray, "label cls"],
) -> PairTable:
    """Compare every two of the raters with the most labels.

    Args:
        ann: the labels.
        posterior: P(class) of each task.
        pairs: the pairs of a worker and a label that occur.
        rows: expected number of labels of each such pair on tasks of each class.
        crowd: P(label | class) of the crowd.
    """
    raters = _most_active(ann)
    position = np.full(ann.n_workers, -1)
    position[raters] = np.arange(len(raters))
    kept = position[ann.worker_codes] >= 0
    if kept.sum() > MOST_LABELS:
        is_sampled = np.zeros(ann.n_tasks, dtype=bool)
        share = MOST_LABELS / kept.sum()
        is_sampled[sampled_tasks(ann, max(1, round(share * ann.n_labels)))] = True
        kept &= is_sampled[ann.task_codes]
    task, label = ann.task_codes[kept], ann.label_codes[kept]
    column = position[ann.worker_codes[kept]]
    shape = ann.n_tasks, len(raters)
    given = scipy.sparse.csr_matrix((np.ones(len(task)), (task, column)), shape=shape)
    right = scipy.sparse.csr_matrix((posterior[task, label], (task, column)), shape=shape)
    # Rows are answers, a task with a label, so that a product counts equal answers.
    answer = task.astype(np.int64) * ann.n_classes + label
    answers, row = np.unique(answer, return_inverse=True)
    same = scipy.sparse.csr_matrix(
        (np.ones(len(task)), (row, column)), shape=(len(answers), len(raters))
    )
    # A rater who has labelled a task twice takes part in several comparisons on one shared task.
    labelled = given.sign()
    n_shared, n_compared = _gram(labelled, labelled), _gram(given, given)
    agreeing = _gram(same, same)
    both_right = _gram(same, same.multiply(posterior.ravel()[answers][:, None]).tocsr())
    expected = _expected_agreement(given, posterior, _matrices(pairs, rows, crowd, raters))
    habits = label_habits(ann)[raters]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = agreeing / n_compared
        spread = np.sqrt(1 - (habits**2).sum(axis=1))
        label_correlation = (agreement - habits @ habits.T) / np.outer(spread, spread)
        error = 1 - _gram(right, given) / n_compared  # of the row's rater on the shared tasks
        both_err = error + error.T - 1 + both_right / n_compared
        scale = np.sqrt(error * (1 - error) * error.T * (1 - error.T))
        error_correlation = (both_err - error * error.T) / np.where(scale > 1e-12, scale, np.nan)
        return PairTable(
            raters, n_shared, agreement, expected / n_compared, label_correlation, error_correlation
        )


def cluster_raters(table: PairTable) -> list[Int[np.ndarray, " member"]]:
    """Codes of the raters of each cluster of two or more who repeat each other."""
    similarity = excess_at_limit(table)
    similarity = (similarity + similarity.T) / 2
    np.fill_diagonal(similarity, 0.0)
    if len(similarity) < 2 or similarity.max() < LEAST_EXCESS:
        return []  # without a pair there is no cluster, and nothing to import for it
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    np.fill_diagonal(similarity, 1.0)
    tree = linkage(squareform(1 - similarity, checks=False), method="average")
    group = fcluster(tree, t=1 - LEAST_EXCESS, criterion="distance")
    members = [table.raters[group == g] for g in np.unique(group)]
    return [rows for rows in members if len(rows) > 1]


def excess_at_limit(table: PairTable) -> Float[np.ndarray, "rater rater"]:
    """Excess of each pair at the lower limit of its agreement, at least 0."""
    n_pairs = max(1, int((np.triu(table.n_shared, 1) > 0).sum()))
    n = np.maximum(table.n_shared, 1.0)
    agreeing = np.nan_to_num(table.agreement) * n
    lowest = betaincinv(np.maximum(agreeing, 1e-9), n - agreeing + 1, ERROR_LEVEL / n_pairs)
    expected = np.nan_to_num(table.expected, nan=1.0)
    room = np.maximum(1 - expected, 1e-9)
    return np.where(table.n_shared > 0, np.maximum((lowest - expected) / room, 0.0), 0.0)


def label_habits(ann: Annotations) -> Float[np.ndarray, "worker cls"]:
    """Share of each class among a rater's labels, with pseudo-labels of the crowd's shares."""
    key = ann.worker_codes.astype(np.int64) * ann.n_classes + ann.label_codes
    counts = np.bincount(key, minlength=ann.n_workers * ann.n_classes).astype(float)
    counts = counts.reshape(ann.n_workers, ann.n_classes)
    crowd = counts.sum(axis=0) / max(ann.n_labels, 1)
    return (counts + PSEUDO_LABELS * crowd) / (counts.sum(axis=1, keepdims=True) + PSEUDO_LABELS)


def _most_active(ann: Annotations) -> Int[np.ndarray, " rater"]:
    """Codes of the raters to pair, ascending; equal numbers of labels are decided by a hash."""
    most = max(2, min(MOST_RATERS, MOST_CELLS // ann.n_classes**2))
    active = np.flatnonzero(ann.labels_per_worker > 0)
    if len(active) <= most:
        return active
    order = np.lexsort((fingerprints(ann, n_rounds=1).worker, -ann.labels_per_worker))
    return np.sort(order[:most])


def _matrices(
    pairs: WorkerLabelPairs,
    rows: Float[np.ndarray, "pair cls"],
    crowd: Float[np.ndarray, "label cls"],
    raters: Int[np.ndarray, " rater"],
) -> Float[np.ndarray, "rater label cls"]:
    """Confusion matrices P(label | class) of some raters, with the crowd's as pseudo-labels."""
    counts = np.tile(PSEUDO_LABELS * crowd, (len(raters), 1, 1))
    place = np.searchsorted(raters, pairs.worker)
    place[place == len(raters)] = 0
    kept = raters[place] == pairs.worker
    counts[place[kept], pairs.label[kept]] += rows[kept]
    return counts / counts.sum(axis=1, keepdims=True)


def _expected_agreement(
    given: scipy.sparse.csr_matrix,
    posterior: Float[np.ndarray, "item cls"],
    matrices: Float[np.ndarray, "rater label cls"],
) -> Float[np.ndarray, "rater rater"]:
    """Sum over shared tasks of equation 2."""
    # Of very many classes, all may be improbable: the most probable one is kept in any case.
    least = np.minimum(LEAST_PROBABILITY, posterior.max(axis=1, keepdims=True))
    kept = np.where(posterior >= least, posterior, 0.0)
    kept /= kept.sum(axis=1, keepdims=True)
    expected = np.zeros((given.shape[1], given.shape[1]))
    for k in range(posterior.shape[1]):
        tasks = np.flatnonzero(kept[:, k])
        part = given[tasks]
        weighted = part.multiply(kept[tasks, k][:, None]).tocsr()
        expected += _gram(part, weighted) * (matrices[:, :, k] @ matrices[:, :, k].T)
    return expected


def _gram(
    left: scipy.sparse.csr_matrix, right: scipy.sparse.csr_matrix
) -> Float[np.ndarray, "rater rater"]:
    return np.asarray((left.T @ right).toarray(), dtype=float)
