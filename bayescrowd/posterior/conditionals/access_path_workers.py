"""Chains of one feature of the access path model in which some workers have their own parameters.

The model is that of `access_path.Prior.pooling`: the first group of workers shares the rows of the
confusion matrix, and each further group has rows of its own, Dirichlets of `pooling` times the
shared ones. The state of a chain is what its tables are drawn from given the values of the
readings: the concentrations of the rows of both shared tables, and the other groups' labels by
value. The shared rows are drawn with the other groups' integrated out: given the numbers t of
tables of `restaurant_tables`, they are Dirichlets with the first group's labels and all t added to
the concentrations, as in `hierarchical_dawid_skene`. Tables drawn from it are
those of a full sweep:

    theta_y, shared rows:  Dirichlet(concentrations)
    a group's rows:        Dirichlet(pooling * shared rows + its labels)
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import dirichlet_rows, dirichlet_tables
from bayescrowd.draws.restaurant_tables import table_counts
from bayescrowd.posterior.conditionals.access_path_feature import draw_dirichlet
from bayescrowd.posterior.conditionals.access_path_sweep import FeatureReadings, Tables, sweep

__all__ = ["PooledTables", "draw_groups", "shared_concentration", "sweep_pooled"]


class PooledTables(NamedTuple):
    """What the tables of chains are drawn from, given the values of the readings."""

    shared: Tables
    """Concentrations of the values given the class, and of the shared rows."""
    own: Float[Array | np.ndarray, "chain group value value"]
    """Labels of each group after the first, indexed [chain, group, true, observed]."""


@partial(jax.jit, static_argnames="n_labels")
def sweep_pooled(
    rng_key: PRNGKeyArray,
    state: PooledTables,
    readings: FeatureReadings,
    prior: Tables,
    pooling: float | Float[Array, ""],
    *,
    n_labels: int,
) -> PooledTables:
    """One Gibbs step of many chains: tables given values, new values, then the groups' tables.

    Args:
        rng_key: the source of randomness.
        state: the chains. Readings that have been added since have no value in them yet.
        readings: all readings of the feature; `counts` is [reading, group * value], the first
            group's labels first.
        prior: concentrations before any reading, without the axis of chains.
        pooling: pseudo-labels with which a group's rows are drawn toward the shared ones.
        n_labels: number of labels, at least as many as the readings have.
    """
    key_shared, key_own, key_value, key_tables = jax.random.split(rng_key, 4)
    conditional, shared = dirichlet_tables(key_shared, state.shared)
    own = dirichlet_rows(key_own, pooling * shared[:, None] + state.own)
    groups = jnp.concatenate([shared[:, None], own], axis=1)
    n_chains, n_groups, width, _ = groups.shape

    def choose(log_weights: Float[Array, "chain slot value"]) -> Float[Array, "chain slot value"]:
        return jax.nn.one_hot(draw_categories(key_value, log_weights), width)

    rows = sweep(
        Tables(conditional, groups.swapaxes(1, 2).reshape(n_chains, width, -1)),
        readings,
        Tables(prior.conditional, jnp.zeros((width, n_groups * width))),
        choose,
    )
    counts = rows.confusion.reshape(n_chains, width, n_groups, width).swapaxes(1, 2)
    shared = jax.vmap(partial(shared_concentration, n_labels=n_labels))(
        jax.random.split(key_tables, n_chains),
        prior.confusion + counts[:, 0],
        counts[:, 1:],
        pooling * shared,
    )
    return PooledTables(Tables(rows.conditional, shared), counts[:, 1:])


def draw_groups(
    rng: np.random.Generator, state: PooledTables, pooling: float
) -> Float[np.ndarray, "chain group value value"]:
    """The confusion matrices of all groups, the shared one first, drawn once for each chain."""
    shared = draw_dirichlet(rng, state.shared.confusion)[:, None]
    own = draw_dirichlet(rng, pooling * shared + state.own)
    return np.concatenate([shared, own], axis=1)


def shared_concentration(
    rng_key: PRNGKeyArray,
    of_first: Float[Array, "*cell"],
    counts: Float[Array, "group ..."],
    pooled: Float[Array, "*cell"],
    *,
    n_labels: int,
) -> Float[Array, "*cell"]:
    """Concentrations of the shared rows given the values, with the other groups' integrated out.

    Args:
        rng_key: the source of randomness.
        of_first: concentrations given the labels of the first group alone.
        counts: how many labels of each other group there are, by true value and label.
        pooled: concentrations of these groups' rows: `pooling` times the shared rows before.
        n_labels: number of labels, at least as many as there are in the counts.
    """
    if len(counts) == 0:
        return of_first
    return of_first + table_counts(rng_key, counts, pooled, n_labels=n_labels)
