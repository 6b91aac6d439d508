"""Conditionals of the access path model on whole tables.

The sweep is that of `access_path_sweep`. An unknown class is drawn given the tables with the values
summed out (`access_path.label_log_joint`), so that the class and the values of an item are one draw
given the tables. A known class is never drawn anew.

Where the rows of groups are pooled (`access_path.Prior.pooling`), the shared rows are drawn with
the other groups' rows integrated out (`shared_concentration`); a group's rows given the shared ones
are Dirichlets of ``pooling`` times these plus its labels.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.categorical import draw_categories
from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path_sweep import Tables, sweep
from bayescrowd.posterior.conditionals.access_path_workers import shared_concentration
from bayescrowd.posterior.conditionals.classes import class_counts, known_classes
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS", "TableReadings"]


class TableReadings(NamedTuple):
    """Readings of whole tables, whose labels are listed one by one."""

    truth: Int[Array, " item"]
    """Class of each item, drawn or known."""
    observations: access_path.Observations
    """Readings and labels."""

    def value_log_weights(self, tables: access_path.Params) -> Float[Array, "reading value"]:
        """See `Readings`."""
        log_joint = access_path.value_log_joint(tables, self.observations)
        return log_joint[jnp.arange(len(log_joint)), self.truth[self.observations.item]]

    def add_counts(self, rows: Tables, values: Int[Array, " reading"]) -> Tables:
        """See `Readings`; tables have axes [feature, ...] and [feature, group, ...]."""
        _, item, feature, reading, group, label = self.observations
        conditional, confusion = map(jnp.asarray, rows)
        return Tables(
            conditional.at[feature, self.truth[item], values].add(1.0),
            confusion.at[feature[reading], group, values[reading], label].add(1.0),
        )


def _prior_concentrations(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> Tables:
    """Dirichlet concentrations before any reading, [feature, ...] and [feature, group, ...]."""
    conditional = access_path.conditional_concentration(
        prior, n_classes=n_classes, n_values=n_values
    )
    confusion = access_path.confusion_concentration(prior, n_values=n_values)[:, None]
    n_features, _, width, _ = confusion.shape
    shape = (n_features, n_groups, width, width)
    return Tables(conditional, jnp.broadcast_to(confusion, shape))


def _first_params(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> access_path.Params:
    """Prior means, under which workers are mostly right."""
    rows = _prior_concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values)
    means = (table / jnp.maximum(table.sum(axis=-1, keepdims=True), 1e-30) for table in rows)
    return access_path.Params(jnp.full(n_classes, 1 / n_classes), *means)


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: access_path.Params,
    observations: access_path.Observations,
    prior: access_path.Prior,
    *,
    n_values: tuple[int, ...],
) -> access_path.Params:
    """Draw the values given classes and parameters, then the parameters given all of them."""
    key_value, key_rows = jax.random.split(rng_key)
    n_classes, n_groups = len(params.prevalence), params.confusion.shape[1]
    before = _prior_concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values)
    if prior.pooling is not None:
        before = before._replace(confusion=before.confusion.at[:, 1:].set(0.0))
    rows = sweep(
        params, TableReadings(truth, observations), before, partial(draw_categories, key_value)
    )
    prevalence = prior.prevalence + class_counts(truth, n_classes)
    if prior.pooling is None:
        return access_path.Params(*dirichlet_tables(key_rows, [prevalence, *rows]))
    key_tables, key_own = jax.random.split(jax.random.fold_in(key_rows, 1))
    by_group = jnp.moveaxis(rows.confusion, 1, 0)
    shared = shared_concentration(
        key_tables,
        by_group[0],
        by_group[1:],
        jnp.asarray(prior.pooling) * params.confusion[:, 0],
        n_labels=len(observations.label),
    )
    prevalence, conditional, shared = dirichlet_tables(
        key_rows, [prevalence, rows.conditional, shared]
    )
    (own,) = dirichlet_tables(key_own, [prior.pooling * shared[None] + by_group[1:]])
    confusion = jnp.moveaxis(jnp.concatenate([shared[None], own]), 0, 1)
    return access_path.Params(prevalence, conditional, confusion)


CONDITIONALS = Conditionals(_first_params, _draw_params, access_path.label_log_joint, known_classes)
"""Conditionals of `bayescrowd.models.access_path`."""
