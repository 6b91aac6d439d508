"""The models that `AutoAggregator` averages, and how it weighs them.

Each model tells another story of how labels come about, and each is the best on some crowds. All of
them run EM from the shares of votes. Prior weights and the choice of models come from 660 crowds:
public ones, thinned, merged, with a class made rare or with workers left out, and simulated ones
(`benchmarks/crowds.py`, development half and seeds that had been held back, eight in all). Equal
weights are nearly as good on average, 14.5 % errors against 14.3, but their worst case is worse, 11
points above the best simple method against 6.

It is essential that one model has hard tasks. Where a class is rare, tasks that split the votes
look like the rare class to the other models, which then find too many of it. On trec with few tasks
of one class, 24 % of the labels are wrong without the model of hard tasks and 14 % with it (one
coin: 12 %). With two or three labels per task, however, that model and the one coin with a learned
prior tend to put all tasks into one class, so their prior weight grows with the number of labels.
That was found on web, thinned, which the benchmark leaves out.

On large crowds, weights come from a sample of the tasks (`task_sample.py`), and only the models
with the largest weights are fitted to all labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.auto.held_out_scores import model_weights, score_held_out_labels
from bayescrowd.aggregation.em import Incidence
from bayescrowd.aggregation.shrunken.ability import EmpiricalBayesModel, implied_rows
from bayescrowd.aggregation.shrunken.base import Fit
from bayescrowd.aggregation.shrunken.baselines import CoinModel, MeanRowsModel
from bayescrowd.aggregation.shrunken.rows import (
    ClassPrior,
    RowModel,
    fit_rows,
    spread_over_levels,
)
from bayescrowd.aggregation.shrunken.type_mixture import WorkerTypesModel
from bayescrowd.aggregation.task_sample import sampled_tasks
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.annotations import Annotations

__all__ = [
    "POOL",
    "Member",
    "PoolWeights",
    "affordable_iterations",
    "fit_members",
    "fit_predictors",
    "weigh_pool",
]

TOL = 1e-4
"""A model has settled when every probability changes by less than this."""

SCORE_TOL = 1e-3
"""The same for fits that predict held-out labels; weights change by less than 0.001 with `TOL`."""

LARGE = 100_000
"""Crowds with more labels than this are weighed on a sample of their tasks."""

CHOICE_LABELS = 50_000
"""Number of labels in that sample."""

MOST_MODELS = 3
"""Number of models that are fitted to all labels of a large crowd."""

LARGE_N_ITER = 20
"""Largest number of iterations of each fit to a large crowd."""

HALF_LABELS = 1500
"""Number of labels at which models that may collapse have half their weight."""

HALF_LABELS_PER_TASK = 3.5
"""Number of labels per task at which models that may collapse have half their weight."""


class Member(NamedTuple):
    """A model of the pool."""

    name: str
    """Short name."""
    family: str
    """What it learns, in words."""
    story: str
    """What a crowd is like whose labels it predicts best."""
    model: RowModel
    """The model."""
    prior: ClassPrior
    """The prior of the classes."""
    weight: float
    """Prior weight where there are many labels."""
    own_rows: bool
    """Whether its own rows predict labels; if not, the rows that its posterior implies do."""
    may_collapse: bool = False
    """Whether it may put all tasks into one class where there are few labels."""

    def prior_weight(self, n_labels: int, n_tasks: int) -> float:
        """Weight before any evidence, in a crowd with this many labels and tasks."""
        if not self.may_collapse:
            return self.weight
        redundancy = (n_labels / n_tasks / HALF_LABELS_PER_TASK) ** 4
        return self.weight * n_labels / (n_labels + HALF_LABELS) * redundancy / (1 + redundancy)


_COIN = (
    "one accuracy per worker",
    "workers differ in how often they err, not in what they mix up",
)
_OWN = (
    "each worker's own matrix",
    "workers have habits of their own and enough labels to show them",
)
_POOLED = ("matrices pooled by ability", "workers differ in ability but make the same errors")
_TYPES = ("worker types", "workers belong to a few types")
_HARD = ("hard and easy tasks", "errors gather on hard tasks")

POOL = (
    Member("one coin, even classes", *_COIN, CoinModel(), "uniform", 2.0, own_rows=False),
    Member("one coin", *_COIN, CoinModel(), "learned", 2.5, own_rows=False, may_collapse=True),
    Member("own matrices", *_OWN, MeanRowsModel(), "learned", 2.5, own_rows=True),
    Member("pooled", *_POOLED, EmpiricalBayesModel(1, 4.0), "learned", 1.0, own_rows=True),
    Member(
        "pooled, label shares", *_POOLED, EmpiricalBayesModel(1, 4.0), "shares", 0.5, own_rows=True
    ),
    Member("types, label shares", *_TYPES, WorkerTypesModel(), "shares", 0.25, own_rows=True),
    Member(
        "difficulty",
        *_HARD,
        EmpiricalBayesModel(2, 8.0),
        "learned",
        1.25,
        own_rows=True,
        may_collapse=True,
    ),
)
"""All models, the simple ones first."""


class PoolWeights(NamedTuple):
    """What the models of the pool are worth on a crowd."""

    scores: pd.DataFrame
    """The table of `model_weights`, one row per model."""
    shares: dict[str, float]
    """Share in the answer of each model that is to be fitted to all labels; they sum to 1."""

    @property
    def members(self) -> list[Member]:
        """The models that have a share, in the order of the pool."""
        return [member for member in POOL if member.name in self.shares]


def weigh_pool(ann: Annotations, fixed: Int[np.ndarray, " item"], *, n_iter: int) -> PoolWeights:
    """Weigh the models of the pool by how well they predict held-out labels.

    Args:
        ann: the labels.
        fixed: class of tasks whose truth is known, -1 elsewhere.
        n_iter: largest number of iterations of each fit.
    """
    is_large = ann.n_labels > LARGE
    sample = ann
    if is_large:
        tasks = sampled_tasks(ann, CHOICE_LABELS)
        sample, fixed = ann.select_tasks(ann.tasks[tasks]), fixed[tasks]
        # Workers without labels in the sample would cost as much as the others.
        sample = sample.select_workers(sample.workers[sample.labels_per_worker > 0])
    n_iter = affordable_iterations(ann.n_labels, n_iter)
    fit_models = partial(fit_predictors, POOL, n_iter=n_iter, tol=SCORE_TOL)
    n_tasks = int((sample.labels_per_task > 0).sum())
    scores = model_weights(
        score_held_out_labels(fit_models, sample, fixed),
        {member.name: member.prior_weight(sample.n_labels, n_tasks) for member in POOL},
    )
    weights = scores["weight"].nlargest(MOST_MODELS) if is_large else scores["weight"]
    shares = weights[weights > 0] / weights.sum()
    return PoolWeights(scores, {str(name): float(share) for name, share in shares.items()})


def affordable_iterations(n_labels: int, n_iter: int) -> int:
    """The largest number of iterations of a fit to this many labels."""
    return min(n_iter, LARGE_N_ITER) if n_labels > LARGE else n_iter


def fit_members(
    members: Iterable[Member],
    pairs: WorkerLabelPairs,
    votes: Float[np.ndarray, "item cls"],
    *,
    n_iter: int,
    tol: float,
) -> dict[str, Fit]:
    """Fit models of the pool, starting from the shares of votes."""
    incidences: dict[int, Incidence] = {}
    fits = {}
    for member in members:
        start = spread_over_levels(votes, member.model.n_levels)
        n_states = start.shape[1]
        if n_states not in incidences:
            incidences[n_states] = pairs.incidence(n_states)
        fits[member.name] = fit_rows(
            member.model,
            pairs,
            incidences[n_states],
            start,
            prior=member.prior,
            n_iter=n_iter,
            tol=tol,
        )
    return fits


def fit_predictors(
    members: Iterable[Member],
    pairs: WorkerLabelPairs,
    votes: Float[np.ndarray, "item cls"],
    *,
    n_iter: int,
    tol: float,
) -> dict[str, tuple[Fit, Fit]]:
    """Fit models of the pool: the fit of each, and the fit whose rows predict labels."""
    members = list(members)
    fits = fit_members(members, pairs, votes, n_iter=n_iter, tol=tol)
    return {
        member.name: (
            fits[member.name],
            fits[member.name]
            if member.own_rows
            else implied_rows(pairs, fits[member.name].posterior),
        )
        for member in members
    }
