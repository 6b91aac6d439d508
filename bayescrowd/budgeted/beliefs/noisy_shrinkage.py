"""The belief behind `BudgetedSelection` where each observation has several noisy labels.

Two models see the same answers:

* `ShrunkBelief` decides what to buy and what to select, from the majorities of the labels. A
  look-ahead learns anew from every imagined future; with majorities that is a sum of counts, and
  channels have as many outcomes as the feature has values, instead of one for each multiset.
* Both read labels: `ShrunkBelief` their majority, the access path model all of them. The first has
  the prior that learns how much the classes differ; the second distinguishes a clear majority from
  a close one and makes use of answers that are mostly wrong. Their log-likelihoods are averaged
  with weights that the answers about the feature have earned: proportional to the probability that
  each model gave to the classes of the items as they came, given their labels, before it learned
  from them.

Errors on nursery from the same purchases (2 features, budgets of 500 and 1000, 5 labels per query,
10 repeats):

    wrong labels   majority       access path    even weights   earned weights
    30 %           .408  .278     .421  .290     .408  .281     .408  .281
    80 %           .659  .633     .649  .610     .653  .622     .653  .621
    100 %          .608  .541     .466  .322     .497  .342     .470  .320

No decision needs the second model, which therefore learns its answers only when their feature is
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.naive_bayes import Belief, Estimate, Reader
from bayescrowd.budgeted.beliefs.shrinkage import ShrunkBelief
from bayescrowd.budgeted.space import FeatureSpace

__all__ = ["NoisyShrunkBelief", "PooledReader"]


class PooledReader(NamedTuple):
    """Averages the log-likelihoods of several readers."""

    readers: tuple[Reader, ...]
    """The readers."""
    weights: Float[np.ndarray, " reader"]
    """Weights of the readers, summing to 1."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Weighted mean of the readers' log-likelihoods; 0 where a row has no labels."""
        # 0 times minus infinity is not a number
        used = np.flatnonzero(self.weights > 0)
        log_likelihoods = [self.readers[i].log_likelihood(labels) for i in used.tolist()]
        return np.tensordot(self.weights[used], log_likelihoods, axes=1)


class NoisyShrunkBelief:
    """Decides by majorities under a shrinking prior, and reads labels with both models.

    Args:
        space: the features, in the policy's order.
        labels_per_query: number of labels of an observation (W).
    """

    def __init__(self, space: FeatureSpace, labels_per_query: int) -> None:
        self._majorities = ShrunkBelief(space)
        self._labels = AccessPathBelief(space, labels_per_query)
        self.n_outcomes = self._majorities.n_outcomes
        self._log_prior = np.log(space.class_prior)
        self._waiting: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in space.features]
        """Answers about each feature that the access path model has not seen yet."""
        self._scores = np.zeros((len(space.features), 2))
        """Log-probability of the classes that came with each feature's answers, by model."""

    def observe(self, feature: int, cls: int, labels: tuple[int, ...]) -> None:
        """Count the majority now, and keep the answer for the other model."""
        self._scores[feature, 0] += self._class_score(self._majorities, feature, cls, labels)
        self._majorities.observe(feature, cls, labels)
        self._waiting[feature].append((cls, labels))

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> None:
        """Learn a whole table with both models; their weights stay what they are."""
        for feature in range(len(self._waiting)):
            self._catch_up(feature)
        self._majorities.observe_all(target, labels)
        self._labels.observe_all(target, labels)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of the majorities, drawn from the posterior."""
        return self._majorities.draw(rng)

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the majorities' channels."""
        return self._majorities.mean()

    def rows(self, feature: int) -> list[Float[np.ndarray, "row value"]]:
        """Expected concentrations of the access path model."""
        self._catch_up(feature)
        return self._labels.rows(feature)

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: Estimate
    ) -> PooledReader:
        """A reader of labels with both models, at their posterior means or modes."""
        self._catch_up(feature)
        readers = (
            self._majorities.reader(feature, slots, estimate),
            self._labels.reader(feature, slots, estimate),
        )
        return PooledReader(readers, softmax(self._scores[feature]))

    def imagine(
        self,
        rng: np.random.Generator,
        features: Sequence[int],
        n_observations: Float[np.ndarray, "feature cls"],
        n_draws: int,
    ) -> Float[np.ndarray, "feature draw cls outcome"]:
        """Posterior means of the majorities' channels after more answers; see `Imagining`."""
        return self._majorities.imagine(rng, features, n_observations, n_draws)

    def _catch_up(self, feature: int) -> None:
        """Let the access path model predict each waiting answer's class, then learn from it."""
        for cls, labels in self._waiting[feature]:
            self._scores[feature, 1] += self._class_score(self._labels, feature, cls, labels)
            self._labels.observe(feature, cls, labels)
        self._waiting[feature].clear()

    def _class_score(self, model: Belief, feature: int, cls: int, labels: tuple[int, ...]) -> float:
        """Log-probability that a model gives to the class of an answer, given its labels."""
        reader = model.reader(feature, np.arange(self.n_outcomes[feature]), "mean")
        log_joint = self._log_prior + reader.log_likelihood(np.array([labels]))[0]
        log_joint -= log_joint.max()
        return float(log_joint[cls] - np.log(np.exp(log_joint).sum()))
