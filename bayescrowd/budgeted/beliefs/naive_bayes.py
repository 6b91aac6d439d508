"""What is believed of the features' channels P(outcome | class), given the answers so far.

Policies see features through channels alone. An *outcome* is what one observation of a feature
amounts to: for naive Bayes one of the feature's values, the majority of its labels. A belief takes
observations in and gives channels out: a draw from the posterior, or its mean. Tables indexed
[feature, cls, outcome] hold zeros beyond a feature's last outcome.

A belief is a value: taking in an observation returns another belief, which shares what has not
changed, and leaves the first as it was. Caches that do not change what a belief says are allowed.

`NaiveBayesBelief` has the conjugate posterior of `bayescrowd.models.naive_bayes`: Dirichlet rows,
drawn exactly and independently. It takes one value per observation, as in the paper. Of tied values
it takes the one named first, which is a fair choice when workers answer in random order.

Values come as *slots*, numbered in the order in which a feature's answers first showed them. The
prior treats values alike, so those not seen yet need no names, and other names for the values
give the same draws.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayescrowd.budgeted.beliefs.credibility import Credibility, Measure, rows_credibility
from bayescrowd.budgeted.beliefs.majorities import Votes, first_majority
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import naive_bayes

__all__ = [
    "Belief",
    "ChannelReader",
    "NaiveBayesBelief",
    "PointEstimate",
    "Reader",
    "mode_rows",
    "prior_concentration",
    "value_counts",
]

PointEstimate = Literal["mean", "map"]
"""Which point of the posterior a classifier uses: its mean, or its mode."""

_LEAST = 1e-300
"""Added to gamma draws, so that a row of very small ones does not become 0 / 0."""


@runtime_checkable
class Reader(Protocol):
    """Says what the labels of one feature reveal of the class, given what has been learned."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) of each row; labels are positions of values, -1 where missing."""


@runtime_checkable
class Belief(Protocol):
    """The posterior of a model's channels, as a value.

    Positions of features and classes are those of the policy's own space.
    """

    n_outcomes: tuple[int, ...]
    """Number of outcomes of each feature."""

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> Belief:
        """The belief after one more observation: labels of a feature of an instance of a class.

        `workers` holds who gave each label: the workers' numbers, in the order in which they first
        appeared; it is empty if that was not told.
        """

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> Belief:
        """The belief after a table: the class of each row and its features' labels, -1 for none."""

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of one model drawn from the posterior."""

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""

    def credibility(
        self,
        feature: int,
        prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """How well the parameters of a feature are known.

        Args:
            feature: position of the feature.
            prior: probability of each class.
            epsilon: half-width of the interval around the mean, for 'interval'.
            measure: measure of concentration; see the module `credibility`.
            required: what the credibilities of both kinds of parameters are compared with. If it
                is given, the result need only be on the right side of both.
        """

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> Reader:
        """A reader of a feature's labels; `slots` holds the slot of each of its values."""


@runtime_checkable
class ReaderOfWorkers(Protocol):
    """Reads labels whose workers are known in a way of their own."""

    def of_workers(
        self, labels: Int[np.ndarray, "row label"], workers: Int[np.ndarray, "row label"]
    ) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class); a worker is -1 where it is not known who gave the label."""


class ChannelReader(NamedTuple):
    """Reads the majority of the labels through a channel P(value | class)."""

    channel: Float[np.ndarray, "cls value"]
    """P(value | class)."""
    votes: Votes
    """How several labels, which may be tied, make one observation."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(majority of the labels | class); 0 where a row has none."""
        n_values = self.channel.shape[1]
        with np.errstate(divide="ignore"):  # a value that the estimate rules out
            if labels.shape[1] == 1:
                by_value = np.zeros((n_values + 1, self.channel.shape[0]))
                by_value[:-1] = np.log(self.channel.T)
                return by_value[labels[:, 0]]
            shares = self.votes(labels, n_values)
            said = np.log(shares @ self.channel.T)
        said[shares.sum(axis=1) == 0] = 0
        return said


