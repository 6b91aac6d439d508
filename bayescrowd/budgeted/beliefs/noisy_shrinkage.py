"""The belief behind `BudgetedSelection` when each observation has several noisy labels.

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

No decision needs the second model, which therefore learns from the answers about a feature only
when that feature is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief, FeatureChains
from bayescrowd.budgeted.beliefs.credibility import Credibility, Measure
from bayescrowd.budgeted.beliefs.naive_bayes import PointEstimate, Reader, ReaderOfWorkers
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

    def of_workers(
        self, labels: Int[np.ndarray, "row label"], workers: Int[np.ndarray, "row label"]
    ) -> Float[np.ndarray, "row cls"]:
        """The same of labels by known workers."""
        used = np.flatnonzero(self.weights > 0)
        log_likelihoods = [_read(self.readers[i], labels, workers) for i in used.tolist()]
        return np.tensordot(self.weights[used], log_likelihoods, axes=1)


class Answer(NamedTuple):
    """One observation of a feature."""

    cls: int
    """Position of the instance's class."""
    labels: tuple[int, ...]
    """The labels, as slots."""
    workers: tuple[int, ...]
    """Who gave them, as numbers; empty if that is not known."""


class Answers(NamedTuple):
    """The answers about one feature, as a value to which adding one more costs the same always.

    A value and its successors share one list, and each reads only as many answers as it has.
    """

    shared: list[Answer]
    """Answers of this value, and perhaps of its successors."""
    n: int
    """Number of answers of this value."""

    def add(self, answer: Answer) -> Answers:
        """These answers and one more."""
        is_newest = len(self.shared) == self.n
        shared = self.shared if is_newest else self.shared[: self.n]
        shared.append(answer)
        return Answers(shared, self.n + 1)

    def since(self, start: int) -> list[Answer]:
        """The answers from position `start` on."""
        return self.shared[start : self.n]


class LearnedLabels(NamedTuple):
    """What the access path model has learned of one feature."""

    chains: FeatureChains
    """The feature's chains."""
    n_answers: int
    """Number of answers that the chains have seen."""
    score: float
    """Log-probability that the model gave to the classes of these answers."""


class NoisyShrunkBelief:
    """Decides by majorities under a shrinking prior, and reads labels with both models.

    Args:
        space: the features, in the policy's order.
        noisy: the access path model before the first answer.
    """

    def __init__(self, space: FeatureSpace, noisy: AccessPathBelief) -> None:
        self._majorities = ShrunkBelief(space)
        self.n_outcomes = self._majorities.n_outcomes
        self._log_prior = np.log(space.class_prior)
        self._scores: Float[np.ndarray, " feature"] = np.zeros(len(space.features))
        """Log-probability that the majorities gave to the classes of each feature's answers."""
        self._answers = [Answers([], 0) for _ in space.features]
        self._learned = [LearnedLabels(chains, 0, 0.0) for chains in noisy.features]
        """What the access path model has learned of each feature so far: a cache."""

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> NoisyShrunkBelief:
        """The belief with a majority counted, and the answer kept for the other model."""
        answer = Answer(cls, labels, workers)
        reader = self._majorities.reader(feature, self._all_slots(feature), "mean")
        belief = self._copy_with(self._majorities.observe(feature, cls, labels))
        belief._scores[feature] += self._class_score(reader, answer)
        belief._answers[feature] = self._answers[feature].add(answer)
        return belief

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> NoisyShrunkBelief:
        """The belief after both models have learned a whole table; their weights stay the same."""
        belief = self._copy_with(self._majorities.observe_all(target, labels))
        for feature in range(len(self._learned)):
            learned = self._learn(feature)
            chains = learned.chains.observe_all(target, labels[:, feature])
            belief._learned[feature] = learned._replace(chains=chains)
        return belief

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of the majorities, drawn from the posterior."""
        return self._majorities.draw(rng)

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the majorities' channels."""
        return self._majorities.mean()

    def credibility(
        self,
        feature: int,
        prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """That of the parameters of the access path model."""
        return self._learn(feature).chains.credibility(
            prior, epsilon=epsilon, measure=measure, required=required
        )

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> PooledReader:
        """A reader of labels with both models, at their posterior means or modes."""
        learned = self._learn(feature)
        readers = (
            self._majorities.reader(feature, slots, estimate),
            learned.chains.reader(slots, estimate),
        )
        scores = np.array([self._scores[feature], learned.score])
        return PooledReader(readers, softmax(scores))

    def imagine(
        self,
        rng: np.random.Generator,
        features: Sequence[int],
        n_observations: Float[np.ndarray, "feature cls"],
        n_draws: int,
    ) -> Float[np.ndarray, "feature draw cls outcome"]:
        """Posterior means of the majorities' channels after more answers; see `ImaginingBelief`."""
        return self._majorities.imagine(rng, features, n_observations, n_draws)

    def _copy_with(self, majorities: ShrunkBelief) -> NoisyShrunkBelief:
        """A copy with other majorities, whose scores and lists are its own to change."""
        belief = copy(self)
        belief._majorities = majorities
        belief._scores = self._scores.copy()
        belief._answers = [*self._answers]
        belief._learned = [*self._learned]
        return belief

    def _learn(self, feature: int) -> LearnedLabels:
        """Let the access path model predict the class of each new answer, then learn from it."""
        chains, n_answers, score = self._learned[feature]
        for answer in self._answers[feature].since(n_answers):
            reader = chains.reader(self._all_slots(feature), "mean")
            score += self._class_score(reader, answer)
            chains = chains.observe(answer.cls, answer.labels, answer.workers)
        self._learned[feature] = LearnedLabels(chains, self._answers[feature].n, score)
        return self._learned[feature]

    def _all_slots(self, feature: int) -> Int[np.ndarray, " value"]:
        return np.arange(self.n_outcomes[feature])

    def _class_score(self, reader: Reader, answer: Answer) -> float:
        """Log-probability that a reader gives to the class of an answer, given its labels."""
        workers = np.array([answer.workers or (-1,) * len(answer.labels)])
        log_joint = self._log_prior + _read(reader, np.array([answer.labels]), workers)[0]
        log_joint -= log_joint.max()
        return float(log_joint[answer.cls] - np.log(np.exp(log_joint).sum()))


def _read(
    reader: Reader, labels: Int[np.ndarray, "row label"], workers: Int[np.ndarray, "row label"]
) -> Float[np.ndarray, "row cls"]:
    if isinstance(reader, ReaderOfWorkers):
        return reader.of_workers(labels, workers)
    return reader.log_likelihood(labels)
