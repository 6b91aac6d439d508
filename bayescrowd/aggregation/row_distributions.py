"""Variational distributions of workers' rows, for `ibcc` and `ebcc`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln

from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

__all__ = ["DirichletRows", "dirichlet_rows", "mean_rows_of_workers", "row_prior"]


class DirichletRows(NamedTuple):
    """Distributions of the rows of all workers, at the pairs of a worker and a label that occur."""

    log_rows: Float[np.ndarray, "symbol state"]
    """Expected log P(label | state) of each pair."""
    totals: Float[np.ndarray, "worker state"]
    """Sum of the parameters of each worker's row."""
    divergence: Float[np.ndarray, " state"]
    """Sum over workers of the divergence from the prior, nats."""


def row_prior(n_classes: int, right: float, wrong: float) -> Float[np.ndarray, "cls observed"]:
    """Parameters of the Dirichlet priors of a worker's rows (beta).

    Examples:
        >>> row_prior(2, 4.0, 1.0)
        array([[4., 1.],
               [1., 4.]])
    """
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)


def dirichlet_rows(
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol state"],
    beta: Float[np.ndarray, "cls observed"],
) -> DirichletRows:
    """Distributions of rows given the expected numbers of labels.

    Labels that a worker has not given have their prior parameters, and add nothing to the
    divergence but to the sums of parameters.

    Args:
        pairs: the pairs of a worker and a label that occur.
        counts: expected number of labels of each pair, by state; state z is one of class
            z % n_classes.
        beta: parameters of the prior.
    """
    n_copies = counts.shape[1] // len(beta)
    prior = np.tile(beta, (n_copies, 1)).T[pairs.label]
    prior_totals = np.tile(beta.sum(axis=1), n_copies)
    given = pairs.by_worker(counts)
    totals = prior_totals + given
    updated = prior + counts
    log_rows = digamma(updated)
    log_rows -= digamma(totals)[pairs.worker]
    # KL = log B(prior) - log B(updated) + counts . log_rows, with B the multivariate beta function.
    divergence = (gammaln(totals) - gammaln(prior_totals)).sum(axis=0)
    divergence -= gammaln(updated).sum(axis=0) - gammaln(prior).sum(axis=0)
    divergence += np.einsum("pz,pz->z", counts, log_rows)
    return DirichletRows(log_rows, totals, divergence)


def mean_rows_of_workers(
    pairs: WorkerLabelPairs,
    seen: Float[np.ndarray, "symbol cls"],
    scale: Float[np.ndarray, "worker cls"],
    base: Float[np.ndarray, "cls observed"],
) -> Float[np.ndarray, "cls observed"]:
    """The mean of the workers' matrices with the weights of their numbers of labels.

    Args:
        pairs: the pairs of a worker and a label that occur.
        seen: P(label | class) of these pairs.
        scale: factor of the base's row at labels that a worker has not given.
        base: rows of the base.
    """
    weight = pairs.labels_per_worker[:, None] / pairs.labels_per_worker.sum()
    scaled = weight * scale
    unseen = scaled.sum(axis=0) - pairs.by_label_of_workers(scaled)
    return (pairs.by_label(weight[pairs.worker] * seen) + unseen * base.T).T