class NaiveBayesBelief:
    """Independent Dirichlet rows: the posterior of naive Bayes, in closed form.

    Args:
        space: the features, in the policy's order.

    Examples:
        >>> from bayescrowd.budgeted.space import FeatureSpace
        >>> space = FeatureSpace(classes=["yes", "no"], features={"x": ["a", "b", "c"]})
        >>> belief = NaiveBayesBelief(space).observe(0, 0, (1,))
        >>> belief.rows(0)
        array([[1., 2., 1.],
               [1., 1., 1.]])
        >>> belief.mean()[0, 0]
        array([0.25, 0.5 , 0.25])
    """

    def __init__(self, space: FeatureSpace) -> None:
        self.n_outcomes = space.n_values
        self._concentration = prior_concentration(space)
        self._least = np.where(self._concentration > 0, _LEAST, 0.0)

    def observe(
        self, feature: int, cls: int, labels: tuple[int, ...], workers: tuple[int, ...] = ()
    ) -> NaiveBayesBelief:
        """The belief with an observation added to the counts of its row."""
        concentration = self._concentration.copy()
        row = concentration[feature, cls]
        if len(labels) == 1:
            row[labels[0]] += 1
        else:
            row += first_majority(np.array([labels]), len(row))[0]
        return self._copy_with(concentration)

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> NaiveBayesBelief:
        """The belief with a whole table added to the counts."""
        shape = self._concentration.shape
        counts = value_counts(target, labels, shape, first_majority)
        return self._copy_with(self._concentration + counts)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels drawn from the posterior, exactly."""
        gamma = rng.standard_gamma(self._concentration)
        gamma += self._least
        gamma /= gamma.sum(axis=-1, keepdims=True)
        return gamma

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""
        return self._concentration / self._concentration.sum(axis=-1, keepdims=True)

    def credibility(
        self,
        feature: int,
        prior: Float[np.ndarray, " cls"],
        *,
        epsilon: float,
        measure: Measure,
        required: tuple[float, float] | None = None,
    ) -> Credibility:
        """Equation 1 in closed form."""
        return rows_credibility(self.rows(feature), prior, epsilon=epsilon, measure=measure)

    def rows(self, feature: int) -> Float[np.ndarray, "cls value"]:
        """Concentrations of a feature's values given each class."""
        return self._concentration[feature, :, : self.n_outcomes[feature]]

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: PointEstimate
    ) -> ChannelReader:
        """A reader of values at the posterior mean, or at its mode."""
        rows = self.rows(feature)
        mean = rows / rows.sum(axis=1, keepdims=True)
        channel = mode_rows(rows) if estimate == "map" else mean
        return ChannelReader(channel[:, slots], first_majority)

    def _copy_with(self, concentration: Float[np.ndarray, "feature cls value"]) -> NaiveBayesBelief:
        changed = copy(self)
        changed._concentration = concentration
        return changed


def mode_rows(concentration: Float[np.ndarray, "row value"]) -> Float[np.ndarray, "row value"]:
    """Modes of Dirichlet rows; a row without evidence for any value is even.

    A concentration below one has no inner mode; its value then has probability zero.

    Examples:
        >>> import numpy as np
        >>> mode_rows(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])).round(2)
        array([[0.67, 0.33, 0.  ],
               [0.33, 0.33, 0.33]])
    """
    rows = np.maximum(concentration - 1, 0)
    rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 1.0)
    return rows / rows.sum(axis=1, keepdims=True)


def value_counts(
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
    shape: tuple[int, ...],
    votes: Votes,
) -> Float[np.ndarray, "feature cls value"]:
    """How often the majority of the labels was each value, by feature and class."""
    counts = np.zeros(shape)
    for f in range(shape[0]):
        np.add.at(counts[f], target, votes(labels[:, f], shape[2]))
    return counts


def prior_concentration(space: FeatureSpace) -> Float[np.ndarray, "feature cls value"]:
    """Concentrations of naive Bayes before the first answer, zero beyond a feature's last value."""
    return _prior_concentration(space.strength, space.n_classes, space.n_values)


@lru_cache(maxsize=64)
def _prior_concentration(
    strength: float, n_classes: int, n_values: tuple[int, ...]
) -> Float[np.ndarray, "feature cls value"]:
    prior = naive_bayes.Prior(conditional=strength)
    table = naive_bayes.conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    return np.asarray(table, dtype=float)
