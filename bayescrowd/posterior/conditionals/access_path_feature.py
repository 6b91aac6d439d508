"""Chains of one feature of the access path model whose classes are all known.

Where all classes are known, features are independent a posteriori, so a feature with new answers is
drawn anew without looking at the others. The state of a chain is the concentrations of its tables
given the values, so that means are averages of closed forms over few chains. Each function makes
the sweep of `access_path_sweep` with its own choice of values:

* `sweep_chains`, in JAX: many chains at once, for readings that are few and keep coming.
* `sweep_groups`, in NumPy: equal readings are counted together, and a multinomial number of a
  group's readings has each hidden value. A feature of v values has at most C(v + W - 1, W)
  different readings of W labels per class, however long the table: 10,000 readings in 500 groups
  take a tenth of the time of `sweep_chains`.
* `posterior_mode`, by EM (Dempster, Laird and Rubin 1977): a value's expectation takes the place of
  its draw. EM starts from the tables of all chains at once, and the start that ends highest is
  kept. In the M-step, rows are proportional to their concentrations less one. Concentrations below
  one have no inner mode: their values get zero, as in naive Bayes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.special import logsumexp

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import dirichlet_rows
from bayescrowd.posterior.conditionals.access_path_sweep import (
    LEAST,
    FeatureReadings,
    Tables,
    sweep,
)

__all__ = [
    "Groups",
    "Mode",
    "draw_dirichlet",
    "group_readings",
    "posterior_mode",
    "sweep_chains",
    "sweep_groups",
]

N_EM = 200
"""Number of EM steps from each start; tables move by less than 1e-4 long before the last."""


class Groups(NamedTuple):
    """Different readings of one feature, and how often each was made."""

    readings: FeatureReadings
    """One reading of each group."""
    n_equal: Int[np.ndarray, " group"]
    """Number of readings in each group."""


class Mode(NamedTuple):
    """Tables at the posterior mode."""

    conditional: Float[np.ndarray, "cls value"]
    """P(value | class)."""
    confusion: Float[np.ndarray, "value label"]
    """P(label | value)."""

    def log_likelihood(self, counts: Int[np.ndarray, "row label"]) -> Float[np.ndarray, "row cls"]:
        """Log P(labels | class) in their order, from how many of a row's labels name each value."""
        log_given = counts @ np.log(self.confusion + LEAST).T
        return logsumexp(log_given[:, None, :] + np.log(self.conditional + LEAST), axis=-1)


@jax.jit
def sweep_chains(
    rng_key: PRNGKeyArray, concentration: Tables, readings: FeatureReadings, prior: Tables
) -> Tables:
    """One Gibbs step of many chains of one feature: tables given values, then new values.

    JAX compiles it anew for each number of slots.

    Args:
        rng_key: the source of randomness.
        concentration: concentrations of each chain's tables given its values, along a leading axis.
            Readings that have been added since have no value in them yet.
        readings: all readings of the feature.
        prior: concentrations before any reading, without the axis of chains.

    Returns:
        Concentrations given the new values.

    Examples:
        One feature of two values, ten items of each of two classes, three labels for each:

        >>> import jax, numpy as np
        >>> target = np.repeat([0, 1], 10)
        >>> counts = np.where(target[:, None] == 0, [3.0, 0.0], [1.0, 2.0])
        >>> readings = FeatureReadings(target, counts.astype(np.float32))
        >>> prior = Tables(np.ones((2, 2), np.float32), np.float32([[4, 1], [1, 4]]))
        >>> chains = Tables(*(np.repeat(rows[None], 100, axis=0) for rows in prior))
        >>> for key in jax.random.split(jax.random.key(0), 10):
        ...     chains = sweep_chains(key, chains, readings, prior)
        >>> chains.conditional.mean(axis=0).argmax(axis=1).tolist()
        [0, 1]
        >>> chains.conditional.sum(axis=2)[0].tolist()  # ten readings and two pseudo-readings
        [12.0, 12.0]
    """
    key_tables, key_value = jax.random.split(rng_key)

    def choose(log_weights: Float[Array, "chain slot value"]) -> Float[Array, "chain slot value"]:
        return jax.nn.one_hot(draw_categories(key_value, log_weights), log_weights.shape[-1])

    return sweep(_draw_tables(key_tables, concentration), readings, prior, choose)


