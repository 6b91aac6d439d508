"""Conditionals of naive Bayes on a table of features.

B. Nushi, A. Singla, A. Krause and D. Kossmann (2016), "Learning and feature selection under budget
constraints in crowdsourcing", HCOMP, figure 2. Given the classes, the tables are Dirichlet rows;
given the tables, the classes of the items are independent. A known class is never drawn anew.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models import naive_bayes
from bayescrowd.posterior.conditionals.classes import class_counts, known_classes
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS"]


def _first_params(
    prior: naive_bayes.Prior, *, n_classes: int, n_values: tuple[int, ...]
) -> naive_bayes.Params:
    """Prior means."""
    rows = naive_bayes.conditional_concentration(prior, n_classes=n_classes, n_values=n_values)
    conditional = rows / rows.sum(axis=-1, keepdims=True)
    return naive_bayes.Params(jnp.full(n_classes, 1 / n_classes), conditional)


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: naive_bayes.Params,
    observations: naive_bayes.Observations,
    prior: naive_bayes.Prior,
    *,
    n_values: tuple[int, ...],
) -> naive_bayes.Params:
    """Draw the parameters given the classes."""
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


CONDITIONALS = Conditionals(_first_params, _draw_params, naive_bayes.label_log_joint, known_classes)
"""Conditionals of `bayescrowd.models.naive_bayes`."""
