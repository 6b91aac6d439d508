"""Fits under random weights of the raters, and how far they contradict each other.

A model that takes errors as independent trusts the raters it has come to believe, and a group of
raters who err together can make it believe them. Had slightly different raters been asked, another
group might have won. The Bayesian bootstrap (Rubin 1981), over raters instead of observations,
shows it: each replicate fits the model with weights

    gamma_w ~ Exp(1), scaled to mean 1,
    P_b(class) proportional to P(class) prod_w pi_w(label | class)^gamma_w   while EM iterates,  (1)

starting from weighted votes. After the last iteration every label counts once, so that replicates
differ by what they have learned and not by whom they listen to in the end. Their mean P_F is an
answer that no group of raters decides alone, and their spread is the instability

    D = K / (K - 1)  mean over tasks and models of  sum_k Var_b P_b(k),                          (2)

which is 0 where all replicates agree and near 1 where they turn the classes around.

Weights are stratified (the mid-quantiles of Exp(1), in another order for each replicate), and the
order comes from a hash of what raters said, so that neither ids nor the order of rows matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt64

from bayescrowd.aggregation.auto.pool import Member
from bayescrowd.aggregation.em import Incidence
from bayescrowd.aggregation.shrunken.base import Fit, by_class
from bayescrowd.aggregation.shrunken.rows import fit_rows, spread_over_levels
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints, mix_bits
from bayescrowd.aggregation.votes import shares, weighted_votes, with_known
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = ["Replicates", "bootstrap_raters", "n_replicates", "rater_weights"]

LEAST_REPLICATES, MOST_REPLICATES = 16, 64
"""Smallest and largest number of replicates."""

REPLICATES_TIMES_RATERS = 720.0
"""The fewer raters there are, the more one of them matters, and the more replicates are needed."""

N_ITER = 25
"""Largest number of iterations of a replicate; it need not settle."""

TOL = 1e-3
"""A replicate has settled when every probability changes by less than this."""


class Replicates(NamedTuple):
    """What the replicates of one or more models found."""

    mean: Float[np.ndarray, "item cls"]
    """Mean posterior over replicates and models (P_F)."""
    instability: float
    """Equation 2."""
    accuracies: Float[np.ndarray, "replicate worker"]
    """Expected share of right labels of each rater under each replicate, NaN without labels."""
    n_replicates: int
    """Number of replicates of each model."""


def bootstrap_raters(
    members: Iterable[Member],
    ann: Annotations,
    pairs: WorkerLabelPairs,
    *,
    seed: int,
) -> Replicates:
    """Fit models of the pool under random weights of the raters.

    Args:
        members: the models.
        ann: the labels.
        pairs: the pairs of a worker and a label that occur.
        seed: seed of the weights.
    """
    members = list(members)
    weights = rater_weights(ann, n_replicates(ann), seed)
    n_labels = np.maximum(pairs.labels_per_worker, 1)
    mean = np.zeros((ann.n_tasks, ann.n_classes))
    spread = 0.0
    accuracies = []
    labelled = ann.labels_per_task > 0
    for member in members:
        total, squares = np.zeros_like(mean), np.zeros_like(mean)
        for fit in _replicates(member, ann, pairs, weights):
            posterior = with_known(by_class(fit.posterior, ann.n_classes), pairs.fixed)
            total += posterior
            squares += posterior**2
            right = np.bincount(
                ann.worker_codes, posterior[ann.task_codes, ann.label_codes], ann.n_workers
            )
            accuracies.append(np.where(pairs.silent, np.nan, right / n_labels))
        total /= len(weights)
        variance = np.maximum(squares / len(weights) - total**2, 0.0)
        spread += float(variance[labelled].sum(axis=1).mean()) if labelled.any() else 0.0
        mean += total / len(members)
    scale = ann.n_classes / max(ann.n_classes - 1, 1)
    return Replicates(mean, scale * spread / len(members), np.array(accuracies), len(weights))


def n_replicates(ann: Annotations) -> int:
    """Number of replicates for a crowd, by the effective number of its raters."""
    given = ann.labels_per_worker.astype(float)
    effective = given.sum() ** 2 / (given**2).sum()
    wanted = round(REPLICATES_TIMES_RATERS / effective)
    return int(np.clip(wanted, LEAST_REPLICATES, MOST_REPLICATES))


def rater_weights(
    ann: Annotations, n_replicates: int, seed: int
) -> Float[np.ndarray, "replicate worker"]:
    """Weights of equation 1; raters who cannot be told apart have the same weights."""
    of_worker = fingerprints(ann, n_rounds=FOLD_ROUNDS).worker
    active = np.flatnonzero(ann.labels_per_worker > 0)
    weights = np.ones((n_replicates, ann.n_workers))
    for b, row in enumerate(weights):
        salt = mix_bits(np.array([seed, b], dtype=np.uint64)).sum(dtype=np.uint64)
        row[active] = _exponential_quantiles(mix_bits(of_worker[active] ^ salt))
    return weights


def _exponential_quantiles(order: UInt64[np.ndarray, " rater"]) -> Float[np.ndarray, " rater"]:
    """The mid-quantiles of Exp(1) in the given order, scaled to mean 1; ties share the mean."""
    _, group, size = np.unique(order, return_inverse=True, return_counts=True)
    rank = (np.cumsum(size) - (size - 1) / 2 - 0.5)[group]
    weights = -np.log1p(-rank / len(order))
    return weights / weights.mean()


def _replicates(
    member: Member,
    ann: Annotations,
    pairs: WorkerLabelPairs,
    weights: Float[np.ndarray, "replicate worker"],
) -> Iterator[Fit]:
    labels: Incidence | None = None
    for weight in weights:
        votes = with_known(shares(weighted_votes(ann, weight[ann.worker_codes])), pairs.fixed)
        start = spread_over_levels(votes, member.model.n_levels)
        labels = labels or pairs.incidence(start.shape[1])
        yield fit_rows(
            member.model,
            pairs,
            labels,
            start,
            prior=member.prior,
            n_iter=N_ITER,
            tol=TOL,
            worker_weights=weight,
        )