def _draw_tables(rng_key: PRNGKeyArray, concentration: Tables) -> Tables:
    """Both tables in one call of the generator: a second would double the compilation time."""
    n_classes = concentration.conditional.shape[-2]
    rows = dirichlet_rows(rng_key, jnp.concatenate(concentration, axis=-2))
    return Tables(rows[..., :n_classes, :], rows[..., n_classes:, :])


def group_readings(readings: FeatureReadings) -> Groups:
    """Group readings by class and labels.

    Examples:
        >>> import numpy as np
        >>> labels = np.array([[2.0, 1.0], [3.0, 0.0], [2.0, 1.0]])
        >>> group_readings(FeatureReadings(np.array([1, 0, 1]), labels)).n_equal
        array([1, 2])
    """
    target, counts = (np.asarray(field) for field in readings)
    group = target
    for labels in counts.T.astype(np.int64):  # sorting numbers takes a tenth of sorting rows
        _, group = np.unique(group * (labels.max(initial=0) + 1) + labels, return_inverse=True)
    _, first, n_equal = np.unique(group, return_index=True, return_counts=True)
    return Groups(FeatureReadings(target[first], counts[first].astype(float)), n_equal)


def sweep_groups(
    rng: np.random.Generator, concentration: Tables, groups: Groups, prior: Tables
) -> Tables:
    """One Gibbs step of every chain: tables given values, then new values.

    Args:
        rng: the source of randomness.
        concentration: concentrations of each chain's tables given its values, along a leading axis.
        groups: all readings of the feature.
        prior: concentrations before any reading, without the axis of chains.

    Returns:
        Concentrations given the new values.
    """
    tables = Tables(*(draw_dirichlet(rng, rows) for rows in concentration))

    return sweep(
        tables,
        groups.readings,
        prior,
        choose=lambda log_weights: rng.multinomial(groups.n_equal, _shares(log_weights)),
    )


def posterior_mode(concentration: Tables, groups: Groups, prior: Tables) -> Mode:
    """The best mode that EM finds from the mean tables of the chains; see `sweep_groups`."""
    tables = Tables(*(rows / rows.sum(axis=-1, keepdims=True) for rows in concentration))
    excess = Tables(*(rows - 1 for rows in prior))
    n_equal = groups.n_equal[:, None]
    for _ in range(N_EM):
        rows = sweep(tables, groups.readings, excess, lambda weights: _shares(weights) * n_equal)
        tables = Tables(*map(_mode_rows, rows))
    height = logsumexp(groups.readings.value_log_weights(tables), axis=-1) @ groups.n_equal
    for found, above in zip(tables, excess, strict=True):
        height = height + (np.maximum(above, 0) * np.log(found + LEAST)).sum(axis=(1, 2))
    best = int(height.argmax())
    return Mode(tables.conditional[best], tables.confusion[best])


def draw_dirichlet(
    rng: np.random.Generator, concentration: Float[np.ndarray, "*row value"]
) -> Float[np.ndarray, "*row value"]:
    """One draw per row, zero where the concentration is zero; rows of zeros stay zero."""
    gamma = rng.standard_gamma(concentration)
    gamma += np.where(concentration > 0, LEAST, 0.0)
    return gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), LEAST)


def _shares(
    log_weights: Float[np.ndarray, "chain group value"],
) -> Float[np.ndarray, "chain group value"]:
    """Probabilities from the logarithms of weights, which they replace in memory."""
    shares = log_weights
    shares -= shares.max(axis=-1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _mode_rows(
    excess: Float[np.ndarray, "chain row value"],
) -> Float[np.ndarray, "chain row value"]:
    """Rows proportional to concentrations less one; uniform where no concentration exceeds one."""
    rows = np.maximum(excess, 0)
    rows = np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, 1.0)
    return rows / rows.sum(axis=-1, keepdims=True)
