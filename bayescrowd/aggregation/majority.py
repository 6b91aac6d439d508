"""Majority vote, and Wawa: a vote weighted by agreement with the majority.

Wawa (worker agreement with aggregate) weighs every worker by the share of their labels that agree
with the plain majority; the weighted vote decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.implied import implied_aggregation
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.votes import (
    leading_shares,
    shares,
    vote_shares,
    weighted_votes,
    with_known,
)
from bayescrowd.checks.parameters import Seed, as_numbers
from bayescrowd.data.annotations import Annotations
from bayescrowd.data.vocabulary import plain

__all__ = ["MajorityVote", "Wawa"]


class MajorityVote(Aggregator):
    """The class that most workers chose.

    `probas_` holds the share of each class among the votes on a task: tied classes have equal
    shares, so that scoring splits ties evenly. `labels_` breaks ties at random, and `n_ties_`
    counts them. For a task without votes, all classes have equal shares.

    Args:
        weights: worker -> weight of each of their votes, at least 0; other workers weigh 1.
        seed: seed of the draw that breaks ties.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", "b"], ["b", None, "b"]])
        >>> bc.MajorityVote().fit_predict(ann).to_list()
        ['a', 'b']
        >>> bc.MajorityVote(weights={2: 5.0}).fit_predict(ann).to_list()
        ['b', 'b']
    """

    def __init__(
        self, *, weights: pd.Series | Mapping[Any, float] | None = None, seed: Seed = 0
    ) -> None:
        self.weights = weights
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        weights = _worker_weights(self.weights, ann.workers)
        return implied_aggregation(ann, with_known(shares(_weighted_votes(ann, weights)), fixed))

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        return shares(
            _weighted_votes(ann, _worker_weights(self.weights, ann.workers, strict=False))
        )


class Wawa(Aggregator):
    """Majority vote weighted by each worker's agreement with the plain majority.

    Known labels (`gold`) replace the majority where they are given.

    Args:
        seed: seed of the draw that breaks ties.

    Attributes:
        skills_: share of each worker's labels that agree with the majority; a tie between t
            classes counts 1/t for each of them.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([["a", "a", "b"], ["b", "b", "b"]])
        >>> bc.Wawa().fit(ann).skills_.to_list()
        [1.0, 1.0, 0.5]
    """

    def __init__(self, *, seed: Seed = 0) -> None:
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        majority = leading_shares(vote_shares(ann, fixed))
        agreement = majority[ann.task_codes, ann.label_codes]
        agreed = np.bincount(ann.worker_codes, agreement, minlength=ann.n_workers)
        n_labels = ann.labels_per_worker
        mean = agreed.sum() / ann.n_labels
        skills = np.where(n_labels > 0, agreed / np.maximum(n_labels, 1), mean)
        self.skills_ = pd.Series(skills, index=ann.workers, name="skill")
        self._mean_skill = mean
        return implied_aggregation(ann, with_known(shares(_weighted_votes(ann, skills)), fixed))

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        skills = np.append(self.skills_.to_numpy(), self._mean_skill)[known]
        return shares(_weighted_votes(ann, skills))


def _weighted_votes(
    ann: Annotations, weights: Float[np.ndarray, " worker"]
) -> Float[np.ndarray, "item cls"]:
    return weighted_votes(ann, weights[ann.worker_codes])


def _worker_weights(
    weights: pd.Series | Mapping[Any, float] | None, workers: pd.Index, strict: bool = True
) -> Float[np.ndarray, " worker"]:
    full = np.ones(len(workers))
    if weights is None:
        return full
    named = pd.Series(weights, dtype=object)
    given = pd.Series(as_numbers("weights", named), index=named.index)
    bad = given[~(given >= 0) | np.isinf(given)]
    if len(bad):
        raise ValueError(
            f"weights[{plain(bad.index[0])!r}]={bad.iloc[0]}: expected a finite number >= 0"
        )
    positions = workers.get_indexer(given.index)
    if strict and (positions < 0).any():
        unknown = given.index[int(np.flatnonzero(positions < 0)[0])]
        raise ValueError(
            f"weights name worker {plain(unknown)!r}, who has no labels; expected workers who have"
        )
    full[positions[positions >= 0]] = given.to_numpy()[positions >= 0]
    return full
