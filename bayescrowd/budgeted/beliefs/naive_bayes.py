"""What is believed of the features' channels P(outcome | class), given the answers so far.

Policies see features through channels alone. An *outcome* is what one observation of a feature
amounts to: for naive Bayes one of the feature's values, the majority of its labels. A belief takes
outcomes in, and gives channels out: a draw from the posterior, or its mean. Tables indexed
[feature, cls, outcome] hold zeros beyond a feature's last outcome.

`NaiveBayesBelief` has the conjugate posterior of `bayescrowd.models.naive_bayes`: Dirichlet rows,
drawn exactly and independently. It takes one value per observation, as in the paper: of tied ones
the value that was named first, which is any of them alike where workers come in any order.

Values come as *slots*, numbered in the order in which a feature's answers first showed them. The
prior treats values alike, so those not seen yet need no names, and other names for the values
give the same draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import naive_bayes

__all__ = [
    "Belief",
    "ChannelReader",
    "Estimate",
    "NaiveBayesBelief",
    "Reader",
    "Votes",
    "first_majority",
    "majority_shares",
    "mode_rows",
    "prior_concentration",
    "value_counts",
]

Estimate = Literal["mean", "map"]

Votes = Callable[[Int[np.ndarray, "row label"], int], Float[np.ndarray, "row value"]]
"""One observation per row from its labels, given the number of values."""

_LEAST = 1e-300
"""Added to gamma draws: a row of very small ones does not become 0 / 0."""


@runtime_checkable
class Reader(Protocol):
    """What the labels of one feature say of the class; made once the learning is over."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) of each row; labels are positions of values, -1 where missing."""


@runtime_checkable
class Belief(Protocol):
    """The posterior of a model's channels. Positions are those of the policy's own space."""

    n_outcomes: tuple[int, ...]
    """Number of outcomes of each feature."""

    def observe(self, feature: int, cls: int, labels: tuple[int, ...]) -> None:
        """Take in one observation of a feature on an instance of a class."""

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> None:
        """Take in a whole table: the class of each row, and labels of its features, -1 for none."""

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels of one model drawn from the posterior."""

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""

    def rows(self, feature: int) -> list[Float[np.ndarray, "row value"]]:
        """Dirichlet concentrations whose spread the credibility of a feature measures.

        The first table has a row per class; any further one, such as of workers, rows of its own.
        """

    def reader(self, feature: int, slots: Int[np.ndarray, " value"], estimate: Estimate) -> Reader:
        """How labels of a feature are read; `slots` holds the slot of each of its values."""


class ChannelReader(NamedTuple):
    """Reads the majority of the labels through a channel."""

    channel: Float[np.ndarray, "cls value"]
    """P(value | class)."""
    votes: Votes
    """How labels make one observation, tied ones above all."""

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
        >>> belief = NaiveBayesBelief(space)
        >>> belief.observe(0, 0, (1,))
        >>> belief.rows(0)[0]
        array([[1., 2., 1.],
               [1., 1., 1.]])
        >>> belief.mean()[0, 0]
        array([0.25, 0.5 , 0.25])
    """

    def __init__(self, space: FeatureSpace) -> None:
        self.n_outcomes = space.n_values
        self._concentration = prior_concentration(space).copy()
        self._least = np.where(self._concentration > 0, _LEAST, 0.0)

    def observe(self, feature: int, cls: int, labels: tuple[int, ...]) -> None:
        """Add an observation to the counts of its row."""
        row = self._concentration[feature, cls]
        if len(labels) == 1:
            row[labels[0]] += 1
        else:
            row += first_majority(np.array([labels]), len(row))[0]

    def observe_all(
        self, target: Int[np.ndarray, " row"], labels: Int[np.ndarray, "row feature label"]
    ) -> None:
        """Add a whole table to the counts."""
        shape = self._concentration.shape
        self._concentration += value_counts(target, labels, shape, first_majority)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "feature cls outcome"]:
        """Channels drawn from the posterior, exactly."""
        gamma = rng.standard_gamma(self._concentration)
        gamma += self._least
        gamma /= gamma.sum(axis=-1, keepdims=True)
        return gamma

    def mean(self) -> Float[np.ndarray, "feature cls outcome"]:
        """Posterior mean of the channels."""
        return self._concentration / self._concentration.sum(axis=-1, keepdims=True)

    def rows(self, feature: int) -> list[Float[np.ndarray, "row value"]]:
        """Concentrations given each class."""
        return [self._concentration[feature, :, : self.n_outcomes[feature]]]

    def reader(
        self, feature: int, slots: Int[np.ndarray, " value"], estimate: Estimate
    ) -> ChannelReader:
        """Reads values at the posterior mean, or at its mode."""
        (rows,) = self.rows(feature)
        mean = rows / rows.sum(axis=1, keepdims=True)
        channel = mode_rows(rows) if estimate == "map" else mean
        return ChannelReader(channel[:, slots], first_majority)


def mode_rows(concentration: Float[np.ndarray, "row value"]) -> Float[np.ndarray, "row value"]:
    """Modes of Dirichlet rows; even where nothing speaks for any value.

    Below one a density has no inner mode; the least frequent values then have none.

    Examples:
        >>> import numpy as np
        >>> mode_rows(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])).round(2)
        array([[0.67, 0.33, 0.  ],
               [0.33, 0.33, 0.33]])
    """
    rows = np.maximum(concentration - 1, 0)
    rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 1.0)
    return rows / rows.sum(axis=1, keepdims=True)


def majority_shares(
    labels: Int[np.ndarray, "row label"], n_values: int
) -> Float[np.ndarray, "row value"]:
    """One observation per row, shared evenly by its most frequent labels; zeros without labels.

    Examples:
        >>> import numpy as np
        >>> majority_shares(np.array([[0, 2, 2], [1, 0, -1]]), 3)
        array([[0. , 0. , 1. ],
               [0.5, 0.5, 0. ]])
    """
    if labels.shape[1] == 1:
        return (labels == np.arange(n_values)).astype(float)
    leads = _leads(labels, n_values)
    return leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)


def first_majority(
    labels: Int[np.ndarray, "row label"], n_values: int
) -> Float[np.ndarray, "row value"]:
    """One observation per row, of its most frequent label; of those tied, the one named first.

    Examples:
        >>> import numpy as np
        >>> first_majority(np.array([[0, 2, 2], [1, 0, -1]]), 3)
        array([[0., 0., 1.],
               [0., 1., 0.]])
    """
    if labels.shape[1] == 1:
        return (labels == np.arange(n_values)).astype(float)
    leads = np.append(_leads(labels, n_values), np.zeros((len(labels), 1), dtype=bool), axis=1)
    rows = np.arange(len(labels))
    named = labels[rows, leads[rows[:, None], labels].argmax(axis=1)]
    return (named[:, None] == np.arange(n_values)).astype(float)


def _leads(labels: Int[np.ndarray, "row label"], n_values: int) -> Bool[np.ndarray, "row value"]:
    """Which values are named most often."""
    votes = np.zeros((len(labels), n_values + 1))
    np.add.at(votes, (np.arange(len(labels))[:, None], labels), 1)
    votes = votes[:, :-1]
    most = votes.max(axis=1, keepdims=True)
    return (votes == most) & (most > 0)


def value_counts(
    target: Int[np.ndarray, " row"],
    labels: Int[np.ndarray, "row feature label"],
    shape: tuple[int, ...],
    votes: Votes,
) -> Float[np.ndarray, "feature cls value"]:
    """How often the majority of the labels showed each value, by feature and class."""
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
