"""Conditionals of MACE.

Given the true classes and, for each label, whether its worker knew the answer, prevalence,
competences and strategies are Dirichlet rows with the counts added to their concentrations (see
`bayescrowd.models.mace`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bayescrowd.draws.dirichlet import dirichlet_tables
from bayescrowd.draws.uniforms import draw_uniforms
from bayescrowd.models.mace import (
    Labels,
    Params,
    Prior,
    competence_concentration,
    confusion,
    knowing_given_truth,
)
from bayescrowd.posterior.conditionals.classes import class_counts
from bayescrowd.posterior.conditionals.crowd_labels import (
    coin_counts,
    labels_log_joint,
    vote_shares,
)
from bayescrowd.posterior.conditionals.protocol import Conditionals

__all__ = ["CONDITIONALS"]


def _first_params(prior: Prior, *, n_workers: int, n_classes: int) -> Params:
    """Prior means."""
    return Params(
        prevalence=jnp.full(n_classes, 1 / n_classes),
        competence=jnp.full(n_workers, prior.knowing / (prior.knowing + prior.spamming)),
        strategy=jnp.full((n_workers, n_classes), 1 / n_classes),
    )


def _draw_params(
    rng_key: PRNGKeyArray,
    truth: Int[Array, " item"],
    params: Params,
    labels: Labels,
    prior: Prior,
) -> Params:
    """The coins given classes and parameters, then the parameters given classes and coins."""
    key_coins, key_rows = jax.random.split(rng_key)
    n_workers, n_classes = params.strategy.shape
    knowing = knowing_given_truth(params, labels, truth)
    knew = draw_uniforms(key_coins, knowing.shape) < knowing
    spam = jnp.zeros_like(params.strategy).at[labels.worker, labels.label].add(1.0 - knew)
    prevalence, coins, strategy = dirichlet_tables(
        key_rows,
        [
            prior.prevalence + class_counts(truth, n_classes),
            coin_counts(knew, labels.worker, n_workers) + competence_concentration(prior),
            spam + prior.strategy,
        ],
    )
    return Params(prevalence, competence=coins[:, 0], strategy=strategy)


def _log_joint(params: Params, labels: Labels, *, n_items: int) -> Float[Array, "item cls"]:
    return labels_log_joint(confusion(params), params.prevalence, labels, n_items=n_items)


CONDITIONALS = Conditionals(_first_params, _draw_params, _log_joint, vote_shares)
"""Conditionals of `bayescrowd.models.mace`."""
