"""Conditionals of the one-coin model.

Given the true classes, prevalence is a Dirichlet row and each accuracy a beta variable, with the
counts of classes and of right and wrong answers added to their concentrations (see
`bayescrowd.models.one_coin`).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.models.one_coin import Labels, Params, Prior, accuracy_concentration, confusion
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    classes_alone,
    coin_counts,
    labels_log_joint,
    log_dirichlet_multinomial,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS"]


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means."""
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        accuracy=jnp.full(n_workers, prior.accuracy),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """Parameters given the classes."""
    is_right = truth[labels.item] == labels.label
    coins = coin_counts(is_right, labels.worker, len(params.accuracy))
    prevalence, rows = dirichlet_tables(
        rng_key,
        [
            prior.prevalence + class_counts(truth, len(params.prevalence)),
            coins + accuracy_concentration(prior),
        ],
    )
    return Params(prevalence, accuracy=rows[:, 0])


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(confusion(params), params.prevalence, labels, n_items=n_items)


def _log_density(
    truth: Int[Array, " item"], labels: Labels, prior: Prior, *, n_workers: int, n_classes: int
) -> Float[Array, ""]:
    """Log density of classes and labels, all parameters integrated out."""
    is_right = truth[labels.item] == labels.label
    coins = coin_counts(is_right, labels.worker, n_workers)
    of_classes = class_counts(truth, n_classes)
    rows = jnp.broadcast_to(accuracy_concentration(prior), coins.shape)
    return (
        log_dirichlet_multinomial(of_classes, jnp.full(n_classes, prior.prevalence))
        + log_dirichlet_multinomial(coins, rows).sum()
        # A wrong answer is one of the others with equal probability.
        - coins[:, 1].sum() * jnp.log(n_classes - 1)
    )


CONDITIONALS = Conditionals(
    _first_params,
    _draw_params,
    _log_joint,
    vote_shares,
    collapsed=classes_alone(_log_density),
)
"""Conditionals of `bayescrowd.models.one_coin`."""
