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
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.held_out_scores import posterior_of_new
from bayescrowd.aggregation.shrunken.base import by_class
from bayescrowd.aggregation.shrunken.rows import (
    ClassPrior,
    RowModel,
    fit_rows,
    spread_over_levels,
)
from bayescrowd.aggregation.task_sample import FOLD_ROUNDS, fingerprints, hashed_uniforms
from bayescrowd.aggregation.votes import shares, weighted_votes
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = [
    "Replicates",
    "Target",
    "bootstrap_raters",
    "expected_accuracies",
    "rater_weights",
    "usual_replicates",
]

LEAST_REPLICATES, MOST_REPLICATES = 12, 32
"""Smallest and largest number of replicates."""

REPLICATES_TIMES_RATERS = 360.0
"""The fewer raters there are, the more one of them matters, and the more replicates are needed."""

N_ITER = 8
"""Largest number of iterations of a replicate; it need not settle."""

TOL = 2e-2
"""A replicate has settled when every probability changes by less than this. On the development
crowds, twice as many replicates with half as much again of iterations, which take three times as
long, change the default's mean error and log loss by less than 0.05 points and 0.0005 nats."""


class Replicates(NamedTuple):
    """What the replicates of one or more models found."""

    mean: Float[np.ndarray, "item cls"]
    """Mean posterior over replicates and models (P_F)."""
    instability: float
    """Equation 2."""
    accuracies: Float[np.ndarray, "replicate worker"]
    """Expected share of right labels of each rater under each replicate, NaN without labels."""


class Target(NamedTuple):
    """The tasks that replicates judge, where these are not the tasks that they were fitted to."""

    ann: Annotations
    """The labels of these tasks."""
    known: Int[np.ndarray, " worker"]
    """Code of each of their raters in the labels of the fit, -1 for a rater unseen there."""


def bootstrap_raters(
    models: Iterable[tuple[RowModel, ClassPrior]],
    ann: Annotations,
    *,
    n_replicates: int | None = None,
    target: Target | None = None,
    seed: int,
) -> Replicates:
    """Fit models under random weights of the raters.

    Args:
        models: the models, each with the prior of its classes.
        ann: the labels to fit.
        n_replicates: number of replicates of each model; by default, it follows from the raters.
        target: the tasks to judge; those of `ann` if it is None.
        seed: seed of the weights.

    Examples:
        >>> import bayescrowd as bc
        >>> from bayescrowd.aggregation.shrunken.ability import EmpiricalBayesModel
        >>> ann = bc.simulate.crowd(100, 20, accuracy=0.8, labels_per_task=7, seed=0).annotations
        >>> pooled = EmpiricalBayesModel(1, 4.0), "learned"
        >>> bootstrap_raters([pooled], ann, seed=0).instability < 0.2
        True
    """
    models = list(models)
    weights = rater_weights(ann, n_replicates or usual_replicates(ann), seed)
    judged = ann if target is None else target.ann
    mean = np.zeros((judged.n_tasks, judged.n_classes))
    spread, accuracies = 0.0, []
    labelled = judged.labels_per_task > 0
    for model, prior in models:
        total, squares = np.zeros_like(mean), np.zeros_like(mean)
        for posterior in _posteriors(model, prior, ann, weights, target):
            total += posterior
            squares += posterior**2
            accuracies.append(expected_accuracies(judged, posterior))
        total /= len(weights)
        variance = np.maximum(squares / len(weights) - total**2, 0.0)
        spread += float(variance[labelled].sum(axis=1).mean()) if labelled.any() else 0.0
        mean += total / len(models)
    scale = ann.n_classes / max(ann.n_classes - 1, 1)
    return Replicates(mean, scale * spread / len(models), np.array(accuracies))


def expected_accuracies(
    ann: Annotations, posterior: Float[np.ndarray, "item cls"]
) -> Float[np.ndarray, " worker"]:
    """Expected share of right labels of each rater, NaN for a rater without labels."""
    right = np.bincount(
        ann.worker_codes, posterior[ann.task_codes, ann.label_codes], minlength=ann.n_workers
    )
    given = ann.labels_per_worker
    return np.where(given > 0, right / np.maximum(given, 1), np.nan)


def usual_replicates(ann: Annotations) -> int:
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
    order = hashed_uniforms(of_worker[active], np.arange(n_replicates), seed)
    for row, of_active in zip(weights, order.T, strict=True):
        row[active] = _exponential_quantiles(of_active)
    return weights


def _exponential_quantiles(order: Float[np.ndarray, " rater"]) -> Float[np.ndarray, " rater"]:
    """The mid-quantiles of Exp(1) in the given order, scaled to mean 1; ties share a rank."""
    _, group, size = np.unique(order, return_inverse=True, return_counts=True)
    rank = (np.cumsum(size) - (size - 1) / 2 - 0.5)[group]
    weights = -np.log1p(-rank / len(order))
    return weights / weights.mean()


def _posteriors(
    model: RowModel,
    prior: ClassPrior,
    ann: Annotations,
    weights: Float[np.ndarray, "replicate worker"],
    target: Target | None,
) -> Iterator[Float[np.ndarray, "item cls"]]:
    """P(class) of the tasks to judge under each replicate."""
    pairs = WorkerLabelPairs(ann)
    labels = pairs.incidence(ann.n_classes * model.n_levels)
    new = None if target is None else WorkerLabelPairs(target.ann)
    for weight in weights:
        votes = shares(weighted_votes(ann, weight[ann.worker_codes]))
        fit = fit_rows(
            model,
            pairs,
            labels,
            spread_over_levels(votes, model.n_levels),
            prior=prior,
            n_iter=N_ITER,
            tol=TOL,
            worker_weights=weight,
        )
        if target is None or new is None:
            yield by_class(fit.posterior, ann.n_classes)
        else:
            yield posterior_of_new(fit, pairs, new, target.known)
