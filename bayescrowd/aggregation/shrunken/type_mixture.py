"""Worker types: Dawid–Skene in which each worker belongs to one of a few types.

Worker w belongs to type g with probability rho_g; a type has a confusion matrix T_g, and a worker's
own rows scatter around those of the type,

    pi_wk ~ Dirichlet(s T_gk).

The matrix of a type is learned from all its members, so that a spammer or a careless worker is
recognised after few labels. Given expected counts n_wkl of the workers' labels, EM computes

    r_wg  proportional to  rho_g prod_k DirichletMultinomial(n_wk | s T_gk)                    (1)
    rho_g = mean of r_wg over workers, with one pseudo-worker per type                         (2)
    T_gk  proportional to  sum_w r_wg n_wk + the crowd's row                                   (3)

and the base of w's rows is the mean of the types' matrices, sum_g r_wg T_g (`base.py`). (3) leaves
out the shrinkage of a Dirichlet-multinomial mean, which is small because s is few pseudo-labels and
a type has many labels. Types start as bands of agreement with the votes, with equally many labels
in each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, softmax

from bayescrowd.aggregation.shrunken.base import is_right
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.checks.parameters import Count

__all__ = ["TypeBase", "WorkerTypesModel"]

SHRINKAGE = 4.0
"""Pseudo-labels at the crowd's agreement in the first ordering of the workers."""

AGREEMENT_DECIMALS = 9
"""Workers whose agreement is equal to this many decimals are tied, whatever their ids."""


class TypeBase(NamedTuple):
    """Parameters of a mixture of types."""

    matrices: Float[np.ndarray, "type cls state"]
    """P(label | state) of each type (T)."""
    share: Float[np.ndarray, " type"]
    """Share of the workers who belong to each type (rho)."""
    membership: Float[np.ndarray, "worker type"]
    """P(type) of each worker (r)."""
    strength: float
    """Pseudo-labels that the type is worth in each row of a worker (s)."""

    def rows(
        self, worker: Int[np.ndarray, " pair"], label: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, "pair state"]:
        """Mean over types of the probability of the label."""
        membership = np.concatenate([self.membership, self.share[None]])[worker]
        rows = np.zeros((len(worker), self.matrices.shape[2]))
        for of_type, matrix in zip(membership.T, self.matrices, strict=True):
            rows += of_type[:, None] * matrix[label]
        return rows


class WorkerTypesModel(NamedTuple):
    """The model of this module."""

    n_types: Count = 3
    """Number of types."""
    strength: float = 8.0
    """Pseudo-labels that the type is worth in each row of a worker."""
    n_levels: int = 1
    """Number of levels of difficulty."""

    def base(
        self,
        pairs: WorkerLabelPairs,
        counts: Float[np.ndarray, "symbol state"],
        previous: TypeBase | None,
    ) -> TypeBase:
        """Equations 1 to 3."""
        total = pairs.by_worker(counts)
        if previous is None:
            membership = _first_membership(pairs, counts, total, self.n_types)
        else:
            membership = _membership(pairs, counts, total, previous)
        active = total.sum(axis=1) > 0
        share = membership[active].sum(axis=0) + 1
        share /= share.sum()
        crowd = pairs.by_label(counts) + 1.0 / pairs.n_classes
        crowd /= crowd.sum(axis=0)
        of_symbol = membership[pairs.worker]
        matrices = np.stack([pairs.by_label(counts * r[:, None]) + crowd for r in of_symbol.T])
        matrices /= matrices.sum(axis=1, keepdims=True)
        membership = np.where(active[:, None], membership, share)
        return TypeBase(matrices, share, membership, self.strength)


def _first_membership(
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
    n_types: int,
) -> Float[np.ndarray, "worker type"]:
    """Soft bands of agreement; workers who agree equally often have the same rank."""
    right = np.where(is_right(pairs.label, pairs.n_classes, counts.shape[1]), counts, 0.0)
    n_right, n_labels = pairs.by_worker(right).sum(axis=1), total.sum(axis=1)
    mean = n_right.sum() / n_labels.sum()
    agreement = (n_right + SHRINKAGE * mean) / (n_labels + SHRINKAGE)
    _, rank = np.unique(agreement.round(AGREEMENT_DECIMALS), return_inverse=True)
    labels_at = np.bincount(rank, n_labels)
    place = ((np.cumsum(labels_at) - 0.5 * labels_at) / labels_at.sum())[rank]
    centres = (np.arange(n_types) + 0.5) / n_types
    distance = (place[:, None] - centres) * n_types
    return softmax(-2 * distance**2, axis=1)


def _membership(
    pairs: WorkerLabelPairs,
    counts: Float[np.ndarray, "symbol state"],
    total: Float[np.ndarray, "worker state"],
    previous: TypeBase,
) -> Float[np.ndarray, "worker type"]:
    """Equation 1, without the factors that do not depend on the type."""
    scores = np.empty((len(total), len(previous.share)))
    for g, matrix in enumerate(previous.matrices):
        pseudo = np.maximum(previous.strength * matrix[pairs.label], np.finfo(float).tiny)
        gain = (gammaln(counts + pseudo) - gammaln(pseudo)).sum(axis=1, keepdims=True)
        scores[:, g] = pairs.by_worker(gain)[:, 0]
    return softmax(scores + np.log(previous.share), axis=1)
