"""Conditionals of models of features: naive Bayes, and the access path model with noisy readings.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figures 2 and 3. Given the classes, and in the access path
model the values of all readings, the tables are Dirichlet rows. Given tables and classes, the
values of readings are independent; the classes are drawn with the values summed out, so that class
and values of an item are one draw given the tables. A known class stays what it is.

For features whose classes are all known, one at a time, see `bayescrowd.posterior.gibbs_readings`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.categorical import draw_categories
from bayescrowd.dirichlet import dirichlet_tables
from bayescrowd.models import access_path, naive_bayes
from bayescrowd.posterior.gibbs_crowd import class_counts
from bayescrowd.posterior.gibbs_readings import concentrations, prior_means

__all__ = [
    "draw_access_path",
    "draw_naive_bayes",
    "first_access_path",
    "first_naive_bayes",
    "known_classes",
]


def known_classes(
    observations: naive_bayes.Observations | access_path.Observations,
    *,
    n_items: int,
    n_classes: int,
) -> Float[Array, "item cls"]:
    """Probabilities to start from: 0 and 1 where the class is known, even where it is not."""
    is_known = (observations.target >= 0)[:, None]
    return jnp.where(is_known, jax.nn.one_hot(observations.target, n_classes), 1 / n_classes)


def first_naive_bayes(
    prior: naive_bayes.Prior, *, n_classes: int, n_values: tuple[int, ...]
) -> naive_bayes.Params:
    """Prior means."""
    rows = naive_bayes.conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    conditional = rows / rows.sum(axis=-1, keepdims=True)
    return naive_bayes.Params(jnp.full(n_classes, 1 / n_classes), conditional)


def draw_naive_bayes(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: naive_bayes.Params,
    observations: naive_bayes.Observations,
    prior: naive_bayes.Prior,
    *,
    n_values: tuple[int, ...],
) -> naive_bayes.Params:
    """Parameters given the classes."""
    item, feature, value = observations.item, observations.feature, observations.value
    n_classes = len(params.prevalence)
    rows = naive_bayes.conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    prevalence, conditional = dirichlet_tables(
        rng_key,
        [
            prior.prevalence + class_counts(truth, n_classes),
            rows.at[feature, truth[item], value].add(1.0),
        ],
    )
    return naive_bayes.Params(prevalence, conditional)


def first_access_path(
    prior: access_path.Prior, *, n_groups: int, n_classes: int, n_values: tuple[int, ...]
) -> access_path.Params:
    """Prior means."""
    rows = concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values)
    conditional, confusion = map(jnp.asarray, prior_means(rows))
    return access_path.Params(jnp.full(n_classes, 1 / n_classes), conditional, confusion)


def draw_access_path(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: access_path.Params,
    observations: access_path.Observations,
    prior: access_path.Prior,
    *,
    n_values: tuple[int, ...],
) -> access_path.Params:
    """The values given classes and parameters, then the parameters given classes and values."""
    key_value, key_rows = jax.random.split(rng_key)
    _, item, feature, reading, group, label = observations
    log_joint = access_path.value_log_joint(params, observations)
    own_class = truth[item]
    value = draw_categories(key_value, log_joint[jnp.arange(len(item)), own_class])
    n_classes = len(params.prevalence)
    n_groups = params.confusion.shape[1]
    of_value, of_label = map(
        jnp.asarray,
        concentrations(prior, n_groups=n_groups, n_classes=n_classes, n_values=n_values),
    )
    prevalence, conditional, confusion = dirichlet_tables(
        key_rows,
        [
            prior.prevalence + class_counts(truth, n_classes),
            of_value.at[feature, own_class, value].add(1.0),
            of_label.at[feature[reading], group, value[reading], label].add(1.0),
        ],
    )
    return access_path.Params(prevalence, conditional, confusion)
