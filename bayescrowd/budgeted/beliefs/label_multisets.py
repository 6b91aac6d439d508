"""Multisets of the labels of one observation: their probabilities given the class.

An outcome of the access path model is the multiset of the W labels of one observation, since
workers share a confusion matrix per feature:

    P(multiset | y) = sum over z of theta_y[z] n! / prod m_x!  prod over x of theta_z[x]^m_x.

Where there would be more than `MOST_OUTCOMES` multisets, an outcome is the multiset of the first
few labels instead, as many as stay within that number: the channel of fewer labels, which is exact
as well and carries less information. (A classifier reads all labels.)
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayescrowd.posterior.conditionals.access_path_sweep import Tables

__all__ = ["CountReader", "MultisetReader", "Multisets", "log_predictive", "multisets"]

MOST_OUTCOMES = 256
"""Largest number of multisets; if there are more, an outcome consists of fewer labels."""

_BLOCK = 4_096
"""Number of rows of labels that are read at once."""


class Multisets(NamedTuple):
    """All multisets of a number of labels."""

    counts: Int[np.ndarray, "outcome value"]
    """How many labels name each value."""
    log_orders: Float[np.ndarray, " outcome"]
    """Logarithm of the number of orders in which these labels can come."""


@lru_cache(maxsize=64)
def multisets(n_values: int, n_labels: int) -> Multisets:
    """All multisets of the labels, or of the first few labels if there would be too many.

    Examples:
        >>> found = multisets(2, 3)
        >>> found.counts.tolist()
        [[3, 0], [2, 1], [1, 2], [0, 3]]
        >>> import numpy as np
        >>> np.exp(found.log_orders).round().tolist()
        [1.0, 3.0, 3.0, 1.0]
    """
    n_read = n_labels
    while n_read > 1 and comb(n_values + n_read - 1, n_read) > MOST_OUTCOMES:
        n_read -= 1
    named = np.array(list(combinations_with_replacement(range(n_values), n_read)))
    counts = (named[:, :, None] == np.arange(n_values)).sum(axis=1)
    return Multisets(counts, gammaln(n_read + 1) - gammaln(counts + 1).sum(axis=1))


def log_predictive(
    chains: Tables, counts: Int[np.ndarray, "row value"]
) -> Float[np.ndarray, "row cls"]:
    """Log P(labels | class) of labels in a given order, averaged over chains.

    Given a chain's values, it is the sum over z of E theta_y[z] times the Dirichlet-multinomial
    probability of the labels.

    Args:
        chains: concentrations of one feature's tables, without padding.
        counts: how many labels of each row name each value.
    """
    conditional, confusion = chains
    mean = conditional / conditional.sum(axis=-1, keepdims=True)
    n_labels = counts.sum(axis=1)
    log_steps = _log_rising(confusion, int(counts.max(initial=0)))
    log_total = np.zeros((*confusion.shape[:2], n_labels.max(initial=0) + 1))
    log_total[..., 1:] = _log_rising(confusion.sum(axis=-1), log_total.shape[-1] - 1).cumsum(-1)
    n_chains, n_values = confusion.shape[:2]
    exceeds = counts[:, :, None] > np.arange(log_steps.shape[-1])
    log_given = log_steps.reshape(n_chains, n_values, -1) @ exceeds.reshape(len(counts), -1).T
    log_given -= log_total[..., n_labels]
    highest = log_given.max(axis=(0, 1))
    given = np.exp(log_given - highest)
    return (np.log((mean @ given).mean(axis=0)) + highest).T


def _log_rising(
    concentration: Float[np.ndarray, "*row"], n_steps: int
) -> Float[np.ndarray, "*row step"]:
    """log(a), log(a + 1), ...: their sum over n steps is log Gamma(a + n) / Gamma(a)."""
    return np.log(concentration[..., None] + np.arange(n_steps))


@runtime_checkable
class CountReader(Protocol):
    """Gives the probability of labels from how many of them name each value."""

    def log_likelihood(self, counts: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class), the labels in a given order."""


class MultisetReader(NamedTuple):
    """Reads any number of labels of a feature, whatever their order."""

    model: Tables | CountReader
    """The feature's chains to average over; or its tables at the mode, or draws of them. All are
    without padding."""
    slots: Int[np.ndarray, " value"]
    """Slot of each value."""
    n_seen: int
    """Number of slots that the answers so far have shown."""

    def log_likelihood(self, labels: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class), the labels in their order; 0 where a row has none."""
        n_values = len(self.slots)
        counts = np.zeros((len(labels), n_values + 1), dtype=np.int64)
        slots = np.append(self.slots, n_values)[labels]
        np.add.at(counts, (np.arange(len(labels))[:, None], slots), 1)
        # Unseen values are exchangeable, but a few chains are not quite symmetric in them.
        counts[:, self.n_seen : -1] = -np.sort(-counts[:, self.n_seen : -1], axis=1)
        distinct, inverse = np.unique(counts[:, :-1], axis=0, return_inverse=True)
        blocks = [
            self._read_counts(distinct[start : start + _BLOCK])
            for start in range(0, len(distinct), _BLOCK)
        ]
        return np.concatenate(blocks)[inverse.reshape(-1)]

    def _read_counts(self, counts: Int[np.ndarray, "row value"]) -> Float[np.ndarray, "row cls"]:
        if isinstance(self.model, Tables):
            return log_predictive(self.model, counts)
        return self.model.log_likelihood(counts)
