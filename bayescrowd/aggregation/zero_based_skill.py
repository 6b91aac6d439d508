"""Zero-based skill: a vote weighted by agreement with itself.

The method comes from Toloka and its package crowd-kit; there is no paper. Every worker begins with
the skill of a guesser, 1 / K. An iteration takes the vote weighted by skill and moves each skill
s_w toward the share a_w of the worker's labels that agree with the vote, which is a step of
gradient descent on (a_w - s_w)^2 / 2:

    s_w <- s_w + rate (a_w - s_w)

The rate falls by a constant factor at regular intervals. The first iteration at rate 1 is Wawa
(`majority.py`); a fixed point is a weighted vote whose weights are the agreements with it.

Departures from crowd-kit: a tie between t classes counts 1/t for each of them, where crowd-kit
takes the class that comes first, and the iteration stops when skills no longer change.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayescrowd.aggregation.implied import implied_aggregation
from bayescrowd.aggregation.protocol import Aggregation, Aggregator
from bayescrowd.aggregation.votes import leading_shares, shares, weighted_votes, with_known
from bayescrowd.checks.parameters import Count, Real, Seed, Tolerance
from bayescrowd.data.annotations import Annotations
from bayescrowd.iteration import Step, settle

__all__ = ["ZeroBasedSkill"]


class ZeroBasedSkill(Aggregator):
    """A vote weighted by skills, which are updated by agreement with the vote.

    Known labels (`gold`) replace the vote where they are given. The defaults are crowd-kit's.
    Errors on bluebird, rte, trec, dog and web are 24.1, 7.9, 35.5, 17.0 and 18.0 %.

    Args:
        learning_rate: fraction of the way to the agreement by which a skill moves in the first
            iterations.
        steps_to_reduce: number of iterations between two reductions of the rate.
        reduction: factor by which the rate is multiplied.
        n_iter: largest number of iterations.
        tol: stop when no skill differs from its worker's agreement by more than this; 0 runs
            n_iter.
        seed: seed of the draw that breaks ties.

    Attributes:
        skills_: weight of each worker's votes; a worker without labels has the mean over labels.
        trace_: mean over labels of (a_w - s_w)^2 before each update. It may rise when the vote on a
            task changes.

    Examples:
        >>> import bayescrowd as bc
        >>> ann = bc.Annotations.from_matrix([list("aab"), list("bbb"), list("abb"), list("baa")])
        >>> est = bc.ZeroBasedSkill().fit(ann)
        >>> est.labels_.to_list()
        ['a', 'b', 'b', 'a']
        >>> est.skills_.to_list()
        [0.5, 1.0, 0.75]
    """

    def __init__(
        self,
        *,
        learning_rate: Annotated[float, Real(0, 1, without_least=True)] = 1.0,
        steps_to_reduce: Count = 20,
        reduction: Annotated[float, Real(0, 1, without_least=True)] = 0.5,
        n_iter: Count = 100,
        tol: Tolerance = 1e-5,
        seed: Seed = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.steps_to_reduce = steps_to_reduce
        self.reduction = reduction
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _aggregate(self, ann: Annotations, fixed: Int[np.ndarray, " item"]) -> Aggregation:
        def learn(state: _State) -> Step[_State]:
            n_done, rate = state.n_done + 1, state.rate
            if n_done % self.steps_to_reduce == 0:
                rate *= self.reduction
            vote = with_known(shares(_votes(ann, state.skills)), fixed)
            gap = np.where(ann.labels_per_worker > 0, _agreement(ann, vote) - state.skills, 0.0)
            loss = float((gap**2 * ann.labels_per_worker).sum() / ann.n_labels)
            change = float(np.abs(gap).max())
            return Step(_State(state.skills + rate * gap, rate, n_done), loss, change)

        start = _State(np.full(ann.n_workers, 1.0 / ann.n_classes), self.learning_rate, 0)
        course = settle(learn, start, n_iter=self.n_iter, tol=self.tol)
        skills = course.state.skills
        self._mean_skill = float(skills[ann.worker_codes].mean())
        skills = np.where(ann.labels_per_worker > 0, skills, self._mean_skill)
        self.skills_ = pd.Series(skills, index=ann.workers, name="skill")
        posterior = with_known(shares(_votes(ann, skills)), fixed)
        return implied_aggregation(ann, posterior, trace=course.trace, converged=course.converged)

    def _posterior_of_new(
        self, ann: Annotations, known: Int[np.ndarray, " worker"]
    ) -> Float[np.ndarray, "item cls"]:
        skills = np.append(self.skills_.to_numpy(), self._mean_skill)[known]
        return shares(_votes(ann, skills))


class _State(NamedTuple):
    """Where the iteration stands."""

    skills: Float[np.ndarray, " worker"]
    """Skill of each worker (s)."""
    rate: float
    """Fraction of the way to the agreement by which skills move."""
    n_done: int
    """Number of iterations so far."""


def _votes(ann: Annotations, skills: Float[np.ndarray, " worker"]) -> Float[np.ndarray, "item cls"]:
    """Sum of the skills of the workers who chose each class."""
    return weighted_votes(ann, skills[ann.worker_codes])


def _agreement(
    ann: Annotations, vote: Float[np.ndarray, "item cls"]
) -> Float[np.ndarray, " worker"]:
    """Share of each worker's labels that agree with the leading class."""
    agrees = leading_shares(vote)[ann.task_codes, ann.label_codes]
    agreed = np.bincount(ann.worker_codes, agrees, minlength=ann.n_workers)
    return agreed / np.maximum(ann.labels_per_worker, 1)
