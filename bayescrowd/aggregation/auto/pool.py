"""The models that `AutoAggregator` averages.

Each tells another story of how labels come about, and each is the best on some crowds. All are EM
from the shares of votes. Prior weights and the choice itself come from 660 crowds: public
ones, thinned, merged, made rare and with workers left out, and simulated ones
(`benchmarks/crowds.py`, development half and seeds that had been held back, eight in all). Equal
weights are nearly as good on average, 14.5 % errors against 14.3, and worse at worst, 11 points
above the best simple method against 6. What matters is that hard tasks have a model: where one
class is rare, tasks that split the votes look like the rare class to a model without them, and it
calls too many of them. On trec with few tasks of one class, 24 % of the labels are wrong without it
and 14 % with it (one coin: 12 %). With two or three labels per task that model and the one coin
with a learned prior tend to put all tasks into one class: they wait for labels. That came from web,
thinned, which the benchmark leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayescrowd.aggregation.em import Incidence
from bayescrowd.aggregation.shrunken.ability import EmpiricalBayesModel, implied_rows
from bayescrowd.aggregation.shrunken.baselines import CoinModel, MeanRowsModel
from bayescrowd.aggregation.shrunken.rows import (
    ClassPrior,
    Fit,
    RowModel,
    fit_rows,
    spread_over_levels,
)
from bayescrowd.aggregation.shrunken.type_mixture import WorkerTypesModel
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs

__all__ = ["POOL", "Member", "fit_members", "fit_predictors"]

HALF_LABELS, HALF_LABELS_PER_TASK = 1500, 3.5
"""At which models that may collapse have half their weight."""


class Member(NamedTuple):
    """A model of the pool."""

    name: str
    """Short name."""
    family: str
    """What it learns of workers, in words."""
    story: str
    """What a crowd is like in which it foresees labels best."""
    model: RowModel
    """The model."""
    prior: ClassPrior
    """The classes' prior."""
    weight: float
    """Prior weight where labels are many."""
    own_rows: bool
    """Whether it is judged by its own rows; else by those that its posterior implies."""
    may_collapse: bool = False
    """Whether it finds a single class where labels are few."""

    def prior_weight(self, n_labels: int, n_tasks: int) -> float:
        """Before the evidence, in a crowd of so many labels on so many tasks."""
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
    "workers have habits and labels enough to show them",
)
_POOLED = ("matrices pooled by ability", "workers differ in ability and err alike")
_TYPES = ("worker types", "workers are of a few kinds")
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
"""Every model, simple ones first."""


def fit_members(
    members: Iterable[Member],
    pairs: WorkerLabelPairs,
    votes: Float[np.ndarray, "item cls"],
    *,
    n_iter: int,
    tol: float,
) -> dict[str, Fit]:
    """Fit some of the pool from the shares of votes."""
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
    """Fit some of the pool: each model's fit, and the fit whose rows predict labels."""
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
