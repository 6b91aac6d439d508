"""The access path model of one feature on readings that are grouped: equal ones count together.

A feature of v values has at most C(v + W - 1, W) different readings of W labels per class, however
long the table. Two things need nothing but how often each occurs, where the classes are known
(Nushi et al. 2016, 'Access Path model'):

* Gibbs sweeps: of a group's readings, a multinomial number has each hidden value,

      P(z | y, labels)  proportional to  theta_y[z] prod over labels of theta_z[x].

  The sweeps of `bayescrowd.posterior.gibbs_readings`, whose readings are single, are faster while
  they are few and keep coming; 10,000 readings in 500 groups take a tenth of the time here.
* The posterior mode, by EM (Dempster, Laird and Rubin 1977) with these probabilities as E-step,
  from the tables of every chain at once; the start that ends highest is kept. In the M-step rows
  are proportional to their concentrations less one, prior and expected counts in them.
  Concentrations below one have no inner mode: their values get none, as in naive Bayes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

__all__ = ["Chains", "Groups", "Mode", "dirichlet", "grouped", "posterior_mode", "sweep_groups"]

N_EM = 200
"""Steps of EM from each start; the tables of a feature move by less than 1e-4 long before."""

_LEAST = 1e-300
"""Under logarithms and divisions: a value that does not occur."""


class Chains(NamedTuple):
    """Dirichlet concentrations of a feature's tables given the values that each chain holds."""

    conditional: Float[np.ndarray, "*feature chain cls value"]
    """Of the values given the class (theta_y): prior + readings."""
    confusion: Float[np.ndarray, "*feature chain value value"]
    """Of the labels given the value (theta_z): prior + labels."""


class Groups(NamedTuple):
    """Different readings, and how often each was made."""

    cls: Int[np.ndarray, " group"]
    """Class of the item."""
    counts: Float[np.ndarray, "group label"]
    """How many of the labels name each value."""
    n_equal: Int[np.ndarray, " group"]
    """Number of such readings."""


class Mode(NamedTuple):
    """Tables at the posterior mode."""

    conditional: Float[np.ndarray, "cls value"]
    """P(value | class)."""
    confusion: Float[np.ndarray, "value label"]
    """P(label | value)."""

    def log_likelihood(self, counts: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) in their order, from how many of a row's labels name each value."""
        log_given = counts @ np.log(self.confusion + _LEAST).T
        return logsumexp(log_given[:, None, :] + np.log(self.conditional + _LEAST), axis=-1)


def grouped(
    target: Int[np.ndarray, " reading"], counts: Float[np.ndarray, "reading label"]
) -> Groups:
    """Readings by class and labels.

    Examples:
        >>> import numpy as np
        >>> grouped(np.array([1, 0, 1]), np.array([[2.0, 1.0], [3.0, 0.0], [2.0, 1.0]])).n_equal
        array([1, 2])
    """
    group = target
    for labels in counts.T.astype(np.int64):  # sorting numbers takes a tenth of sorting rows
        _, group = np.unique(group * (labels.max(initial=0) + 1) + labels, return_inverse=True)
    _, first, n_equal = np.unique(group, return_index=True, return_counts=True)
    return Groups(target[first], counts[first], n_equal)


def sweep_groups(rng: np.random.Generator, chains: Chains, groups: Groups, prior: Chains) -> Chains:
    """One Gibbs step of every chain: tables given values, then new values.

    Args:
        rng: the source of randomness.
        chains: of one feature.
        groups: all its readings.
        prior: concentrations of the tables before any reading, as of a single chain.
    """
    conditional, confusion = (dirichlet(rng, rows) for rows in chains)
    n_values = rng.multinomial(groups.n_equal, _shares(conditional, confusion, groups))
    is_class = groups.cls[:, None] == np.arange(conditional.shape[1])
    return Chains(
        prior.conditional + is_class.T.astype(float) @ n_values,
        prior.confusion + np.swapaxes(n_values, 1, 2) @ groups.counts,
    )


def posterior_mode(chains: Chains, groups: Groups, prior: Chains) -> Mode:
    """The best mode that EM finds from the mean tables of the chains; arguments as above."""
    conditional, confusion = (rows / rows.sum(axis=-1, keepdims=True) for rows in chains)
    is_class = groups.cls[:, None] == np.arange(conditional.shape[1])
    for _ in range(N_EM):
        n_values = _shares(conditional, confusion, groups) * groups.n_equal[:, None]
        labels = np.swapaxes(n_values, 1, 2) @ groups.counts
        conditional = _mode_rows(prior.conditional - 1 + is_class.T.astype(float) @ n_values)
        confusion = _mode_rows(prior.confusion - 1 + labels)
    height = logsumexp(_log_joint(conditional, confusion, groups), axis=-1) @ groups.n_equal
    for rows, before in zip((conditional, confusion), prior, strict=True):
        height = height + (np.maximum(before - 1, 0) * np.log(rows + _LEAST)).sum(axis=(1, 2))
    best = int(height.argmax())
    return Mode(conditional[best], confusion[best])


def dirichlet(
    rng: np.random.Generator, concentration: Float[np.ndarray, "*row value"]
) -> Float[np.ndarray, "*row value"]:
    """A draw per row, zero where the concentration is; rows without any stay zero."""
    gamma = rng.standard_gamma(concentration)
    gamma += np.where(concentration > 0, _LEAST, 0.0)
    return gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), _LEAST)


def _shares(
    conditional: Float[np.ndarray, "chain cls value"],
    confusion: Float[np.ndarray, "chain value label"],
    groups: Groups,
) -> Float[np.ndarray, "chain group value"]:
    """P(z | y, labels) of each group."""
    shares = _log_joint(conditional, confusion, groups)
    shares -= shares.max(axis=-1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _log_joint(
    conditional: Float[np.ndarray, "chain cls value"],
    confusion: Float[np.ndarray, "chain value label"],
    groups: Groups,
) -> Float[np.ndarray, "chain group value"]:
    log_labels = groups.counts @ np.log(confusion + _LEAST).swapaxes(1, 2)
    return np.log(conditional + _LEAST)[:, groups.cls] + log_labels


def _mode_rows(
    excess: Float[np.ndarray, "chain row value"],
) -> Float[np.ndarray, "chain row value"]:
    """Rows proportional to concentrations less one; even where none is above one."""
    rows = np.maximum(excess, 0)
    rows = np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, 1.0)
    return rows / rows.sum(axis=-1, keepdims=True)
